"""The results of runs over HTTP: on the page of a run, listed, and compared; on real repositories."""

import html
from dataclasses import dataclass
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.urls import reverse
from pytest_django.fixtures import Settings

from grid.files.changing import upload
from grid.files.repositories import Repositories
from grid.models import Execution, Job, JobRun, Project, RunFiles, User
from tests.conftest import People
from tests.executions.executing import make_environment, make_project, make_tier
from tests.files.conftest import Runs, repository, runs
from tests.files.test_files import PIXEL, download
from tests.jobs.test_jobs_pages import MACHINE, launched, post
from tests.shell.browsing import client_of
from tests.support.frozen import write_frozen

__all__ = ["repository", "runs"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
ONE = {"same": b"1", "only-one": b"1", "log.txt": b"a\n<b>\nc\n", "plot.png": PIXEL, "weights": b"\0\1"}
OTHER = {"same": b"1", "only-other": b"1", "log.txt": b"a\nB\nc\n", "plot.png": PIXEL, "weights": b"\0\2"}


@dataclass
class Ran:
    job: Job
    executions: list[Execution]

    @property
    def compare(self) -> str:
        return f"/jobs/{self.job.pk}/compare/?a=1&b=2"


def text(user: User, path: str, status: int = 200) -> str:
    answer = client_of(user).get(path)
    assert answer.status_code == status
    return html.unescape(answer.content.decode())


@pytest.fixture
def ran(people: People, settings: Settings, tmp_path: Path, runs: Runs) -> Ran:
    """Two runs of a job that have left results."""
    settings.REPOSITORIES = str(tmp_path / "volume")
    make_project(people.owner, people.teammate)
    make_tier("small")
    make_environment("script", name="Script", kind="job", port=None)
    job = launched(people)
    Project.objects.update(files=Project.Files.GIT)
    assert post(people.owner, f"/jobs/{job.pk}/run/", {**MACHINE, "command": "again"})[0] == 302
    (tmp_path / "volume" / "churn.git").symlink_to(tmp_path / "volume" / "alpha.git")
    executions = [Execution.objects.get(run=run) for run in JobRun.objects.filter(job=job).order_by("number")]
    for execution, files in zip(executions, (ONE, OTHER), strict=True):
        run = runs(results="results", results_bytes=2**20).prepare()
        (run.work / "results").mkdir()
        for name, content in files.items():
            (run.work / "results" / name).write_bytes(content)
        report = run.save()
        columns = {name: report[name] for name in ("results", "results_files", "results_bytes")}
        RunFiles.objects.create(execution=execution, **columns, results_problem="2 files are not kept, because")
        write_frozen(execution, spec={**execution.spec, "files": {"branch": "main"}})
    return Ran(job, executions)


def test_run_lists_its_results_and_what_was_dropped(people: People, ran: Ran) -> None:
    execution = ran.executions[0]
    path = reverse("execution-results", args=[execution.pk])
    for who in (people.owner, people.teammate):
        page = text(who, f"/executions/{execution.pk}/")
        assert "Results: 5 files" in page and path in page
        assert "2 files are not kept, because." in page
    shown = text(people.teammate, path)
    commit = RunFiles.objects.get(pk=execution.pk).results
    for name in ONE:
        assert f"?at={commit}&path={name}" in shown
    assert f'<img class="file-image" src="/projects/churn/files/download/?at={commit}&path=plot.png"' in shown
    assert "2 files are not kept, because." in shown
    shown = text(people.owner, f"/projects/churn/files/?at={commit}&path=log.txt")
    assert "<b>" in shown


def test_two_runs_are_compared_file_by_file(people: People, ran: Ran) -> None:
    shown = text(people.teammate, ran.compare)
    assert "Only of run 1" in shown and "only-one" in shown
    assert "Only of run 2" in shown and "only-other" in shown
    assert " a\n-<b>\n+B\n c" in shown
    assert "Not text." in shown
    assert "2 files are the same in both" in shown
    assert "-<b>" not in client_of(people.owner).get(ran.compare).content.decode()
    assert 'id="results-title"' not in text(people.operator, ran.compare), "results are for those who contribute"
    RunFiles.objects.filter(pk=ran.executions[1].pk).update(results="")
    assert "Only of run 1" in text(people.owner, ran.compare)
    RunFiles.objects.update(results="")
    assert 'id="results-title"' not in text(people.owner, ran.compare)


def test_results_beside_remote_repository_are_shown_without_local_files(people: People, ran: Ran) -> None:
    other = upload(Repositories(settings.REPOSITORIES).of("churn"), "", {"log.txt": b"left behind"}, author="alice")
    Project.objects.update(files=Project.Files.REMOTE)
    commit = RunFiles.objects.get(pk=ran.executions[0].pk).results
    files = "/projects/churn/files/"
    assert f"?at={commit}&path=log.txt" in text(
        people.teammate, reverse("execution-results", args=[ran.executions[0].pk])
    )
    assert " a\n-<b>\n+B\n c" in text(people.teammate, ran.compare)
    shown = text(people.teammate, f"{files}?at={commit}&path=log.txt")
    assert "<b>\nc" in shown and "In a remote repository" not in shown and f"{files}history/" not in shown
    answer, content = async_to_sync(download)(people, f"at={commit}&path=plot.png")
    assert (answer.status_code, content) == (200, PIXEL)
    for at in (other, "main", ""):
        assert "In a remote repository" in text(people.owner, f"{files}?at={at}&path=log.txt")
        text(people.owner, f"{files}download/?at={at}&path=log.txt", 404)
    text(people.stranger, f"{files}?at={commit}&path=log.txt", 404)
    text(people.operator, f"{files}download/?at={commit}&path=log.txt", 403)


def test_results_that_cannot_be_read_are_said(people: People, ran: Ran, settings: Settings, tmp_path: Path) -> None:
    path = reverse("execution-results", args=[ran.executions[0].pk])
    settings.REPOSITORIES = str(tmp_path / "elsewhere")
    assert "cannot be read now" in text(people.owner, path, 503)
    assert "cannot be read now" in text(people.owner, ran.compare)
    Project.objects.update(files=Project.Files.VOLUME)
    assert "no longer in Git" in text(people.owner, path, 503)
