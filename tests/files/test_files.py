"""The files of a project in Git, on real repositories. Who may open them: tests/access."""

import base64
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.test import AsyncClient, Client
from pytest_django.fixtures import Settings

from dashboard.files.viewmodels.files import SHOWN_BYTES
from dashboard.files.views import files
from grid.files import git
from grid.files.git import AnswerTooLong
from grid.files.repositories import Repository
from grid.models import Membership, Project, RunFiles, State
from tests.conftest import People, client_of
from tests.executions.executing import make_execution
from tests.files.conftest import Run, Runs, repository, runs

__all__ = ["repository", "runs"]
FILES = "/projects/churn/files/"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def run(project: Project, runs: Runs, repository: Repository) -> Run:
    """One that writes into the project's repository."""
    repository.path.rename(repository.path.with_name("churn.git"))
    made = runs()
    made.task = replace(made.task, repository=repository.path.with_name("churn.git"))
    return made.prepare()


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    return answer.content.decode()


def test_folders_and_texts_are_shown(owner: Client, run: Run) -> None:
    run.write("data/a & b.csv", "x,y\n1,<script>\n")
    run.save()
    assert "data/" in text(owner, FILES)
    folder = text(owner, f"{FILES}?at=main&path=data")
    assert "path=data%2Fa+%26+b.csv" in folder
    shown = text(owner, f"{FILES}?path=data/{quote('a & b.csv')}")
    assert "1,&lt;script&gt;" in shown
    assert "15 B" in shown


@pytest.mark.parametrize("query", ["path=none", "path=../x", "at=--all", "at=" + "0" * 40])
def test_missing_file_is_not_found(owner: Client, run: Run, query: str) -> None:
    run.write("a", "1")
    run.save()
    for page in (FILES, f"{FILES}download/"):
        assert owner.get(f"{page}?{query}").status_code == 404


def test_binary_or_long_file_is_not_shown_whole(owner: Client, run: Run) -> None:
    run.write("binary", b"\0\1")
    run.write("long.txt", "x" * (SHOWN_BYTES + 1))
    (run.work / "empty").touch()
    (run.work / "link").symlink_to("/etc/passwd")
    run.save()
    assert "This is not text" in text(owner, f"{FILES}?path=binary")
    assert "Only the first 256 KiB" in text(owner, f"{FILES}?path=long.txt")
    assert "This file is empty" in text(owner, f"{FILES}?path=empty")
    link = text(owner, f"{FILES}?path=link")
    assert "not followed" in link
    assert "/etc/passwd" in link
    assert "root:" not in link


async def download(people: People, query: str) -> tuple[Any, bytes]:
    client = AsyncClient()
    await client.aforce_login(people.owner)
    answer: Any = await client.get(f"{FILES}download/?{query}")
    return answer, b"".join([chunk async for chunk in answer])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("drawing.svg", b"<svg onload='alert(1)'/>", "application/octet-stream"),
        ("plot.PNG", PIXEL, "image/png"),
        ('quo"te\n.txt', b"1", "application/octet-stream"),
        ("big.bin", b"x" * 200_000, "application/octet-stream"),
    ],
)
async def test_a_download_is_never_a_page_of_ours(
    people: People, run: Run, name: str, content: bytes, kind: str
) -> None:
    (run.work / name).write_bytes(content)
    run.save()
    answer, body = await download(people, f"path={quote(name)}")
    assert body == content
    assert answer["Content-Type"] == kind
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer["Content-Security-Policy"]
    assert "\n" not in answer["Content-Disposition"]


def test_image_file_is_shown_as_picture(owner: Client, run: Run) -> None:
    run.write("plot.png", PIXEL)
    commit = run.save()["ended"]
    shown = text(owner, f"{FILES}?path=plot.png")
    assert f'src="{FILES}download/?at={commit}&amp;path=plot.png"' in shown


def test_the_history_is_paged_and_leads_to_each_commit(
    owner: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_COMMITS", 3)
    commits = []
    for number in range(5):
        run.write("a", str(number))
        commits.append(run.save()["ended"])
    first, *_, last = commits
    page = text(owner, f"{FILES}history/?path=a")
    assert f"at={last}" in page
    assert f"at={first}" not in page
    assert "skip=3" in page
    assert f"at={first}" in text(owner, f"{FILES}history/?path=a&skip=3")
    assert ">0<" in text(owner, f"{FILES}?at={first}&path=a")
    assert owner.get(f"{FILES}history/?skip=-1").status_code == 200


def test_unpushed_changes_are_pushed_again_by_a_contributor(owner: Client, people: People, run: Run) -> None:
    execution = make_execution(people.owner, Project.objects.get(), id="a", kind="job")
    RunFiles.objects.create(execution=execution, kept="repository", problem="It could not be pushed.")
    run.write("a", "1")
    run.save()
    run.write("b", "2")
    lock = run.task.repository / "refs" / "heads" / "main.lock"
    lock.touch()
    assert run.save()["kept"] == "repository"
    name, path = run.task.name, f"{FILES}push-again/"
    assert name in text(owner, FILES)
    lock.rename(lock.with_name(f"{name}.lock"))
    assert "could not be pushed now" in owner.post(path, {"name": name}, follow=True).content.decode()
    lock.with_name(f"{name}.lock").unlink()
    for wrong in ("", "../../x", "job-none", "x\0"):
        assert "could not be pushed now" in owner.post(path, {"name": wrong}, follow=True).content.decode()
    assert (
        f"on branch {name} now" in client_of(people.teammate).post(path, {"name": name}, follow=True).content.decode()
    )
    assert ">2<" in text(owner, f"{FILES}?at={name}&path=b")
    files = RunFiles.objects.get()
    assert (files.branch, files.kept, files.problem) == (name, "", "")


@pytest.mark.django_db(transaction=True)
async def test_download_without_a_turn_is_refused_before_it_begins(
    people: People, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.write("a", "1")
    run.save()
    monkeypatch.setattr(git, "_downloads", threading.BoundedSemaphore(1))
    monkeypatch.setattr(git, "_PATIENCE", 0.01)
    with git._downloads:
        client = AsyncClient()
        await client.aforce_login(people.owner)
        answer: Any = await client.get(f"{FILES}download/?path=a")
    assert (answer.status_code, "Try again in a moment" in answer.content.decode()) == (503, True)


def _is_too_long(*_: object) -> None:
    raise AnswerTooLong("x")


def test_why_files_cannot_be_shown_is_said(owner: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.write("a", "1")
    run.save()
    with monkeypatch.context() as crowded:
        crowded.setattr(Repository, "folder", _is_too_long)
        assert "too much in this place" in text(owner, FILES, 503)
    (run.task.repository / "HEAD").write_text("nonsense")
    assert "cannot be read now" in text(owner, FILES, 503)
    assert "cannot be read now" in text(owner, f"{FILES}history/", 503)
    assert owner.get(f"{FILES}download/?path=a").status_code == 404


def test_a_project_with_a_volume_has_no_such_pages(owner: Client, project: Project, settings: Settings) -> None:
    settings.REPOSITORIES = ""
    assert owner.get(FILES).status_code == 404
    settings.REPOSITORIES = "/somewhere"
    Project.objects.update(files=Project.Files.VOLUME)
    assert owner.get(FILES).status_code == 404


# --- The choice ---


@pytest.fixture
def elsewhere(project: Project) -> Project:
    project.files = Project.Files.VOLUME
    project.save()
    return project


def choose(client: Client, project: Project, **files: str) -> tuple[int, str, str]:
    answer = client.post("/projects/churn/settings/", {"name": "Churn", **files})
    project.refresh_from_db()
    return answer.status_code, project.files, answer.content.decode()


def test_an_owner_has_the_files_kept_in_git(
    owner: Client, elsewhere: Project, volume: Path, settings: Settings
) -> None:
    settings.REPOSITORIES = ""
    assert "moves no files" not in text(owner, "/projects/churn/settings/")
    assert choose(owner, elsewhere, files="git")[1] == "volume"
    settings.REPOSITORIES = str(volume)
    assert "moves no files" in text(owner, "/projects/churn/settings/")
    assert choose(owner, elsewhere, files="git")[:2] == (302, "git")
    assert (volume / "churn.git" / "HEAD").exists()
    assert choose(owner, elsewhere)[:2] == (302, "git"), "what was not sent stays"
    assert choose(owner, elsewhere, files="svn")[:2] == (400, "git")


def test_an_admin_makes_a_project_with_files_in_git(people: People, volume: Path) -> None:
    sent = {"id": "fresh", "name": "Fresh", "volume_size": "10Gi", "files": "git", "owner": people.owner.pk}
    answer = client_of(people.admin).post("/projects/new/", sent)
    assert answer.status_code == 302
    assert (volume / "fresh.git" / "HEAD").exists()


# --- The page of an execution ---


@pytest.mark.usefixtures("runtime")
def test_an_execution_tells_its_commits_to_members(people: People, project: Project) -> None:
    execution = make_execution(people.owner, project, state=State.SUCCEEDED, spec={"files": {"branch": "main"}})
    page = f"/executions/{execution.pk}/"
    assert "did not report" in text(client_of(people.owner), page)
    RunFiles.objects.create(execution=execution, began="a" * 40, ended="b" * 40, branch="main")
    shown = text(client_of(people.teammate), page)
    assert f"{FILES}?at={'a' * 40}" in shown
    assert f"{FILES}?at={'b' * 40}" in shown
    Membership.objects.create(project=project, user=people.stranger, role=Membership.Role.VIEWER)
    for looker in (people.operator, people.stranger):
        shown = text(client_of(looker), page)
        assert "on branch main" in shown
        assert FILES not in shown


@pytest.mark.usefixtures("runtime")
def test_execution_names_what_is_kept_and_left_out(people: People, project: Project) -> None:
    execution = make_execution(people.owner, project, state=State.SUCCEEDED, spec={"files": {"branch": "main"}})
    files = RunFiles.objects.create(execution=execution, kept="repository", problem="It could not be pushed: x")
    page = text(client_of(people.owner), f"/executions/{execution.pk}/")
    assert "Push them again" in page
    assert "kept beside the branches" in page
    files.ended, files.branch, files.kept, files.problem = "b" * 40, "main", "home", ""
    files.left_out, files.left_out_names = 1, "d/<i>/…/d (its path has more than 4095 bytes)"
    files.save()
    page = text(client_of(people.owner), f"/executions/{execution.pk}/")
    assert "1 files could not be saved and are not in it: d/&lt;i&gt;/…/d (its path has more than 4095 bytes)." in page
    assert "A copy of all is in HOME" in page
