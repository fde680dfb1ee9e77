"""What a program plants where the executor, the dashboard and builds write or read: nothing outside is changed or shown, nothing waits.

A table: every such path, and everything that may be in its place. What the executor alone can write (its state, the repository) and what
the kubelet mounts for it alone (secrets, the annotation's file) no program can plant in; the rows that concern them say what is read there.
"""

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from grid.files.executor import program
from grid.files.executor.task import tell
from grid.files.git import GitFailed
from grid.files.repositories import Repository
from grid.sandbox.imagebuilds import BuildOrder, _Build, _ready
from grid.sandbox.images import Image
from grid.sandbox.imagestore import PulledImage
from grid.sandbox.kubelet.runtime import Attempt
from grid.sandbox.kubelet.termination import termination_message
from tests.files.conftest import Run, Runs

SECRET = "the word of another volume"
pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True)
class Outside:
    """A folder that is not the program's, as the repository and the executor's state are not."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "config"

    def make(self) -> "Outside":
        self.folder.mkdir()
        names = ("config", "file", "HEAD", ".gitignore", "termination-log", "build.log", "job-a.bundle", "job-a.tar.gz")
        for name in names:
            (self.folder / name).write_text(f"{SECRET}\n")
        return self

    def seen(self) -> dict[str, tuple[int, bytes]]:
        return {path.name: (path.lstat().st_mode, path.read_bytes()) for path in self.folder.iterdir()}


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    """Makes the folder, and sees afterwards that it is byte for byte as it was."""
    made = Outside(tmp_path / "outside").make()
    before = made.seen()
    yield made
    assert made.seen() == before


# --- What may be planted ---


def clear(place: Path) -> None:
    """Make room for something at the place."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        subprocess.run(["rm", "-rf", str(place)], check=True)
    place.unlink(missing_ok=True)


def link_to_a_file(place: Path, outside: Outside) -> None:
    place.symlink_to(outside.file)


def link_to_a_folder(place: Path, outside: Outside) -> None:
    place.symlink_to(outside.folder)


def dangling_link(place: Path, outside: Outside) -> None:
    place.symlink_to(outside.folder / "new")


def link_in_a_parent(place: Path, outside: Outside) -> None:
    place.parent.rename(place.parent.with_name(f"{place.parent.name}-away"))
    place.parent.symlink_to(outside.folder)


def pipe(place: Path, outside: Outside) -> None:
    os.mkfifo(place)


def hard_link(place: Path, outside: Outside) -> None:
    place.hardlink_to(outside.file)


def long_path(place: Path, outside: Outside) -> None:
    make_deep(place, ["d" * 200] * 25, "file")


def folder(place: Path, outside: Outside) -> None:
    place.mkdir()
    (place / "in the way").touch()


def file_above(place: Path, outside: Outside) -> None:
    place.parent.rename(place.parent.with_name(f"{place.parent.name}-away"))
    place.parent.write_text("in the way")


def huge_sparse_file(place: Path, outside: Outside) -> None:
    place.touch()
    os.truncate(place, 2**40)


def odd_names(place: Path, outside: Outside) -> None:
    place.mkdir()
    for name in ("a\nb", os.fsdecode(b"\xff\xfe"), "-rf", "a\tb"):
        (place / name).symlink_to(outside.file)


PLANTED = (
    *(link_to_a_file, link_to_a_folder, dangling_link, link_in_a_parent, pipe, hard_link, long_path, folder),
    *(file_above, huge_sparse_file, odd_names),
)
Plant = Callable[[Path, Outside], None]
planted = pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)


def make_deep(place: Path, folders: list[str], name: str) -> None:
    """Make a file so far below that no system call takes its path."""
    place.mkdir()
    here = os.open(place, os.O_RDONLY)
    for part in folders:
        os.mkdir(part, dir_fd=here)
        below = os.open(part, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


# --- The working copy and results ---


def says_nothing_of(outside: Outside, repository: Repository) -> None:
    """See that no commit has what is outside."""
    refs = subprocess.check_output(
        ["git", f"--git-dir={repository.path}", "for-each-ref", "--format=%(refname)"], text=True
    )
    for ref in refs.split():
        command = ["git", f"--git-dir={repository.path}", "grep", "-q", SECRET, ref]
        assert subprocess.run(command).returncode == 1, ref


WORK = ("data/file", ".gitignore", ".git", "sub/.git/HEAD", ".git.kept", "results", "results/file")


@planted
@pytest.mark.parametrize("path", WORK)
def test_planted_working_copy_does_not_lead_outside(
    runs: Runs, repository: Repository, outside: Outside, path: str, plant: Plant
) -> None:
    run = runs(results="results", results_bytes=2**20).prepare().write("kept", "1")
    place = (
        run.work / "below" / path if plant in (link_in_a_parent, file_above) and "/" not in path else run.work / path
    )
    clear(place)
    plant(place, outside)
    report = run.save()
    assert (report["branch"], "problem" in report) == ("main", False)
    assert repository.entry(report["ended"], "kept") is not None
    if plant is not hard_link:  # which is the program's own file as well
        says_nothing_of(outside, repository)
    in_results = path.startswith("results")
    words = report.get("results_problem", "") if in_results else report.get("left_out_names", "")
    if plant is long_path:
        assert "its path has more than 4095 bytes" in words
    if plant is huge_sparse_file and path not in ("results", ".git"):
        assert "on no disk" in words or "are not kept" in words


# --- HOME, and beside the branches ---


def cannot_push(run: Run, repository: Repository) -> str:
    (repository.path / "refs" / "heads" / "main.lock").touch()
    (repository.path / "unpushed").write_text("in the way")
    return "bundle"


def cannot_commit(run: Run, repository: Repository) -> str:
    (run.task.git / "HEAD").unlink()
    return "tar.gz"


KEPT = (
    (cannot_push, "unpushed-files"),
    (cannot_push, "unpushed-files/job-a.bundle"),
    (cannot_commit, "unpushed-files/job-a.tar.gz"),
    (cannot_commit, "unpushed-files/job-a.tar.gz.unfinished"),
)


@planted
@pytest.mark.parametrize(("fails", "path"), KEPT)
def test_planted_home_is_not_written_through(
    runs: Runs,
    repository: Repository,
    outside: Outside,
    path: str,
    plant: Plant,
    fails: Callable[[Run, Repository], str],
) -> None:
    if "/" not in path and plant in (link_in_a_parent, file_above):
        pytest.skip("HOME itself is a mount")
    run = runs().prepare().write("a", "not lost")
    ending = fails(run, repository)
    place = run.task.home / path
    clear(place)
    plant(place, outside)
    report = run.save()
    assert report["kept"] in ("home", "copy", ""), report
    kept = run.task.home / "unpushed-files" / f"job-a.{ending}"
    if kept.is_dir():  # then a copy is kept in the place of a bundle
        kept = kept.with_name("job-a.tar.gz")
    if report["kept"] == "home":
        assert stat.S_ISREG(kept.lstat().st_mode)
        assert (kept.stat().st_nlink, kept.stat().st_size > 100) == (1, True)
        assert list(kept.parent.glob("*.unfinished")) in ([], [place])
    else:
        in_the_way = "/" not in path or plant in (link_in_a_parent, file_above) or kept.is_dir()
        assert in_the_way, "it is kept at home unless its place is taken"
    assert report["kept"] or "could not be" in report["problem"]


@planted
def test_planted_bundle_is_not_taken_in(repository: Repository, outside: Outside, plant: Plant) -> None:
    place = repository.path / "unpushed" / "job-a.bundle"
    if plant is huge_sparse_file:
        pytest.skip("no program has this volume; git would read the file for five minutes")
    clear(place)
    plant(place, outside)
    with pytest.raises(GitFailed):
        repository.push_again("job-a")
    assert repository.branches() == []


# --- Last words, and the word that the program has ended ---


@planted
def test_planted_report_file_is_not_written_through(runs: Runs, outside: Outside, plant: Plant) -> None:
    run = runs()
    place = run.task.report.parent / "below" / "report"
    if plant is link_in_a_parent:
        pytest.skip("the file is a mount below /dev, which no program has")
    clear(place)
    plant(place, outside)
    tell(replace(run.task, report=place), 0, problem="x")


@planted
def test_planted_annotations_file_is_not_waited_for(tmp_path: Path, outside: Outside, plant: Plant) -> None:
    place = tmp_path / "told" / "ended"
    clear(place)
    plant(place, outside)
    # A link is followed: the kubelet makes this file of links, in a volume that no program has.
    is_followed = plant in (link_to_a_file, hard_link, huge_sparse_file)
    with suppress(NotADirectoryError):
        assert program._says_something(place) == is_followed


@planted
def test_planted_termination_message_is_not_waited_for(tmp_path: Path, outside: Outside, plant: Plant) -> None:
    directory = tmp_path / "attempt"
    clear(directory / "termination-log")
    plant(directory / "termination-log", outside)
    message = termination_message(cast(Attempt, SimpleNamespace(directory=directory, exit=None)), {})
    assert plant in (hard_link, link_in_a_parent, huge_sparse_file) or message == ""


# --- Builds ---


@planted
def test_planted_build_log_is_not_written_through(tmp_path: Path, outside: Outside, plant: Plant) -> None:
    place = tmp_path / "image" / "build.log"
    clear(place)
    if plant in (link_in_a_parent, file_above, long_path):
        pytest.skip("the image's folder is of the cluster's own, and its files were counted before")
    plant(place, outside)
    build = _Build(BuildOrder("a", "b", ()))
    build.log += b"what pip said"
    pulled = PulledImage(Image("a", (), ""), tmp_path / "image", 1)
    assert _ready(build, pulled).log == "what pip said"
    assert place.is_dir() or place.read_text() == "what pip said"
    again = _ready(_Build(BuildOrder("a", "b", ())), pulled)
    assert again.log == ("" if place.is_dir() else "what pip said")


def test_link_in_home_does_not_reach_the_project_repository(runs: Runs, repository: Repository) -> None:
    run = runs().prepare()
    (run.work / "a").write_text("1")
    (run.task.git / "HEAD").unlink()
    aimed = run.task.home / "unpushed-files"
    aimed.mkdir()
    for name in ("tar.gz.unfinished", "tar.gz", "bundle", "bundle.lock"):
        (aimed / f"{run.task.name}.{name}").symlink_to(repository.path / "config")
    before = (repository.path / "config").read_bytes()
    assert run.save()["kept"] == "home"
    assert (repository.path / "config").read_bytes() == before
    other = runs().prepare()
    (other.work / "b").write_text("2")
    assert other.save()["branch"] == "main", "the repository is as good as before"
