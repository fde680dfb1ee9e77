"""The fixtures of tests of pages and of launches that this room uses, and jobs that are launched without a page."""

from typing import Any

from django.utils import timezone

from grid.executions.launchrequest import JobSettings, LaunchRequest
from grid.executions.request import submit
from grid.models import Environment, HardwareTier, Job, Project
from grid.queue.launches import why_not_launch
from tests.conftest import People
from tests.executions.executing import make_environment, make_project, make_tier
from tests.support.pages import clock as clock, cluster as cluster, patient as patient, runtime as runtime
from tests.support.shop import configure as configure, shop as shop


def launch_job(people: People, title: str = "Train", **settings: Any) -> Job:
    """Launch a job of the owner in the project that there is, or a new one."""
    request = LaunchRequest(
        owner=people.owner,
        project=Project.objects.first() or make_project(people.owner, people.teammate),
        environment=Environment.objects.first() or make_environment("script", name="Script", kind="job", port=None),
        tier=HardwareTier.objects.first() or make_tier("small"),
        kind="job",
        title=title,
        job=JobSettings(command="python train.py", **settings),
    )
    return Job.objects.get(pk=submit(request, gate=why_not_launch, now=timezone.now()).pk)
