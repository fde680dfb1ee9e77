"""A project's remote repository: which URLs are followed, storing it, its secret, what an execution gets, and what git says, in words."""

import base64
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from grid.core.errors import Rejected
from grid.database.encryption import decrypt
from grid.diagnosis.remotetroubles import explain, scrubbed
from grid.diagnosis.run_report import FilesReport
from grid.executions.launchrequest import JobSettings
from grid.executions.manifests import build
from grid.executions.spec import parse_spec
from grid.files import remotes as remote_calls, stored_remotes as remotes
from grid.files.filesaving import sentence_of
from grid.files.remotes import Remote, RemoteCredentials, RemoteFailed
from grid.files.remoteurls import parse
from grid.kube.resources import SECRETS
from grid.models import AuditEntry, Execution, Project, RemoteRepository, RunFiles
from grid.secrets.storedsecrets import SecretMissing, encrypt_all_again
from tests.controller.world import World, fresh, in_world
from tests.support.golden import assert_golden
from tests.support.shop import NOW, OWNER, Shop

TOKEN = "tok3n-of-the-tests"
URL = "https://git.example.com/churn.git"
HOST_KEY = "ssh-ed25519 " + base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(32)).decode()
OTHER_HOST_KEY = "ssh-ed25519 " + base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + b"n" * 32).decode()
ENVIRONMENT = {"PATH": os.environ["PATH"]}


def private_key(passphrase: bytes = b"") -> str:
    protection = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    form = PrivateFormat.PKCS8 if passphrase else PrivateFormat.OpenSSH
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, form, protection).decode()


def put(shop: Shop, **changed: Any) -> RemoteRepository:
    given: dict[str, Any] = {"url": URL, "branch": "main", "username": "", "secret": TOKEN}
    return remotes.put(shop.project, by=shop.people.owner, now=NOW, **(given | changed))


def problems(shop: Shop, **changed: Any) -> str:
    with pytest.raises(Rejected) as caught:
        put(shop, **changed)
    return str(caught.value)


def use(shop: Shop, **changed: Any) -> RemoteRepository:
    stored = put(shop, **changed)
    Project.objects.update(files=Project.Files.REMOTE)
    return stored


def test_secret_is_encrypted_and_absent_from_audit_log(shop: Shop) -> None:
    stored = put(shop)
    assert (stored.username, stored.is_usable) == ("git", True)
    assert TOKEN not in stored.ciphertext and decrypt(stored.ciphertext) == TOKEN
    assert not AuditEntry.objects.filter(changes__icontains=TOKEN).exists()
    assert put(shop, secret="", branch="tidy").branch == "tidy"
    assert decrypt(RemoteRepository.objects.get().ciphertext) == TOKEN
    assert encrypt_all_again(RemoteRepository) == (1, 0)


@pytest.mark.parametrize("url", ["https://evil.example.com/churn.git", "https://git.example.com/other.git"])
def test_secret_never_goes_to_another_url(shop: Shop, url: str) -> None:
    put(shop)
    assert "each URL needs its own" in problems(shop, url=url, secret="")
    assert RemoteRepository.objects.get().url == URL


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"secret": ""}, "Enter the token"),
        ({"secret": "a\nb"}, "one line without blanks"),
        ({"secret": "x" * 20_000}, "at most 16 KiB"),
        ({"url": "git@host:a", "secret": "no key"}, "no private key"),
        ({"url": "git@host:a", "secret": private_key(b"phrase")}, "protected by a passphrase"),
        ({"branch": "a" * 40}, "Name a branch"),
        ({"username": "a b"}, "no blanks"),
    ],
)
def test_invalid_remote_is_refused_without_showing_the_secret(
    shop: Shop, changed: dict[str, Any], sentence: str
) -> None:
    message = problems(shop, **changed)
    assert sentence in message and (not changed.get("secret") or changed["secret"] not in message)
    assert not RemoteRepository.objects.exists()


def test_ssh_server_needs_confirmed_key_for_its_host(shop: Shop) -> None:
    key = private_key()
    stored = put(shop, url="git@host:a", secret=key)
    assert not stored.is_usable
    with pytest.raises(Rejected, match="in the meantime"):
        remotes.confirm(shop.project, by=shop.people.owner, key=HOST_KEY, url="ssh://git@other/a")
    remotes.confirm(shop.project, by=shop.people.owner, key=HOST_KEY, url=stored.url)
    assert remotes.is_usable(shop.project)
    assert put(shop, url="git@host:b", secret=key.replace("\n", "\r\n")).is_usable
    assert decrypt(RemoteRepository.objects.get().ciphertext) == key
    assert not put(shop, url="git@elsewhere:b", secret=key).is_usable


def test_launch_is_refused_while_repository_is_unusable(shop: Shop) -> None:
    Project.objects.update(files=Project.Files.REMOTE)
    with pytest.raises(Rejected, match="not set up"):
        shop.launch()
    put(shop, url="git@host:a", secret=private_key())
    with pytest.raises(Rejected, match="nobody has confirmed"):
        shop.launch()
    shop.launch_cluster()  # its pods have no files of the project


def test_repository_in_use_is_not_removed(shop: Shop) -> None:
    use(shop)
    with pytest.raises(Rejected, match="Choose another place"):
        remotes.remove(shop.project, by=shop.people.owner)
    Project.objects.update(files=Project.Files.VOLUME)
    remotes.remove(shop.project, by=shop.people.owner)
    assert not RemoteRepository.objects.exists()


@in_world
async def test_only_the_executor_of_its_pod_has_the_secret(shop: Shop) -> None:
    use(shop, branch="develop")
    world, execution = World(), shop.launch()
    files = parse_spec(execution).files
    assert files is not None
    assert (files.remote, files.branch) == (URL, "develop")
    await world.step(world.controller())
    pod = world.pod_of(execution)
    assert TOKEN not in json.dumps(pod)
    (volume,) = [part for part in pod["spec"]["volumes"] if "secret" in part and part["name"] == "remote"]
    secret = await world.cluster.get(SECRETS, volume["secret"]["secretName"], namespace=pod["metadata"]["namespace"])
    values = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert values == {"username": "git", "token": TOKEN}
    assert secret["metadata"]["ownerReferences"][0]["name"] == execution.object_name
    mounted = [
        part["name"]
        for part in (*pod["spec"]["initContainers"], *pod["spec"]["containers"])
        if any(mount["name"] == "remote" for mount in part["volumeMounts"])
    ]
    assert mounted == ["executor"]
    (executor,) = pod["spec"]["initContainers"]
    assert f"--remote={URL}" in executor["args"]


@in_world
async def test_secret_never_goes_to_url_changed_after_launch(shop: Shop) -> None:
    use(shop)
    world, execution = World(), shop.launch()
    put(shop, url="https://elsewhere.example.com/a", secret="another")
    await world.step(world.controller())
    assert fresh(execution).state == "error"
    assert "changed after the launch" in fresh(execution).words(OWNER)


def test_resumed_workspace_starts_at_own_branch_or_the_usual(shop: Shop) -> None:
    use(shop, branch="develop")
    first = shop.launch()
    first.refresh_from_db()
    RunFiles.objects.create(execution=first, branch=first.object_name)
    Execution.objects.update(state="stopped", settled_at=NOW, ended_at=NOW)
    files = parse_spec(second := shop.launch(workspace=first.workspace, after=60)).files
    assert files is not None
    assert (files.branch, files.fallback, files.largest_gibibytes) == (first.object_name, "develop", 50)
    made = {manifest.name: manifest.body for manifest in build(parse_spec(second), namespace="grid", token="t")}
    assert "--fallback=develop" in made[second.object_name]["spec"]["initContainers"][0]["args"]
    Execution.objects.update(state="stopped", settled_at=NOW, ended_at=NOW)
    put(shop, url="https://elsewhere.example.com/a", secret="another", branch="master")
    files = parse_spec(shop.launch(workspace=first.workspace, after=120)).files
    assert files is not None
    assert (files.branch, files.fallback) == ("master", ""), "the other repository's branches say nothing of this one"


def test_requested_branch_is_never_replaced(shop: Shop) -> None:
    use(shop)
    files = parse_spec(shop.launch(kind="job", environment=shop.job, job=JobSettings(files_at="tidy"))).files
    assert files is not None
    assert (files.branch, files.fallback) == ("tidy", "")


def test_a_branch_that_is_gone_is_in_the_history() -> None:
    report = FilesReport(began="a" * 40, ended="b" * 40, branch="main", instead_of="workspace-x")
    assert sentence_of(report).startswith("The branch workspace-x, where the workspace had left its files, is gone")
    assert "so it began at the project's usual one. The project's files are saved: commit" in sentence_of(report)


def test_a_secret_that_cannot_be_read_is_a_sentence(shop: Shop) -> None:
    use(shop)
    RemoteRepository.objects.update(ciphertext="x")
    made = parse_spec(shop.launch())
    with pytest.raises(SecretMissing, match="store it again"):
        remotes.files_for(made)


def test_git_on_a_server_is_reported_in_words() -> None:
    message = "It could not be pushed: fatal: unable to access 'https://x/': Could not resolve host: x"
    assert FilesReport(problem=message, remote=True).worded.problem == (
        "It could not be pushed: There is no such host. Look at its name in the URL"
    )
    assert FilesReport(problem=message).worded.problem == message


WEB = ["https://git.example.com/group/name.git", " https://Git.Example.com:443/~bob/a%20b ", "https://[fd12::5]:8443/a"]
OVER_SSH = ["git@github.com:group/name.git", "git@host:/srv/a.git", "ssh://git@host:2222/a/b"]


def test_a_url_is_put_together_again_from_its_parts() -> None:
    blocks = []
    for typed in (*WEB, *OVER_SSH, "SSH://org-1@vs-ssh.example.com/v3/a"):
        made = parse(typed)
        assert parse(made.text) == made
        blocks.append(f"> {typed}\n{made.text} of {made.known_host}")
    assert_golden("remote-urls", "\n".join(blocks), ending="txt")


@pytest.mark.parametrize(
    "typed",
    [
        *("", "/etc", "../a", "host:path", "file:///etc/passwd", "git://host/a", "http://host/a", "ext::sh -c id"),
        *("ssh+git://git@host/a", "https:host/a", "https:///a", "https://host", "https://host/"),
        *("-oProxyCommand=id", "https://-host/a", "ssh://git@-oProxyCommand=id/a", "git@-oProxyCommand=id:a"),
        *("git@host:-a", "ssh://-git@host/a", "ssh://git@host/-a", "ssh://host/a", "ssh://git:pw@host/a"),
        *("https://user:token@host/a", "https://host@evil/a", "https://host\\@evil/a", "git@host::ext", "a:b@host:c"),
        *("https://host/a?b", "https://host/a#b", "https://host/../a", "git@host:../a", "https://host/a b"),
        *("https://host:0/a", "https://host:99999/a", "https://host:8a/a", "https://[::1/a", "https://[fe80::1%25e]/a"),
        *("https://host/a\nb", "https://host/a\0", "https://höst/a", "https://host/$(id)", "https://host/`id`"),
        *("https://host/a;id", "https://host/'a", "https://*/a", "https://..host/a", "https://host/" + "a" * 600),
    ],
)
def test_any_other_url_is_refused_with_a_sentence(typed: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        parse(typed)


MESSAGES = [
    "ssh: Could not resolve hostname x: Name or service not known",
    "server certificate verification failed. CAfile: none CRLfile: none",
    "fatal: Authentication failed for 'https://x/a/'",
    "fatal: could not read Username for 'https://x': terminal prompts disabled",
    "The requested URL returned error: 403",
    "The requested URL returned error: 301",
    "git@x: Permission denied (publickey).\nfatal: Could not read from remote.",
    "remote: Repository not found.\nfatal: repository 'https://x/a/' not found",
    "fatal: '/a.git' does not appear to be a git repository",
    "Host key verification failed.",
    "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @ Host key verification failed.",
    "ssh: connect to host x port 22: Connection timed out",
    "ssh: connect to host x port 22: Connection refused",
    "! [remote rejected] main -> main (protected branch hook declined)",
    "something new",
]


def test_git_error_is_put_into_words() -> None:
    words = "\n".join(f"> {message}\n{explain(message)}" for message in MESSAGES)
    assert_golden("words-of-git", words, ending="txt")


def test_a_text_of_gits_is_shown_without_credentials() -> None:
    message = "fatal: unable to access 'https://bob:hunter2@host/a'\nremote: you sent t0ken\x1b[31m"
    assert scrubbed(message, ["t0ken", ""]) == "fatal: unable to access 'https://host/a' remote: you sent ***?[31m"


@pytest.mark.parametrize(
    ("script", "seconds", "sentence"),
    [
        ("printf 12345678901; exec sleep 600", 60.0, "more than anybody would read"),
        ("exec sleep 600", 0.2, "did not answer in time"),
        ("exec >&- 2>&-; exec sleep 600", 0.2, "did not answer in time"),
    ],
)
def test_command_is_bounded_in_time_whatever_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, seconds: float, sentence: str
) -> None:
    monkeypatch.setattr(remote_calls, "_LONGEST_ANSWER", 10)
    with pytest.raises(RemoteFailed, match=sentence):
        remote_calls._run(["sh", "-c", script], ENVIRONMENT, tmp_path, seconds)


def test_talkative_server_ends_at_memory_limit_with_explanation(tmp_path: Path) -> None:
    greedy = [sys.executable, "-c", "import mmap; mmap.mmap(-1, 2**30)"]
    code, output = remote_calls._run(greedy, ENVIRONMENT, tmp_path, 60.0)
    assert (code, "Cannot allocate memory" in output) == (1, True)
    for text in (output, "fatal: Out of memory, realloc failed"):
        assert "more memory than it may have" in explain(text)
    assert remote_calls._run(greedy, ENVIRONMENT, tmp_path, 60.0, 4096)[0] == 0


def test_oversized_bundle_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Remote(parse("https://git.example.com/a"), RemoteCredentials(token="t"), lambda address: False)
    bundle = tmp_path / "job-a.bundle"
    bundle.touch()
    os.truncate(bundle, 201 * 2**20)
    with pytest.raises(
        RemoteFailed, match=r"201 MiB, and 200 MiB is the most .* Ask an operator to push job-a\.bundle"
    ):
        made.push_bundle(bundle, "job-a")
    os.truncate(bundle, 100 * 2**20)
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=150 * 2**20))
    with pytest.raises(RemoteFailed, match="not enough free disk space"):
        made.push_bundle(bundle, "job-a")


def test_leftovers_of_killed_process_are_removed_unless_in_use(tmp_path: Path) -> None:
    for name in ("compute-grid-remote-old", "compute-grid-remote-new", "another"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text("secret")
    (tmp_path / "compute-grid-remote-link").symlink_to(tmp_path / "another")
    for name in ("compute-grid-remote-old", "another"):
        os.utime(tmp_path / name, (0, 0))
    remote_calls._remove_stale_folders(tmp_path, (tmp_path / "compute-grid-remote-new").stat().st_mtime + 60)
    assert sorted(place.name for place in tmp_path.iterdir()) == [
        "another",
        "compute-grid-remote-link",
        "compute-grid-remote-new",
    ]
    assert (tmp_path / "another" / "token").exists()
