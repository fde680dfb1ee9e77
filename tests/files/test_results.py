"""The results of a job's runs: kept apart from the branches, each run's own, and the same when it runs again; on real repositories."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grid.diagnosis.run_report import FilesReport
from grid.files import git
from grid.files.filesaving import sentence_of
from grid.files.repositories import Repository
from tests.files.conftest import Run, Runs

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
