"""What the dashboard reads of a repository."""

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from grid.core.gitnames import is_revision
from grid.files import git
from grid.files.git import GitBusy, GitFailed
from grid.files.repositories import Repositories, Repository, is_path
from tests.files.conftest import ReplaceGit, Runs, see_end_of


def test_folders_come_first_and_only_existing_paths_are_found(runs: Runs, repository: Repository) -> None:
    run = runs().prepare().write("z/b.txt", "hello").write("a.txt", "1")
    commit = run.save()["ended"]
    assert [(listed.name, listed.is_folder) for listed in repository.folder(commit, "")] == [
        ("z", True),
        ("a.txt", False),
    ]
    (entry,) = repository.folder(commit, "z")
    assert (entry.name, entry.size) == ("b.txt", 5)
    assert repository.entry(commit, "z/b.txt") == entry
    assert repository.entry(commit, "z/none") is None
    assert repository.head_of(entry, 3) == b"hel"
    assert b"".join(repository.stream(entry)) == b"hello"
    with pytest.raises(GitFailed):
        repository.folder(commit, "a.txt")


def test_undecodable_name_is_listed_without_a_name(runs: Runs, repository: Repository) -> None:
    run = runs().prepare()
    (run.work / os.fsdecode(b"\xff")).write_text("x")
    run.write("a\nb", "x")
    entries = repository.folder(run.save()["ended"], "")
    assert [(entry.name, entry.shown) for entry in entries] == [("a\nb", "a\nb"), ("", "\ufffd")]


def test_names_of_revisions_and_paths_are_checked() -> None:
    assert all(map(is_revision, ("main", "feature/a.b", "0" * 40)))
    assert not any(map(is_revision, ("", "-x", "a..b", "a b", "main^{tree}", "x.lock", "a/", "a:b", "a\n")))
    assert all(map(is_path, ("a/b", "-x", "ü", "a b")))
    assert not any(map(is_path, ("", "/a", "a//b", "../x", "a/..", ".", "a\0")))


def test_a_repository_that_is_half_made_is_completed(tmp_path: Path) -> None:
    repository = Repositories(tmp_path).of("alpha")
    repository.path.mkdir()
    (repository.path / "config").touch()
    assert not repository.exists
    repository.create()
    repository.create()
    assert repository.branches() == []
    assert repository.resolve("main") is None


def test_long_or_slow_answer_is_refused(runs: Runs, repository: Repository, replace_git: ReplaceGit) -> None:
    run = runs().prepare().write("a", "x" * 5000)
    commit = run.save()["ended"]
    with pytest.raises(GitFailed, match="more than"):
        git.run(repository.path, "show", commit, limit=1000)
    replace_git("exec sleep 600")
    with pytest.raises(GitFailed):
        git.run(repository.path, "show", commit, seconds=0.1)


def test_no_program_that_the_repositorys_configuration_names_is_run(
    runs: Runs, repository: Repository, tmp_path: Path
) -> None:
    run, trap, script = runs().prepare(), tmp_path / "sprung", tmp_path / "script"
    run.write("a", "x")
    run.write("b", "y")
    run.save()
    script.write_text(f"#!/bin/sh\ntouch {trap}\n")
    script.chmod(0o755)
    there = ("git", f"--git-dir={repository.path}")
    raw = subprocess.run([*there, "cat-file", "commit", "main"], capture_output=True, check=True).stdout
    head, _, message = raw.partition(b"\n\n")
    signed = head + b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\n" + message
    made = subprocess.run(
        [*there, "hash-object", "-t", "commit", "-w", "--stdin"], input=signed, capture_output=True, check=True
    )
    commit = made.stdout.decode().strip()
    for name, value in {
        "log.showSignature": "true",
        "gpg.program": script,
        "core.fsmonitor": script,
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "remote.origin.url": str(tmp_path),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": script,
    }.items():
        subprocess.run([*there, "config", name, str(value)], check=True)
    assert repository.history(commit, count=5)
    entry = repository.entry(commit, "b")
    assert entry is not None
    (repository.path / "objects" / entry.id[:2] / entry.id[2:]).unlink()
    with pytest.raises(GitFailed):
        b"".join(repository.stream(entry))
    assert not trap.exists()


def test_bundle_name_is_strict_and_links_are_not_followed(repository: Repository, tmp_path: Path) -> None:
    kept = repository.path / "unpushed"
    kept.mkdir()
    for name in ("job-abc.bundle", "../x.bundle".replace("/", "-"), "job-abc.bundle.lock", "JOB-1.bundle"):
        (kept / name).touch()
    assert repository.unpushed() == ["job-abc"]
    (kept / "job-abc.bundle").unlink()
    (kept / "job-abc.bundle").symlink_to(tmp_path)
    for name in ("job-abc", "../../x", "job-none"):
        with pytest.raises(GitFailed):
            repository.push_again(name)


def test_a_branch_that_lacks_what_is_kept_hides_nothing(runs: Runs, repository: Repository) -> None:
    run = runs(branch="").prepare().write("a", "1")
    assert run.save()["branch"] == run.task.name
    run.write("a", "2")
    (repository.path / "refs" / "heads" / f"{run.task.name}.lock").touch()
    assert run.save()["kept"] == "repository"
    assert repository.unpushed() == [run.task.name]


def test_a_large_file_is_read_in_little_memory(runs: Runs, repository: Repository, replace_git: ReplaceGit) -> None:
    run = runs().prepare()
    with (run.work / "huge").open("wb") as file:
        file.truncate(100 * 2**20)
    commit = run.save()["ended"]
    subprocess.run(["git", f"--git-dir={repository.path}", "repack", "-adq"], check=True)
    (entry,) = repository.folder(commit, "")
    replace_git(f'ulimit -v 90000\nexec {shutil.which("git")} "$@"')
    assert len(repository.head_of(entry, 1000)) == 1000
    assert sum(map(len, repository.stream(entry))) == 100 * 2**20


def test_caller_without_a_turn_is_refused(runs: Runs, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs().prepare().write("a", "1")
    run.save()
    monkeypatch.setattr(git, "_answers", threading.BoundedSemaphore(1))
    monkeypatch.setattr(git, "_PATIENCE", 0.01)
    assert len(repository.branches()) == 1
    with git._answers, pytest.raises(GitBusy):
        repository.branches()
    with pytest.raises(GitFailed):
        git.run(repository.path, "nonsense")
    assert len(repository.branches()) == 1


def test_children_of_git_end_with_it(repository: Repository, tmp_path: Path, replace_git: ReplaceGit) -> None:
    child = tmp_path / "child"
    replace_git(f"sleep 600 &\necho $! > {child}\nwait")
    with pytest.raises(GitFailed):
        git.run(repository.path, "show", seconds=0.5)
    see_end_of(child.read_text().strip())
