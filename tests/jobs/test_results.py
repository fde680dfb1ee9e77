"""The results of runs over HTTP: on the page of a run, listed, and compared; on real repositories."""

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection
from django.urls import reverse
from pytest_django.fixtures import Settings

from grid.files.changing import upload
from grid.files.repositories import Repositories
from grid.models import Environment, Execution, HardwareTier, Job, JobRun, Project, RunFiles, StoredSecret, User
from tests.conftest import People, client_of
from tests.executions.executing import make_environment, make_project, make_tier
from tests.files.conftest import Runs, repository, runs
from tests.files.test_files import PIXEL, download
from tests.jobs.test_jobs_pages import HOSTILE, MACHINE, launched, page, post, script as script
from tests.jobs.test_run_metrics import ends
from tests.support.frozen import write_frozen

__all__ = ["repository", "runs"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
ONE = {"same": b"1", "only-one": b"1", "log.txt": b"a\n<b>\nc\n", "plot.png": PIXEL, "weights": b"\0\1"}
OTHER = {"same": b"1", "only-other": b"1", "log.txt": b"a\nB\nc\n", "plot.png": PIXEL, "weights": b"\0\2"}
DIGEST = "docker.io/library/python@sha256:" + "b" * 64
VALUE = "hunter2-of-the-environment"


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


@pytest.fixture
def ran_recorded(people: People, script: Environment) -> Execution:
    """A run that has ended, of an environment with a variable, a project with a secret, on a node with an image."""
    script.variables = {"API_KEY": VALUE}
    script.save()
    StoredSecret.objects.create(owner=people.owner, name="DB_PASSWORD", ciphertext="sealed", changed_by="alice")
    job = launched(people, command="python train.py", variables=f"SEED=7\nNOTE={HOSTILE}", folder="training")
    Execution.objects.update(image_id=DIGEST, node_name="node-7")
    return ends(job, 1)


def record_of(people: People, execution: Execution) -> dict[str, Any]:
    answer = client_of(people.owner).get(f"/executions/{execution.pk}/record/?download=1")
    assert answer["Content-Disposition"] == f'attachment; filename="{execution.object_name}-record.json"'
    record: dict[str, Any] = json.loads(answer.content)
    return record


def test_record_page_shows_request_and_run_without_secret_values(people: People, ran_recorded: Execution) -> None:
    answer = client_of(people.owner).get(f"/executions/{ran_recorded.pk}/record/").content.decode()
    assert HOSTILE not in answer and VALUE not in answer and "sealed" not in answer
    shown = html.unescape(answer)
    for text in ("python train.py", "training", "SEED", DIGEST, "node-7", "API_KEY", "DB_PASSWORD"):
        assert text in shown, text
    assert f'href="/executions/{ran_recorded.pk}/record/"' in page(people.owner, f"/executions/{ran_recorded.pk}/")


def test_record_file_has_same_data_for_programs(people: People, ran_recorded: Execution) -> None:
    record = record_of(people, ran_recorded)
    assert VALUE not in json.dumps(record)
    assert (record["command"], record["folder"], record["variables"]["SEED"]) == ("python train.py", "training", "7")
    assert (record["image_id"], record["node"], record["exit_code"]) == (DIGEST, "node-7", 0)
    assert (record["environment_variables"], record["secrets"]) == (["API_KEY"], ["DB_PASSWORD"])
    assert (record["tier"]["id"], record["run"], record["attempt"]) == ("small", 1, 1)


def test_run_again_shows_current_tier_and_otherwise_the_record(
    people: People, ran_recorded: Execution, script: Environment
) -> None:
    job = Job.objects.get()
    HardwareTier.objects.filter(pk="small").update(cores="2")
    script.image = "python:4"
    script.save()
    shown = page(people.owner, f"/jobs/{job.pk}/again/1/")
    assert "The hardware tier was changed since" in shown and "CPU: 2 now, 1 then." in shown
    status, where, _ = post(people.owner, f"/jobs/{job.pk}/again/1/", {"token": "t"})
    assert (status, where.startswith("/executions/")) == (302, True)
    again = Execution.objects.get(run__number=2)
    assert again.spec["environment"]["image"] == DIGEST
    assert record_of(people, again)["variables"] == record_of(people, ran_recorded)["variables"]


def test_unreadable_record_is_reported_as_gone(people: People, ran_recorded: Execution) -> None:
    with connection.cursor() as cursor:  # what a later version has written, for example
        cursor.execute("UPDATE grid_execution SET spec = %s WHERE id = %s", ['{"kind": "job"}', ran_recorded.pk])
    assert client_of(people.owner).get(f"/executions/{ran_recorded.pk}/record/").status_code == 404
    assert client_of(people.owner).get(f"/jobs/{Job.objects.get().pk}/again/1/").status_code == 200
