"""Files that a person puts into a project's repository: which names can be, and what becomes of what is there."""

from typing import Any

import pytest

from grid.files import git
from grid.files.changing import AlreadyThere, UploadRefused, commit_on, problem_of_folder, problem_of_name, upload
from grid.files.repositories import Repository
from tests.files.conftest import Runs


def text(repository: Repository, path: str) -> str | None:
    commit = repository.resolve("main")
    entry = repository.entry(commit, path) if commit else None
    return repository.head_of(entry, 1000).decode() if entry else None


@pytest.mark.parametrize("name", [".gitignore", "a b", "..a", "x" * 200, "-rf", "می‌روم.txt", "👩‍🔬.png"])
def test_a_usual_name_is_taken(name: str) -> None:
    assert problem_of_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "..", ".GIT", ".git.", ".git ", ".g\u200cit", "git~1", ".git.kept.kept", ".git:x"),
        *("a/b", "a\\b", "a\nb", "a\0", "\x1b[31m", "a\u202egpj.exe", "\ud800", "é" * 101),
    ],
)
def test_a_hostile_name_is_refused_with_a_sentence(name: str) -> None:
    problem = problem_of_name(name)
    assert problem and problem.endswith((".", ".”")) and problem.encode()


@pytest.mark.parametrize("path", ["/etc", "../x", "a//b", "a/.git/hooks", "a/", "x/" * 501 + "x"])
def test_a_hostile_folder_is_refused(path: str) -> None:
    assert problem_of_folder(path)
    assert not problem_of_folder("data/raw")


def test_first_upload_makes_branch_and_later_ones_extend_it(repository: Repository) -> None:
    first = upload(repository, "", {"a": b"1"}, author="alice")
    second = upload(repository, "data/raw", {"b": b"2", "c": b"\0\r\n"}, author="bob")
    assert repository.resolve("main") == second
    assert [text(repository, path) for path in ("a", "data/raw/b", "data/raw/c")] == ["1", "2", "\0\r\n"]
    commits = [(commit.author, commit.title) for commit in repository.history(second, count=5)]
    assert commits == [("bob", "Upload data/raw/b and data/raw/c"), ("alice", "Upload a")]
    assert repository.history(second, count=5)[1].id == first


def test_existing_file_is_replaced_on_request_keeping_its_mode(repository: Repository, runs: Runs) -> None:
    run = runs().prepare().write("run.sh", "old")
    (run.work / "run.sh").chmod(0o755)
    run.save()
    with pytest.raises(AlreadyThere, match=r"run\.sh exists already"):
        upload(repository, "", {"run.sh": b"new", "other": b"1"}, author="alice")
    assert (text(repository, "run.sh"), text(repository, "other")) == ("old", None)
    commit = upload(repository, "", {"run.sh": b"new"}, author="alice", replace=True)
    assert git.run(repository.path, "ls-tree", commit, "--", "run.sh").startswith(b"100755 ")
    assert upload(repository, "", {"run.sh": b"new"}, author="alice", replace=True) == commit


def test_links_and_folders_are_not_replaced_nor_followed(repository: Repository, runs: Runs) -> None:
    run = runs().prepare()
    (run.work / "out").symlink_to("/etc")
    (run.work / "folder").mkdir()
    (run.work / "folder" / "a").touch()
    run.save()
    for folder, name, sentence in (
        ("", "out", "is a link"),
        ("out", "passwd", "is a link"),
        ("out/deeper", "passwd", "is a link"),
        ("", "folder", "is a folder"),
        ("folder/a", "b", "is not a folder"),
    ):
        with pytest.raises(UploadRefused, match=sentence):
            upload(repository, folder, {name: b"x"}, author="alice", replace=True)


def test_concurrent_pushes_of_others_are_kept(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(repository, "", {"a": b"1"}, author="alice")
    raced: list[bool] = []

    def slowly(*arguments: Any, **more: Any) -> str:
        made = commit_on(*arguments, **more)
        if not raced:
            raced.append(True)
            upload(repository, "", {"theirs": b"2"}, author="bob")
        return made

    monkeypatch.setattr("grid.files.changing.commit_on", slowly)
    upload(repository, "", {"mine": b"3"}, author="alice")
    assert [text(repository, path) for path in ("a", "theirs", "mine")] == ["1", "2", "3"]
    with pytest.raises(AlreadyThere):
        raced.clear()
        upload(repository, "", {"theirs": b"4"}, author="alice")
