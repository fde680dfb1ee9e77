"""A report of the platform's health with something of everything, as the controller stores it."""

from datetime import datetime, timedelta

import msgspec
from django.utils import timezone
from msgspec.structs import replace

from grid.database.periodic import TaskRecord
from grid.models import ApiCheckRun, Environment
from grid.platformhealth.apicheckresults import ApiCheckResult
from grid.platformhealth.facts import Light, PlatformPod, Workload
from grid.platformhealth.keeper import record
from grid.platformhealth.reading import PlatformLook
from grid.platformhealth.versions import VersionLine
from tests.support.builders import MOMENT

PODS = (
    PlatformPod("kube-system", "dns-1", True, restarts=2, restarted_at=MOMENT),
    PlatformPod("kube-system", "dns-2", False, waits_for="CrashLoopBackOff"),
)
WORKLOADS = (
    Workload("Deployment", "kube-system", "metrics-server", 1, 1, MOMENT),
    Workload("Deployment", "kube-system", "coredns", 1, 2, MOMENT, {}, PODS),
)
BAD = Light("dns", "DNS", "problem", "No pod of <coredns> is ready.")
VERSIONS = (VersionLine("policy/v1 x", "problem", "Not served: x.", "https://kubernetes.io/"),)
WELL = Light("database", "Database", "ok", "It answered within 3 ms.")


def tasks_at(now: datetime) -> tuple[TaskRecord, ...]:
    """Return a task in each state: well, failing for long, failing since a moment, hanging, and not begun."""

    def ago(seconds: float) -> datetime:
        return now - timedelta(seconds=seconds)

    well = TaskRecord("budgets", 60.0, started_at=ago(20), succeeded_at=ago(19), due_at=ago(-40), seconds=0.25)
    failing = TaskRecord("silences", 10.0, started_at=ago(5), due_at=ago(-5), seconds=3.0, failures=41)
    return (
        well,
        replace(failing, failures_in_a_row=40, failing_since=ago(600), error="<Alertmanager> does not answer"),
        replace(failing, name="node tasks", failures_in_a_row=1, failing_since=ago(5), error="Refused"),
        replace(well, name="clean-up", interval=3600.0, started_at=ago(6000), due_at=None),
        TaskRecord("schedules", 5.0),
    )


def store(*lights: Light, minutes_ago: float = 0.0) -> None:
    """Store two looks in a row, so that what is bad is an incident."""
    at = timezone.now() - timedelta(minutes=minutes_ago)
    for number in range(2):
        answer = PlatformLook(lights, WORKLOADS, ("Namespace ingress-nginx is not shown: no right.",))
        record("local", answer, [WELL], at - timedelta(seconds=30 * (1 - number)), VERSIONS, tasks_at(at))


API_CHECKS = (
    ApiCheckResult("pods", "Create, change and page through pods", "passed", "", 0.042),
    ApiCheckResult("watch", "Watch pods", "failed", 'pods is <forbidden>: unable to "watch"', 10.0),
    ApiCheckResult("jobs", "Create a suspended Job", "no right", "Missing in compute-grid: create jobs.batch."),
)


def store_api_checks(**fields: object) -> ApiCheckRun:
    """Store a run of the checks with one of each outcome."""
    now = timezone.now()
    values: dict[str, object] = {
        "data_plane": "local",
        "asked_by_name": "ada",
        "asked_at": now - timedelta(minutes=2),
        "started_at": now - timedelta(minutes=2),
        "ended_at": now - timedelta(minutes=1),
        "token": "abcd1234",
        "namespace": "compute-grid-api-check-abcd1234",
        "results": msgspec.to_builtins(API_CHECKS),
    }
    return ApiCheckRun.objects.create(**values | fields)


def store_old_environment() -> None:
    """Store a hidden environment whose Ray does not go with its Python, and whose requirements install another one."""
    old = Environment.objects.create(
        id="old-ray", name="Old Ray", image="python:3.9", port=8888, frameworks={"ray": "2.60.0"}, is_visible=False
    )
    old.revisions.create(
        number=2, image="built", base=old.revisions.get(), requirements="ray==2.40.0\nfoo", state="ready"
    )
    Environment.objects.filter(pk=old.pk).update(current_revision=2, image="built")
