"""A run that repeats an earlier one runs with the environment as it was then, and with the very image."""

import pytest

from grid.core.errors import Rejected
from grid.executions.launchrequest import JobSettings
from grid.jobs import jobs
from grid.jobs.jobruns import advance_all
from grid.jobs.jobs import environment_by_digest
from grid.models import Execution, Job, JobRun, State
from tests.jobs.test_jobs import LATER, ended, launched, start
from tests.support.shop import NOW, Shop

DIGEST = "sha256:" + "a" * 64


def change_everything(shop: Shop, job: Job) -> None:
    """An admin edits the environment and the tier, and the owner the job."""
    shop.job.image, shop.job.command, shop.job.variables = "python:4", ["other"], {"NEW": "1"}
    shop.job.name = "Other"
    shop.job.save()
    settings = JobSettings(command="second", variables={"SEED": "2"}, folder="other", retries=3)
    jobs.edit(job.pk, title="Renamed", environment=shop.job, tier=shop.tier, settings=settings, now=NOW)


def ran(run: JobRun, image_id: str = "") -> Execution:
    """The run's first attempt has failed on this image."""
    ended(run, State.FAILED)
    execution = run.attempts.get(attempt=1)
    Execution.objects.filter(pk=execution.pk).update(image_id=image_id)
    return execution


def asked(execution: Execution) -> tuple[object, object]:
    """What it runs with, without the numbers of run and attempt."""
    job = {name: value for name, value in execution.spec["job"].items() if name not in ("run", "attempt")}
    return execution.spec["environment"], job


def test_relaunched_run_has_its_original_values(shop: Shop) -> None:
    job = launched(shop, command="first", variables={"SEED": "1"}, folder="training")
    run = start(job, parameters={"lr": "1"})
    first = ran(run)
    change_everything(shop, job)
    again = jobs.start_again(run.pk, by="alice", now=LATER)
    assert asked(again.attempts.get()) == asked(first)
    assert start(job).attempts.get().spec["environment"]["image"] == "python:4"


def test_a_retry_of_a_repeated_run_has_them_too(shop: Shop) -> None:
    job = launched(shop, retries=1, retry_seconds=1)
    run = job.runs.get()
    first = ran(run)
    again = jobs.start_again(run.pk, by="alice", now=LATER)
    change_everything(shop, job)
    ended(again, State.FAILED)
    advance_all({job.pk}, now=LATER)
    advance_all({job.pk}, now=LATER.replace(year=LATER.year + 1))
    assert asked(again.attempts.get(attempt=2)) == asked(first)


def test_environment_archived_since_is_not_launched_again(shop: Shop) -> None:
    run = launched(shop).runs.get()
    ran(run)
    shop.job.is_archived = True
    shop.job.save()
    with pytest.raises(Rejected, match="no longer available"):
        jobs.start_again(run.pk, by="alice", now=LATER)


@pytest.mark.parametrize(
    ("image_id", "image"),
    [
        (f"docker.io/library/python@{DIGEST}", f"docker.io/library/python@{DIGEST}"),
        (f"docker-pullable://registry:5000/team/python@{DIGEST}", f"registry:5000/team/python@{DIGEST}"),
        (DIGEST, "python:3.11"),
        ("", "python:3.11"),
        (f"a b@{DIGEST}", "python:3.11"),
        (f"evil://x@{DIGEST}", "python:3.11"),
        (f"python@{DIGEST}0", "python:3.11"),
    ],
)
def test_only_name_with_digest_replaces_the_image(shop: Shop, image_id: str, image: str) -> None:
    spec = shop.launch(kind="job", environment=shop.job).spec
    spec["environment"]["image"] = "python:3.11"
    environment = environment_by_digest(spec, image_id)
    assert environment is not None and environment.image == image
