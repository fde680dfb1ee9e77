"""A real program that swaps folders and files for links and pipes, as fast as it can, while the executor saves; and paths without end."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grid.files.executor import saving
from grid.files.executor.gitcommand import git
from grid.files.executor.saving import keep_copy
from grid.files.executor.tree import make_tree
from grid.files.repositories import Repository
from tests.files.conftest import Run, Runs
from tests.files.test_executor import Read
from tests.files.test_planted import Outside, outside, says_nothing_of

__all__ = ["outside"]
ROUNDS = 12
pytestmark = pytest.mark.timeout(300)

# Exchanges the two paths of each pair in one step, so that there is always one of them.
SWAP = """\
import ctypes, os, sys
rename = ctypes.CDLL(None, use_errno=True).renameat2
pairs = [(os.fsencode(a), os.fsencode(b)) for a, b in zip(sys.argv[1::2], sys.argv[2::2])]
print("begun", flush=True)
while True:
    for a, b in pairs:
        rename(-100, a, -100, b, 2)
"""


@contextmanager
def swapping(*pairs: tuple[Path, Path]) -> Iterator[None]:
    """Run the program meanwhile."""
    paths = [str(path) for pair in pairs for path in pair]
    process = subprocess.Popen([sys.executable, "-c", SWAP, *paths], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        yield
        assert process.poll() is None, "it has swapped all the time"
    finally:
        process.kill()
        process.communicate()


def rounds(run: Run) -> list[dict[str, Any]]:
    reports = []
    for number in range(ROUNDS):
        run.write("count", str(number))
        (run.work / "data-real" / "file").parent.mkdir(exist_ok=True)
        reports.append(run.save())
    return reports


def test_files_swapped_for_links_save_nothing_from_outside(
    runs: Runs, repository: Repository, outside: Outside, read: Read
) -> None:
    run = runs(results="results", results_bytes=2**20).prepare()
    for folder in ("data", "data/below", "results", "data-real"):
        (run.work / folder).mkdir()
        (run.work / folder / "file").write_text("its own")
    away = run.work / "away"
    away.mkdir()
    for name in ("data", "results"):
        (away / name).symlink_to(outside.folder)
    run.write("file", "its own")
    (away / "file").symlink_to(outside.file)
    run.write("config", "its own")
    os.mkfifo(away / "config")
    names = ("data", "results", "file", "config")
    with swapping(*((run.work / name, away / name) for name in names)):
        reports = rounds(run)
    assert [report.get("problem", "") for report in reports] == [""] * ROUNDS
    assert [report["branch"] for report in reports] == ["main"] * ROUNDS
    assert read("count") == str(ROUNDS - 1)
    says_nothing_of(outside, repository)


def test_folders_swapped_in_home_write_nothing_elsewhere(runs: Runs, repository: Repository, outside: Outside) -> None:
    run = runs().prepare().write("a", "1")
    (run.task.git / "HEAD").unlink()
    kept, away = run.task.home / "unpushed-files", run.task.home / "away"
    kept.mkdir()
    away.symlink_to(outside.folder)
    aimed = kept / f"{run.task.name}.tar.gz"
    aimed.touch()
    (kept / "link").symlink_to(outside.file)
    with swapping((kept, away), (aimed, kept / "link")):
        places = [keep_copy(run.task) for _ in range(8 * ROUNDS)]
    assert set(places) <= {"home", "copy"}
    assert "home" in places


def test_unreadable_file_stays_as_in_the_branch(runs: Runs, read: Read) -> None:
    first = runs().prepare()
    (first.work / "data").mkdir()
    for name in ("data/a", "b"):
        (first.work / name).write_text("before")
    first.save()
    run = runs().prepare()
    (run.work / "data" / "a").unlink()
    os.truncate(run.work / "b", 2**40)
    run.write("c", "1")
    report = run.save()
    assert (report["left_out"], report["left_out_names"]) == (1, "b (most of it is on no disk)")
    assert (read("data/a"), read("b"), read("c")) == (None, "before", "1")


def test_gitignore_is_applied_like_git_does(runs: Runs, repository: Repository) -> None:
    run = runs().prepare()
    run.write(".gitignore", "*.tmp\n/cache/\nd/*/x\n!kept.tmp\n")
    run.write("sub/.gitignore", "!a.tmp\n*.log\n").write("sub/own/.gitignore", "*\n")
    for path in ("a.tmp", "kept.tmp", "cache/a", "sub/cache/a", "sub/a.tmp", "sub/b.tmp", "sub/c.log", "c.log"):
        run.write(path, "1")
    for path in ("sub/own/a", "d/e/x", "d/x", ":(top)a", "q\na.tmp", "cache.d/a"):
        run.write(path, "1")
    report = run.save()
    plain = run.task.state / "plain"
    subprocess.run(["git", "init", "-q", str(plain)], check=True)
    places = [f"--git-dir={plain / '.git'}", f"--work-tree={run.work}"]
    command = ["git", *places, "ls-files", "-z", "-o", "--exclude-standard"]
    expected = subprocess.check_output(command, text=True, cwd=run.work).split("\0")[:-1]
    saved = git(run.task, "ls-tree", "-r", "-z", "--name-only", report["ended"]).split("\0")[:-1]
    assert sorted(saved) == sorted(expected)
    assert {"kept.tmp", "sub/a.tmp", "c.log", ":(top)a"} < set(saved)


def test_tracked_file_is_saved_despite_gitignore(runs: Runs, read: Read) -> None:
    runs().prepare().write("a.tmp", "1").save()
    run = runs().prepare().write(".gitignore", "*.tmp\n")
    (run.work / "a.tmp").write_text("2")  # as long as before, a moment later
    run.save()
    assert read("a.tmp") == "2"


def test_another_repositorys_commit_stays_while_its_folder_is_empty(runs: Runs, repository: Repository) -> None:
    def kinds(commit: str) -> dict[str, bool]:
        return {entry.name: entry.is_module for entry in repository.folder(commit, "")}

    first = runs().prepare()
    tree = make_tree(first.task, dict.fromkeys(("full", "empty", "gone"), f"160000 {'1' * 40}"))
    commit = git(first.task, "commit-tree", tree, "-m", "modules")
    saving._push_to(first.task, commit, "main", 0)
    run = runs().prepare().write("full/a", "1")
    (run.work / "gone").rmdir()
    assert kinds(run.save()["ended"]) == {"full": False, "empty": True}
