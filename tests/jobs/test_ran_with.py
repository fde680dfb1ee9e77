"""The record of all that a run ran with: shown, sent as JSON, compared and repeated; no secret's value in it."""

import html
import json
from typing import Any

import pytest
from django.db import connection

from grid.models import Environment, Execution, HardwareTier, Job, StoredSecret
from tests.conftest import People
from tests.jobs.test_jobs_pages import HOSTILE, launched, page, post, script as script
from tests.jobs.test_run_metrics import ends
from tests.shell.browsing import client_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
DIGEST = "docker.io/library/python@sha256:" + "b" * 64
VALUE = "hunter2-of-the-environment"


@pytest.fixture
def ran(people: People, script: Environment) -> Execution:
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


def test_record_page_shows_request_and_run_without_secret_values(people: People, ran: Execution) -> None:
    answer = client_of(people.owner).get(f"/executions/{ran.pk}/record/").content.decode()
    assert HOSTILE not in answer and VALUE not in answer and "sealed" not in answer
    shown = html.unescape(answer)
    for text in ("python train.py", "training", "SEED", DIGEST, "node-7", "API_KEY", "DB_PASSWORD"):
        assert text in shown, text
    assert f'href="/executions/{ran.pk}/record/"' in page(people.owner, f"/executions/{ran.pk}/")


def test_record_file_has_same_data_for_programs(people: People, ran: Execution) -> None:
    record = record_of(people, ran)
    assert VALUE not in json.dumps(record)
    assert (record["command"], record["folder"], record["variables"]["SEED"]) == ("python train.py", "training", "7")
    assert (record["image_id"], record["node"], record["exit_code"]) == (DIGEST, "node-7", 0)
    assert (record["environment_variables"], record["secrets"]) == (["API_KEY"], ["DB_PASSWORD"])
    assert (record["tier"]["id"], record["run"], record["attempt"]) == ("small", 1, 1)


def test_run_again_shows_current_tier_and_otherwise_the_record(
    people: People, ran: Execution, script: Environment
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
    assert record_of(people, again)["variables"] == record_of(people, ran)["variables"]


def test_unreadable_record_is_reported_as_gone(people: People, ran: Execution) -> None:
    with connection.cursor() as cursor:  # what a later version has written, for example
        cursor.execute("UPDATE grid_execution SET spec = %s WHERE id = %s", ['{"kind": "job"}', ran.pk])
    assert client_of(people.owner).get(f"/executions/{ran.pk}/record/").status_code == 404
    assert client_of(people.owner).get(f"/jobs/{Job.objects.get().pk}/again/1/").status_code == 200
