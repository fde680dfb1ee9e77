"""What the dashboard reads of a repository, and the results of a job's runs in it: apart from the branches, each run's own."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grid.core.gitnames import is_revision
from grid.diagnosis.run_report import FilesReport
from grid.files import git
from grid.files.filesaving import sentence_of
from grid.files.git import GitBusy, GitFailed
from grid.files.repositories import Repositories, Repository, is_path
from tests.files.conftest import ReplaceGit, Run, Runs, see_end_of

PROGRAM = """\
import pathlib, random, sys
random.seed(int(sys.argv[1]))
out = pathlib.Path("results")
(out / "plots").mkdir(parents=True)
(out / "metrics.csv").write_text("".join(f"{random.random()}\\n" for _ in range(50)))
(out / "plots" / "a.png").write_bytes(bytes(range(256)))
(out / "run.sh").write_text("#!/bin/sh\\n")
(out / "run.sh").chmod(0o755)
pathlib.Path("model.txt").write_text("left beside the results\\n")
"""
Read = Callable[..., str | None]


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


def tree(repository: Repository, name: str) -> str:
    return git.run(repository.path, "rev-parse", f"refs/results/{name}^{{tree}}").decode().strip()


def listed(repository: Repository, name: str) -> list[str]:
    return git.run(repository.path, "ls-tree", "-r", "--name-only", f"refs/results/{name}").decode().splitlines()


@pytest.fixture
def job(runs: Runs) -> Callable[..., Run]:
    """Makes jobs that have fetched their files, and may keep 1 MiB of results."""

    def make(**changed: Any) -> Run:
        return runs(**{"results": "results", "results_bytes": 2**20, **changed}).prepare()

    return make


def work(run: Run, seed: str = "1") -> dict[str, Any]:
    subprocess.run([sys.executable, "train.py", seed], cwd=run.work, check=True)
    return run.save()


def test_same_commit_and_arguments_give_the_same_results(
    job: Callable[..., Run], runs: Runs, repository: Repository
) -> None:
    first = runs().prepare().write("train.py", PROGRAM)
    commit = first.save()["ended"]
    first, again, other = (job(branch="", commit=commit) for _ in range(3))
    reports = [work(first), work(again), work(other, "2")]
    trees = [tree(repository, run.task.name) for run in (first, again, other)]
    assert trees[0] == trees[1] != trees[2]
    assert [report["results_files"] for report in reports] == [3, 3, 3]
    assert [report["began"] for report in reports] == [commit] * 3
    assert listed(repository, first.task.name) == ["metrics.csv", "plots/a.png", "run.sh"]
    assert git.run(repository.path, "ls-tree", trees[0], "run.sh").startswith(b"100755 ")


def test_results_are_in_no_branch_and_the_rest_is(job: Callable[..., Run], read: Read, repository: Repository) -> None:
    run = job().write(".gitignore", "results/\n*.log\n").write("results/deep/a.log", "1").write("kept", "2")
    report = run.save()
    assert (report["branch"], read("kept"), read("results/deep/a.log")) == ("main", "2", None)
    assert listed(repository, run.task.name) == ["deep/a.log"]
    assert report["results"] == git.run(repository.path, "rev-parse", f"refs/results/{run.task.name}").decode().strip()
    assert not (job().work / "results").exists()
    assert run.save()["ended"] == report["ended"], "saving again changes nothing"


def test_branch_files_in_results_folder_stay_and_are_excluded(
    job: Callable[..., Run], runs: Runs, read: Read, repository: Repository
) -> None:
    first = runs().prepare()
    for name in ("old", "changed", "removed"):
        first.write(f"results/{name}", "before")
    commit = first.save()["ended"]
    run = job().write("results/changed", "after").write("results/new", "after")
    (run.work / "results" / "removed").unlink()
    report = run.save()
    assert report["ended"] == commit
    assert listed(repository, run.task.name) == ["changed", "new"]
    assert read("results/changed") == "before"
    assert "results" not in job().save(), "a run that writes none has none"


def test_largest_results_beyond_bound_are_left_out_and_reported(
    job: Callable[..., Run], repository: Repository
) -> None:
    run = job()
    for name, size in (("small", 10), ("middle", 2**19), ("large", 2**20), ("huge", 2**21)):
        run.write(f"results/{name}", b"x" * size)
    report = run.save()
    assert listed(repository, run.task.name) == ["middle", "small"]
    assert report["results_problem"].startswith("2 files of the results (3.0 MiB) are not kept")
    assert report["results_problem"].endswith("at most 1 MiB and 10000 files: huge, large")
    sentence = sentence_of(FilesReport(**report))
    assert sentence.endswith(f"Results: 2 files. {report['results_problem']}.")


def test_a_folder_that_leads_elsewhere_is_not_followed(
    job: Callable[..., Run], repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret")
    run = job()
    (run.work / "results").symlink_to(tmp_path / "secret")
    assert "leads over a link" in run.save()["results_problem"]
    run = job()
    (run.work / "results" / "real").mkdir(parents=True)
    (run.work / "results" / "link").symlink_to(tmp_path / "secret")
    (run.work / "results" / "odd [a]*.txt").touch()
    (run.work / "results" / "unreadable").touch(0o000)
    run.save()
    assert listed(repository, run.task.name) == ["link", "odd [a]*.txt", "unreadable"]


def test_results_that_cannot_be_pushed_are_copied_and_said(job: Callable[..., Run], read: Read) -> None:
    run = job().write("results/a", "1").write("kept", "2")
    (run.task.repository / "refs" / "results").mkdir()
    (run.task.repository / "refs" / "results" / f"{run.task.name}.lock").touch()
    report = run.save()
    assert (report["branch"], read("kept"), report["results_kept"]) == ("main", "2", "home")
    assert report["results_problem"].startswith("The results could not be kept: ")
    assert "results" not in report
    archive = run.task.home / "unpushed-files" / f"{run.task.name}.tar.gz"
    assert "./results/a" in subprocess.check_output(["tar", "-tzf", str(archive)], text=True).splitlines()
