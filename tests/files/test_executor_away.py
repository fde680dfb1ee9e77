"""The executor where branches are on a server, without one: a second repository plays it, and its hooks say what a server would."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grid.files import git
from grid.files.executor import Missing, Task, gitcommand, saving
from grid.files.repositories import Repository
from tests.files.conftest import Run, Runs

Away = Callable[..., Run]
GIB = 2**30


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


# --- Branches ---


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


# --- What lies on the volume ---


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
