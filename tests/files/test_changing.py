"""Files and folders that a person deletes and moves: one commit each, and nothing of what others did."""

from pathlib import Path
from typing import Any

import pytest

from grid.files import git
from grid.files.changing import FileChanged, UploadRefused, advance, count_files, delete, move, upload
from grid.files.git import GitFailed
from grid.files.repositories import Repository
from tests.files.conftest import Runs


def paths(repository: Repository) -> list[str]:
    commit = repository.resolve("main")
    return [entry.shown for entry in repository.files(commit)] if commit else []


@pytest.fixture
def shown(repository: Repository) -> str:
    upload(repository, "", {"a": b"1", "b": b"2"}, author="alice")
    return upload(repository, "data/raw", {"c": b"3", "d": b"4"}, author="alice")


def test_deletion_and_move_are_commits_by_the_person(repository: Repository, shown: str) -> None:
    assert count_files(repository, shown, "data") == 2
    second = delete(repository, "a", shown=shown, author="bob")
    third = move(repository, "data", "old/data 2026", shown=shown, author="carol")
    assert paths(repository) == ["b", "old/data 2026/raw/c", "old/data 2026/raw/d"]
    commits = [(commit.author, commit.title) for commit in repository.history(third, count=2)]
    assert commits == [("carol", "Move data to old/data 2026"), ("bob", "Delete a")]
    assert repository.history(third, count=2)[1].id == second
    assert repository.entry(shown, "a") is not None, "the history keeps it"


def test_concurrently_changed_path_is_refused_and_other_changes_stay(repository: Repository, shown: str) -> None:
    upload(repository, "data/raw", {"c": b"new"}, author="bob", replace=True)
    with pytest.raises(FileChanged, match="was changed since you opened this page"):
        delete(repository, "data", shown=shown, author="alice")
    with pytest.raises(FileChanged, match="was changed since you opened this page"):
        move(repository, "data/raw/c", "c", shown=shown, author="alice")
    delete(repository, "data/raw/d", shown=shown, author="alice")
    with pytest.raises(FileChanged, match="is no longer on main"):
        delete(repository, "data/raw/d", shown=shown, author="alice")
    assert paths(repository) == ["a", "b", "data/raw/c"]


def test_late_push_is_kept_or_refused(repository: Repository, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pushed = [("theirs", b"5"), ("b", b"theirs")]

    def late(*arguments: Any) -> bool:
        if pushed:
            name, content = pushed.pop(0)
            upload(repository, "", {name: content}, author="bob", replace=True)
        return advance(*arguments)

    monkeypatch.setattr("grid.files.changing.advance", late)
    delete(repository, "a", shown=shown, author="alice")
    with pytest.raises(FileChanged):
        delete(repository, "b", shown=shown, author="alice")
    assert paths(repository) == ["b", "data/raw/c", "data/raw/d", "theirs"]


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("", "cannot be empty"),
        *((hostile, r"\.$|”\.?$") for hostile in ("/etc", "../x", "x/.git/hooks", "x\0", ".git.kept")),
        ("data", "already"),
        ("data/raw/deeper", "into itself"),
        ("b", "b exists already"),
        ("b/x", "b is not a folder"),
        ("x/" * 499 + "x", "at most 1000"),
    ],
)
def test_impossible_path_is_refused_with_a_sentence(
    repository: Repository, shown: str, target: str, sentence: str
) -> None:
    path = "data/raw" if target != "data" else "data"
    with pytest.raises(UploadRefused, match=sentence):
        move(repository, path, target, shown=shown, author="alice")
    assert repository.resolve("main") == shown


@pytest.mark.parametrize("path", ["", "data/../a", "no", "a\0", "-r", ":/"])
def test_a_path_that_is_not_there_deletes_nothing(repository: Repository, shown: str, path: str) -> None:
    for commit in (shown, "--all"):
        with pytest.raises((UploadRefused, GitFailed)):
            delete(repository, path, shown=commit, author="alice")
    assert repository.resolve("main") == shown


def test_links_modes_and_binary_names_stay_unchanged(repository: Repository, runs: Runs) -> None:
    run = runs().prepare()
    (run.work / "out").mkdir()
    (run.work / "out" / "link").symlink_to("/etc/passwd")
    Path(run.work / "out" / b"\xff.csv".decode(errors="surrogateescape")).touch()
    (run.work / "out" / "run.sh").touch(0o755)
    run.save()
    shown = repository.resolve("main") or ""
    with pytest.raises(UploadRefused, match="out/link is a link"):
        upload(repository, "out/link", {"x": b""}, author="alice")
    after = move(repository, "out", "new", shown=shown, author="alice")
    before = git.run(repository.path, "ls-tree", "-z", f"{shown}:out")
    assert git.run(repository.path, "ls-tree", "-z", f"{after}:new") == before
    delete(repository, "new", shown=after, author="alice")
    assert paths(repository) == []
    assert list(runs().prepare().work.iterdir()) == [], "an execution begins with no files"


def test_repository_among_the_files_is_deletable_but_not_movable(repository: Repository, runs: Runs) -> None:
    runs().prepare().write("theirs/.git/config", "[core]\n\tfsmonitor = ./evil\n").save()
    shown = repository.resolve("main") or ""
    assert paths(repository) == ["theirs/.git.kept/config"]
    for path in ("theirs", "theirs/.git.kept", "theirs/.git.kept/config"):
        with pytest.raises(UploadRefused, match="repository of its own"):
            move(repository, path, "mine", shown=shown, author="bob")
    delete(repository, "theirs", shown=shown, author="bob")
    assert paths(repository) == []
