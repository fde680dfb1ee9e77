"""Uploads, deletions and moves in a project's files, on real repositories. Other roles: tests/access, and below."""

from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django.fixtures import Settings

from grid.configuration import REPOSITORY_SIZE, UPLOAD_SIZE
from grid.files.changing import upload
from grid.files.repositories import Repositories, Repository
from grid.models import Project
from tests.conftest import People, client_of
from tests.executions.executing import configure
from tests.support.settings import change

FILES = "/projects/churn/files/"
UPLOAD = f"{FILES}upload/"


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


def send(client: Client, *files: tuple[str, bytes], **fields: str) -> Any:
    return client.post(UPLOAD, {"chosen": [SimpleUploadedFile(*file) for file in files], **fields})


def refused(answer: Any) -> str:
    assert answer.status_code == 422
    return str(answer.content.decode())


def sent_as(client: Client, name: str) -> Any:
    """Upload a file under this name, as browsers write it."""
    head = (
        f'--b\r\nContent-Disposition: form-data; name="chosen"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'
    )
    body = f"{head}x\r\n--b--\r\n".encode()
    return client.post(UPLOAD, body, content_type="multipart/form-data; boundary=b")


@pytest.mark.parametrize(
    "name",
    ["Shot 9.41.00\u202fAM.png", "Obraz 9.41\u00a0AM.png", "R&amp;D &lt;1&gt;.csv", "na\u00adme.txt", "50% a%20b.csv"],
)
def test_uploads_name_is_stored_to_the_letter(owner: Client, name: str) -> None:
    assert sent_as(owner, name).status_code == 302
    assert f"path={quote_plus(name)}" in owner.get(FILES).content.decode()


@pytest.mark.parametrize("name", ["a\\b.csv", "a\u202eb.csv", "a\x07b.csv", "a%22b.csv", "a%0Ab.csv"])
def test_uploads_name_that_cannot_be_kept_is_refused(owner: Client, name: str) -> None:
    page = refused(sent_as(owner, name))
    assert any(reason in page for reason in ("cannot have a slash", "invisible ones", "browsers write %22"))
    assert "b.csv</a>" not in owner.get(FILES).content.decode()


def test_several_files_are_one_commit_under_the_persons_name(owner: Client, people: People) -> None:
    assert "Upload some" in owner.get(FILES).content.decode()
    answer = send(owner, ("a & b.csv", b"x,<script>\n"), ("c.bin", b"\0" * 3_000_000), folder="data/")
    assert (answer.status_code, answer["Location"]) == (302, f"{FILES}?path=data")
    page = owner.get(answer["Location"]).content.decode()
    assert "Saved: a &amp; b.csv and c.bin" in page
    assert "path=data%2Fc.bin" in page
    assert "x,&lt;script&gt;" in owner.get(f"{FILES}?path=data/{quote('a & b.csv')}").content.decode()
    history = owner.get(f"{FILES}history/").content.decode()
    assert people.owner.username in history
    assert history.count("Upload data/") == 1


def test_a_name_that_exists_asks_to_replace(people: People, owner: Client) -> None:
    send(owner, ("a", b"1"))
    mate = client_of(people.teammate)
    page = refused(send(mate, ("a", b"2"), ("b", b"2")))
    assert "a exists already. Choose the files again" in page
    assert 'name="replace"' in page
    assert ">1<" in owner.get(f"{FILES}?path=a").content.decode()
    assert send(mate, ("a", b"2"), replace="on").status_code == 302
    assert ">2<" in owner.get(f"{FILES}?path=a").content.decode()


def test_impossible_upload_is_explained(owner: Client, settings: Settings, tmp_path: Path) -> None:
    assert "Choose at least one file" in refused(send(owner))
    assert "a name that Git keeps" in refused(send(owner, (".git", b"")))
    assert "too long" in refused(send(owner, ("x" * 300, b"")))
    assert "are called “a”" in refused(send(owner, ("a", b"1"), ("a", b"2")))
    assert "at most 50" in refused(send(owner, *((str(number), b"") for number in range(51))))
    assert 'id="id_folder_error"' in refused(send(owner, ("a", b"1"), folder="../x"))
    configure(UPLOAD_SIZE.key, 1)
    assert "together; at most 1 MiB" in refused(send(owner, ("a", bytes(2**20)), ("b", b"1")))
    Project.objects.update(is_archived=True)
    assert "archived" in refused(send(owner, ("a", b"1")))
    Project.objects.update(is_archived=False)
    (tmp_path / "file").touch()
    settings.REPOSITORIES = str(tmp_path / "file")
    assert "Nothing was saved" in refused(send(owner, ("a", b"1")))


def test_a_repository_grows_only_to_its_bound(owner: Client, people: People, volume: Path) -> None:
    change(REPOSITORY_SIZE.key, "1", actor=people.admin)
    assert send(owner, ("a", b"1")).status_code == 302
    with (volume / "churn.git" / "objects" / "large").open("wb") as large:
        large.truncate(2**30)  # of a sparse file, which takes no room
    assert "would have 1.0 GiB, and may have 1 GiB" in refused(send(owner, ("b", b"1")))
    change(REPOSITORY_SIZE.key, "0", actor=people.admin)
    assert send(owner, ("b", b"1")).status_code == 302
