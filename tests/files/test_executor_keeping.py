"""What the executor keeps when it cannot save, and what it does where the branches are on a server, which a second repository plays."""

import stat
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grid.files import git
from grid.files.executor import Missing, Task, gitcommand, saving
from grid.files.repositories import Repository
from tests.files.conftest import Run, Runs
from tests.files.test_executor import Read, git_init

Away = Callable[..., Run]
GIB = 2**30


def authors(repository: Repository) -> list[str]:
    command = ["git", f"--git-dir={repository.path}", "log", "--format=%an <%ae>", "main"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()


def copied(run: Run, folder: Path) -> list[str]:
    with tarfile.open(folder / f"{run.task.name}.tar.gz") as archive:
        return sorted(file.name for file in archive if file.isfile())


def test_uncommittable_files_are_copied_to_home(runs: Runs) -> None:
    run = runs()
    process = run.start()
    run.write("a", "not lost")
    (run.task.git / "HEAD").unlink()
    report = run.end(process)
    assert (process.returncode, report["kept"]) == (0, "home")
    assert "could not be saved: fatal: not a git repository" in report["problem"]
    assert copied(run, run.task.home / "unpushed-files") == ["./a"]


def test_without_home_the_copy_is_beside_the_branches(runs: Runs, repository: Repository) -> None:
    run = runs().prepare().write("a", "not lost")
    (run.task.git / "HEAD").unlink()
    (run.task.home / "unpushed-files").write_text("in the way")
    assert run.save()["kept"] == "copy"
    assert copied(run, repository.path / "unpushed") == ["./a"]
    assert repository.unpushed() == []


def test_unreadable_start_note_ends_in_a_report(runs: Runs) -> None:
    run = runs()
    process = run.start()
    run.write("a", "not lost")
    run.task.ready.write_text("")  # as a full disk leaves it
    assert run.end(process)["kept"] == "home"


def test_push_is_reported_when_executor_disk_is_full(runs: Runs, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs().prepare().write("a", "1")

    def full(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(saving, "write_state", full)
    assert run.save()["branch"] == "main"
    assert read("a") == "1"


def test_unwritable_index_makes_no_empty_commit(runs: Runs) -> None:
    run = runs().prepare().write("a", "not lost")
    (run.task.git / "index.lock").touch()
    report = run.save()
    assert (report["ended"], report["kept"]) == ("", "home")
    run.prepare()  # the lock is of a process that is gone
    assert run.save()["branch"] == "main"


def test_bundle_folder_is_open_to_group_of_dashboard(runs: Runs, repository: Repository) -> None:
    run = runs().prepare().write("a", "1")
    (repository.path / "refs" / "heads" / "main.lock").touch()
    assert run.save()["kept"] == "repository"
    assert stat.S_IMODE((repository.path / "unpushed").stat().st_mode) == 0o2770


@pytest.mark.parametrize("name", ["...", "<>", ".alice"])
def test_author_name_shortened_by_git_stays_distinct(runs: Runs, repository: Repository, name: str) -> None:
    run = runs(author=name).prepare().write("a", "1")
    assert run.save()["branch"] == "main"
    (author,) = authors(repository)
    assert "<alice@" not in author


def test_nested_repository_is_returned_only_to_its_maker(runs: Runs) -> None:
    run = runs().prepare()
    git_init(run.work / "sub")
    run.save()
    other = runs(author="bob").prepare()
    assert [path.name for path in (other.work / "sub").iterdir()] == [".git.kept"]
    assert (runs().prepare().work / "sub" / ".git" / "HEAD").exists()


def test_nested_repository_changed_by_others_is_not_returned(runs: Runs) -> None:
    first = runs().prepare()
    git_init(first.work / "sub")
    first.save()
    meanwhile, other = runs().prepare(), runs(author="bob").prepare()
    other.write("sub/.git.kept/config", "[core]\nfsmonitor = touch /tmp/sprung\n")
    other.save()
    meanwhile.write("a", "merged with it")
    assert meanwhile.save()["branch"] == "main"
    assert not (runs().prepare().work / "sub" / ".git").exists()


def test_saving_moves_nothing_and_saves_a_repository_beside_anothers(runs: Runs, read: Read) -> None:
    first = runs(author="bob").prepare()
    git_init(first.work / "sub")
    first.save()
    run = runs().prepare().write("sub/.git", "gitdir: elsewhere\n").write(".GIT", "a file\n")
    for _ in range(2):
        assert run.save()["branch"] == "main"
    assert sorted(path.name for path in (run.work / "sub").iterdir()) == [".git", ".git.kept"]
    assert read("sub/.git.kept.kept") == "gitdir: elsewhere\n"
    assert (read("sub/.git.kept/HEAD") or "").startswith("ref: ")
    assert read(".GIT.kept") == "a file\n"


def test_repository_beyond_bound_keeps_changes_in_home(
    runs: Runs, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = runs(largest=1).prepare().write("a", "1")
    assert first.save()["branch"] == "main"
    monkeypatch.setattr(saving, "size_of", lambda folder: 2**30 * 3 // 4)
    run = runs(largest=1).prepare().write("a", "2")
    report = run.save()
    assert (report["branch"], report["kept"]) == ("", "home")
    assert "would have 1.5 GiB, and may have 1 GiB. Ask an admin" in report["problem"]
    assert (run.task.home / "unpushed-files" / f"{run.task.name}.bundle").is_file()
    assert list(repository.unpushed()) == []


@pytest.fixture
def server(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "server.git")
    repository.create()
    git.run(repository.path, "config", "receive.denyDeletes", "false")
    return repository


@pytest.fixture
def away(runs: Runs, server: Repository, monkeypatch: pytest.MonkeyPatch) -> Away:
    """Makes runs that take the second repository for a remote one."""
    monkeypatch.setattr(Task, "source", property(lambda task: str(server.path)))
    monkeypatch.setattr(gitcommand, "_remote_environment", lambda task: {})

    def make(**changed: Any) -> Run:
        return runs(**{"remote": "https://git.example.com/a", **changed}).prepare()

    return make


def write(run: Run, name: str, text: str = "1") -> dict[str, Any]:
    (run.work / name).write_text(text)
    return run.save()


def says(server: Repository, path: str, branch: str = "main") -> str | None:
    commit = server.resolve(branch)
    entry = server.entry(commit, path) if commit else None
    return server.head_of(entry, 1000).decode() if entry else None


def hook(server: Repository, script: str) -> None:
    place = server.path / "hooks" / "update"
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"#!/bin/sh\nunset GIT_QUARANTINE_PATH\n{script}\n")
    place.chmod(0o755)
    git.run(server.path, "config", "core.hooksPath", str(place.parent))  # the executor's git would run none here


def test_lost_push_race_is_merged_anyway(away: Away, server: Repository) -> None:
    write(away(), "base")
    first, second = away(), away()
    assert write(first, "one")["branch"] == "main"
    winner = server.resolve("main")
    git.run(server.path, "update-ref", "refs/heads/main", f"{winner}~1")
    # While the first push of the other arrives, that of the one is accepted.
    hook(server, f'[ "$(git rev-parse main)" = {winner} ] || {{ git update-ref refs/heads/main {winner}; exit 1; }}')
    report = write(second, "other")
    assert report["branch"] == "main"
    assert [says(server, name) for name in ("base", "one", "other")] == ["1", "1", "1"]


def test_protected_branch_gets_a_branch_beside_it(away: Away, server: Repository) -> None:
    write(away(), "base")
    hook(server, '[ "$1" != refs/heads/main ]')
    run = away()
    assert write(run, "a")["branch"] == run.task.name
    assert (says(server, "a"), says(server, "a", run.task.name)) == (None, "1")


def test_missing_workspace_branch_falls_back_to_usual_and_reports(away: Away, server: Repository) -> None:
    write(away(), "base")
    run = away(branch="workspace-x", fallback="main")
    assert (run.work / "base").exists()
    report = write(run, "a")
    assert (report["branch"], report["instead_of"]) == ("main", "workspace-x")
    again = write(run.prepare(), "b")  # the executor was started again
    assert (again["branch"], again["instead_of"], says(server, "b")) == ("main", "workspace-x", "1")
    git.run(server.path, "update-ref", "refs/heads/workspace-y", "main")
    there = write(away(branch="workspace-y", fallback="main"), "c")
    assert (there["branch"], "instead_of" in there) == ("workspace-y", False)
    with pytest.raises(Missing, match="no branch tidy"):
        away(branch="tidy")
    with pytest.raises(Missing, match="no branch trunk"):
        away(branch="workspace-x", fallback="trunk")


@pytest.mark.parametrize(("used", "kept"), [(GIB // 4, "repository"), (GIB, "home")])
def test_failing_server_fills_volume_only_to_its_bound(
    away: Away, repository: Repository, monkeypatch: pytest.MonkeyPatch, server: Repository, used: int, kept: str
) -> None:
    run = away(largest=1)
    server.path.rename(server.path.with_name("away.git"))
    monkeypatch.setattr(saving, "size_of", lambda folder: used if folder == repository.path else GIB // 2)
    assert write(run, "a")["kept"] == kept
    assert bool(list((run.task.home / "unpushed-files").glob("*.bundle"))) == (kept == "home")


@pytest.mark.parametrize("remote", ["", "https://git.example.com/a"])
def test_results_do_not_grow_a_repository_beyond_its_bound(
    away: Away, repository: Repository, monkeypatch: pytest.MonkeyPatch, remote: str
) -> None:
    run = away(remote=remote, largest=1, results="results", results_bytes=2**20)
    monkeypatch.setattr(saving, "size_of", lambda folder: GIB if folder == repository.path else 0)
    run.write("results/a", bytes(2**20))
    report = run.save()
    assert "results" not in report and report["results_kept"] == "home"
    assert report["results_problem"].startswith(
        "The results are not with the run: the project's repository would have 1.0"
    )
    assert "Ask an admin to raise that" in report["results_problem"]
    monkeypatch.setattr(saving, "size_of", lambda folder: GIB // 2)
    assert run.save()["results_files"] == 1
