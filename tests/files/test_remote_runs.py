"""The executor, and what the dashboard asks, on real servers: git over HTTPS with an authority of the tests, and over a real sshd."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grid.files import remotes
from grid.files.executor import UNUSABLE, GitError, gitcommand
from grid.files.remotes import HostKeyRefused, Remote, RemoteCredentials, RemoteFailed
from grid.files.remoteurls import parse
from grid.files.repositories import Repository
from tests.files.conftest import ReplaceGit, Run, Runs, see_end_of
from tests.files.gitservers import (
    SSHD,
    TOKEN,
    USERNAME,
    HttpsServer,
    SshServer,
    bare,
    commit,
    git,
    https_server,
    make_key,
    ssh_server,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed, which these tests run"),
]
needs_sshd = pytest.mark.skipif(
    SSHD is None, reason="sshd is not installed (openssh-server), which this test connects to"
)


@pytest.fixture(scope="module")
def https(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsServer]:
    with https_server(tmp_path_factory.mktemp("https")) as server:
        yield server


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    folder = tmp_path_factory.mktemp("ssh")
    if SSHD is None:  # what needs it is skipped
        yield SshServer(folder, 0, "", "")
        return
    with ssh_server(folder) as server:
        yield server


@pytest.fixture(params=["https", pytest.param("ssh", marks=needs_sshd)])
def server(
    request: pytest.FixtureRequest, https: HttpsServer, ssh: SshServer, monkeypatch: pytest.MonkeyPatch
) -> HttpsServer | SshServer:
    chosen = https if request.param == "https" else ssh
    if isinstance(chosen, HttpsServer):
        monkeypatch.setenv("GIT_SSL_CAINFO", str(chosen.authority))
    return chosen


def secret_of(server: HttpsServer | SshServer) -> RemoteCredentials:
    if isinstance(server, HttpsServer):
        return RemoteCredentials(username=USERNAME, token=TOKEN)
    return RemoteCredentials(key=server.key, known_hosts=server.known_hosts)


Away = Callable[..., Run]


@pytest.fixture
def away(runs: Runs, tmp_path: Path) -> Away:
    """Makes runs whose branches are on a server."""

    def make(url: str, secret: RemoteCredentials, **changed: Any) -> Run:
        run = runs(**({"remote": url, "secret": tmp_path / "secret", "seconds": 60.0} | changed))
        run.task.secret.mkdir(exist_ok=True)
        for name, text in secret.files().items():
            (run.task.secret / name).write_text(text)
            (run.task.secret / name).chmod(0o640)  # as a volume of the kubelet has it
        return run

    return make


def read(repository: Path, path: str, branch: str = "main") -> str:
    return git("-C", str(repository), "show", f"{branch}:{path}")


# --- Executions ---


def test_run_fetches_from_server_and_pushes_to_it(server: HttpsServer | SshServer, away: Away, tmp_path: Path) -> None:
    there = bare(server.root / "a.git", README="theirs\n", data__x="1\n")
    run = away(server.url("a.git"), secret_of(server))
    process = run.start()
    assert (run.work / "data" / "x").read_text() == "1\n"
    run.write("data/x", "2\n")
    report = run.end(process)
    assert (process.returncode, report["branch"], report["remote"]) == (0, "main", True)
    assert read(there, "data/x") == "2\n"
    assert report["ended"] == git("-C", str(there), "rev-parse", "main").strip()
    assert git("-C", str(there), "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    # Nothing of the secret is where the program, or a reader of the record, would see it.
    seen = [*run.work.rglob("*"), run.task.report, *run.task.git.rglob("config")]
    assert all(TOKEN not in place.read_text(errors="replace") for place in seen if place.is_file())


def test_run_starts_at_branch_or_commit_of_server(
    https: HttpsServer, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_SSL_CAINFO", str(https.authority))
    there = bare(https.root / "c.git", base="old\n")
    first = git("-C", str(there), "rev-parse", "main").strip()
    commit(there, base="new\n")
    commit(there, branch="tidy", tidy="yes")
    url, secret = https.url("c.git"), secret_of(https)
    assert (away(url, secret, branch="tidy").prepare().work / "tidy").exists()
    old = away(url, secret, branch="", commit=first).prepare()
    assert (old.work / "base").read_text() == "old\n"
    old.write("base", "other\n")
    assert old.save()["branch"] == "job-b"
    empty = away(https.url(bare(https.root / "empty.git").name), secret).prepare().write("first", "1")
    assert empty.save()["branch"] == "main"


def test_push_refused_by_server_is_kept_and_retried(
    server: HttpsServer | SshServer, away: Away, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = bare(server.root / "d.git", base="base\n")
    run = away(server.url("d.git"), secret_of(server), seconds=1.0).prepare().write("base", "ours\n")
    there.rename(there.with_name("away"))
    report = run.save()
    assert (report["branch"], report["kept"]) == ("", "repository")
    assert "could not be pushed" in report["problem"]
    assert TOKEN not in json.dumps(report)
    there.with_name("away").rename(there)
    assert list(repository.unpushed()) == ["job-a"]
    connection(server, "d.git").push_bundle(repository.path / "unpushed" / "job-a.bundle", "job-a")
    assert (read(there, "base"), read(there, "base", "job-a")) == ("base\n", "ours\n")


def test_wrong_secret_or_unknown_server_is_never_accepted(
    https: HttpsServer, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare(https.root / "e.git", base="base\n")
    url = https.url("e.git")
    with pytest.raises(GitError, match=r"certificate|SSL"):  # the machine knows no authority of the tests
        away(url, secret_of(https)).prepare()
    monkeypatch.setenv("GIT_SSL_CAINFO", str(https.authority))
    refused = away(url, RemoteCredentials(username=USERNAME, token="wr0ng"))
    process = refused.start()
    assert process.wait(60) == UNUSABLE
    problem = refused.report()["problem"]
    assert "Authentication failed" in problem and "wr0ng" not in problem
    with pytest.raises(GitError):
        away(https.url("moved/e.git"), secret_of(https)).prepare()
    assert not any("/there" in request for request in https.asked), "a redirect was followed"


@needs_sshd
def test_a_server_with_another_key_gets_nothing(ssh: SshServer, away: Away, tmp_path: Path) -> None:
    bare(ssh.root / "f.git", base="base\n")
    make_key(tmp_path / "other")
    other = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    for known_hosts in ("", f"[127.0.0.1]:{ssh.port} {other}\n"):
        secret = RemoteCredentials(key=ssh.key, known_hosts=known_hosts or "none.example ssh-ed25519 AAAA\n")
        with pytest.raises(GitError, match="Host key verification failed"):
            away(ssh.url("f.git"), secret).prepare()


@pytest.mark.parametrize(
    "url", ["file:///etc", "ext::sh -c id", "git://localhost/a.git", "http://localhost/a", "/etc", "none"]
)
def test_the_executor_itself_follows_no_other_scheme(away: Away, url: str) -> None:
    with pytest.raises(GitError, match="Only https:// and ssh://"):
        away(url, RemoteCredentials(token="t")).prepare()


def test_a_repository_of_a_stranger_configures_nothing(
    https: HttpsServer, away: Away, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its attributes, submodules and saved .git are files, and whoever is named as their author may have written them or not."""
    monkeypatch.setenv("GIT_SSL_CAINFO", str(https.authority))
    there = bare(https.root / "hostile.git")
    commit(
        there,
        author="alice@compute-grid.invalid",
        lib__kept="[core]\n\tfsmonitor = touch /tmp/owned\n",
        **{".gitattributes": "* filter=evil\n", "sub__.git.kept__HEAD": "ref: refs/heads/main\n"},
        **{".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = file:///etc\n'},
    )
    run = away(https.url("hostile.git"), secret_of(https)).prepare()
    assert (run.work / "sub" / ".git.kept" / "HEAD").is_file()
    assert not (run.work / "sub" / ".git").exists()


def test_hanging_git_ends_with_all_its_children(
    runs: Runs, tmp_path: Path, replace_git: ReplaceGit, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    replace_git(f"sleep 600 &\necho $! >> {pids}")  # it ends at once, and its child holds the connection
    monkeypatch.setattr(gitcommand, "COMMAND_SECONDS", 0.5)
    with pytest.raises(subprocess.TimeoutExpired):
        runs().prepare()
    for pid in pids.read_text().split():
        see_end_of(pid)


# --- What the dashboard asks ---


def connection(
    server: HttpsServer | SshServer, name: str, secret: RemoteCredentials | None = None, **changed: Any
) -> Remote:
    authority = str(server.authority) if isinstance(server, HttpsServer) else ""
    made = Remote(parse(server.url(name)), secret or secret_of(server), lambda address: True, authority)
    return replace(made, **changed)


def problem(made: Remote) -> str:
    with pytest.raises(RemoteFailed) as caught:
        made.branches()
    sentence = str(caught.value)
    assert TOKEN not in sentence
    return sentence


def test_a_connection_that_works_names_the_branches(server: HttpsServer | SshServer) -> None:
    there = bare(server.root / "g.git", base="base\n")
    commit(there, branch="tidy", tidy="yes")
    assert sorted(connection(server, "g.git").branches()) == ["main", "tidy"]
    assert connection(server, bare(server.root / "none.git").name).branches() == []
    assert "no such repository" in problem(connection(server, "nowhere.git"))


def test_https_problem_is_explained_in_words(https: HttpsServer) -> None:
    bare(https.root / "h.git", base="base\n")
    made = connection(https, "h.git")
    assert "certificate is not trusted" in problem(replace(made, authorities=""))
    assert "Access was refused" in problem(replace(made, credentials=RemoteCredentials(username=USERNAME, token="no")))
    assert "Access was refused" in problem(replace(made, credentials=RemoteCredentials()))
    assert "redirects" in problem(connection(https, "moved/h.git"))
    assert "no such host" in problem(replace(made, url=parse("https://nowhere.invalid/a.git")))
    assert "private or excepted" in problem(replace(made, may_reach=lambda address: False))
    assert "cannot be reached" in problem(replace(made, url=parse("https://localhost:1/a.git")))


def test_name_resolving_elsewhere_later_changes_nothing(https: HttpsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git connects to the address that was looked at: here one that the name itself does not lead to."""
    bare(https.root / "j.git", base="base\n")
    made = connection(https, "j.git", url=parse(f"https://tests.invalid:{https.port}/j.git"))
    monkeypatch.setattr(remotes, "_address", lambda url, may_reach: "127.0.0.1")
    assert "certificate" in problem(made)  # it was reached, and shows the name of another host


@needs_sshd
def test_server_key_is_shown_and_trusted_only_when_confirmed(ssh: SshServer, tmp_path: Path) -> None:
    bare(ssh.root / "k.git", base="base\n")
    made = connection(ssh, "k.git", RemoteCredentials(key=ssh.key))
    assert "not known yet" in problem(made)
    key = made.host_key()
    assert f"{key.type} {key.text}" == ssh.host_key
    shown = subprocess.run(["ssh-keygen", "-l", "-f", "/dev/stdin"], input=ssh.host_key, capture_output=True, text=True)
    assert key.fingerprint in shown.stdout
    known = RemoteCredentials(key=ssh.key, known_hosts=f"{made.url.known_host} {key.type} {key.text}\n")
    assert replace(made, credentials=known).branches() == ["main"]
    other = make_key(tmp_path / "other")
    assert "does not accept the key" in problem(replace(made, credentials=replace(known, key=other)))


@needs_sshd
def test_a_changed_key_of_a_server_is_a_warning(ssh: SshServer, tmp_path: Path) -> None:
    make_key(tmp_path / "old")
    old = " ".join((tmp_path / "old.pub").read_text().split()[:2])
    secret = RemoteCredentials(key=ssh.key, known_hosts=f"[127.0.0.1]:{ssh.port} {old}\n")
    with pytest.raises(HostKeyRefused, match="not the confirmed one"):
        connection(ssh, "k.git", secret).branches()
