"""Deletions and moves in a project's files, on real repositories. Other roles: tests/access, and below."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from grid.files.changing import upload
from grid.files.repositories import Repositories, Repository
from grid.models import Project
from tests.conftest import People
from tests.shell.browsing import client_of

FILES = "/projects/churn/files/"


@pytest.fixture
def repository(project: Project, volume: Path) -> Repository:
    made = Repositories(volume).of("churn")
    made.create()
    upload(made, "data", {"a <b>.csv": b"1", "c": b"2"}, author="alice")
    return made


def main(repository: Repository) -> str:
    return repository.resolve("main") or ""


def delete(client: Client, path: str, at: str) -> Any:
    return client.post(f"{FILES}delete/", {"path": path, "at": at}, follow=True)


def move(client: Client, path: str, at: str, target: str) -> Any:
    query = urlencode({"path": path, "at": at})
    return client.post(f"{FILES}move/?{query}", {"target": target}, follow=True)


def test_a_page_offers_both_for_the_main_branch_only(people: People, repository: Repository) -> None:
    client, commit = client_of(people.owner), main(repository)
    page = client.get(f"{FILES}?path=data").content.decode()
    assert f"{FILES}delete/?at={commit}&amp;path=data" in page
    assert "Rename or move" in page
    assert "Rename or move" not in client.get(f"{FILES}?path=data&at={commit}").content.decode()
    question = client.get(f"{FILES}delete/?at={commit}&path=data").content.decode()
    assert "with 2 files, in one commit of yours" in question
    assert "Nothing is lost" in question


def test_a_member_moves_a_file_and_deletes_it(people: People, repository: Repository) -> None:
    client = client_of(people.teammate)
    answer = move(client, "data/a <b>.csv", main(repository), "old/x & y.csv")
    assert answer.redirect_chain == [(f"{FILES}?path=old%2Fx+%26+y.csv", 302)]
    assert "data/a &lt;b&gt;.csv is old/x &amp; y.csv now" in answer.content.decode()
    answer = delete(client, "old/x & y.csv", main(repository))
    assert answer.redirect_chain == [(FILES, 302)], "the folder has gone with its last file"
    assert "Deleted: old/x &amp; y.csv. The history keeps it." in answer.content.decode()
    history = [(commit.author, commit.title) for commit in repository.history(main(repository), count=2)]
    assert history == [
        (people.teammate.username, "Delete old/x & y.csv"),
        (people.teammate.username, "Move data/a <b>.csv to old/x & y.csv"),
    ]
    delete(client, "data", main(repository))
    assert "No files yet" in client.get(FILES).content.decode()


def test_impossible_change_is_explained_and_changes_nothing(people: People, repository: Repository) -> None:
    client, shown = client_of(people.owner), main(repository)
    upload(repository, "data", {"c": b"new"}, author="bob", replace=True)
    now = main(repository)
    answer = delete(client, "data", shown)
    assert answer.redirect_chain == [(f"{FILES}?path=data", 302)]
    assert "Nothing was changed. data was changed since you opened this page" in answer.content.decode()
    for path, at, target, status, sentence in (
        ("data/c", shown, "c", 422, "data/c was changed since you opened this page"),
        ("data/c", now, "../c", 422, "is no name of a file"),
        ("data/no", now, "c", 404, ""),
    ):
        answer = move(client, path, at, target)
        assert (answer.status_code, sentence in answer.content.decode()) == (status, True), (path, target)
    Project.objects.update(is_archived=True)
    assert "archived" in delete(client, "data", now).content.decode()
    assert "archived" in move(client, "data", now, "x").content.decode()
    assert main(repository) == now


def test_a_repository_that_cannot_be_written_is_said(people: People, repository: Repository) -> None:
    client, now = client_of(people.owner), main(repository)
    (repository.path / "refs" / "heads" / "main.lock").touch()
    assert "cannot be written now" in delete(client, "data", now).content.decode()
    assert "cannot be written now" in move(client, "data", now, "x").content.decode()
