"""What the browser tests of alerts and announcements put on the stage."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone

from dashboard.alerts import page as pages
from dashboard.announcements import records as announced
from grid.models import Alert, AlertSilence, Announcement
from tests.browser import executing
from tests.browser.server import Stage

_period = pytest.MonkeyPatch()
LONG = "The database has taken longer than a second for each write within the last five minutes, and everybody waits for it."
LONG_ANNOUNCEMENT = (
    "Compute Grid is upgraded on Sunday. Save what you have in memory, push what you want to keep, and expect the notebooks that are "
    "still running afterwards to be a little slower for an hour, because images are pulled again on every node of the cluster."
)


async def quick(stage: Stage) -> None:
    """A team at work and no alerts; open pages look for one a few times a second, instead of every ten."""
    for name, seconds in (("LOOK_SECONDS", 0.2), ("SPREAD_SECONDS", 0.1), ("KEPT_SECONDS", 0.1)):
        _period.setattr(pages, name, seconds)
    _period.setattr(pages.AlertsPage, "tick_seconds", 0.3)
    await end_of_all()
    await executing.team(stage)


async def critical(stage: Stage) -> None:
    await _fire("NoControllerLeads", "page", "No controller leads.", runbook="no-controller-leads")


async def several(stage: Stage) -> None:
    """Four critical ones with long words, one of a node and its pool, some that are over, and silences."""
    _period.setattr(settings, "ALERTMANAGER_URL", "http://alertmanager.example")
    for number in range(4):
        await _fire(f"ComputeGridDatabaseWritesAreSlow{number}", "page", LONG, runbook="no-controller-leads")
    await _fire(
        "NodeNotReady", "ticket", "A node is not ready.", node="node-a", pool="default", namespace="a", pod="b" * 60
    )
    now = timezone.now()
    await Alert.objects.filter(name__endswith="3").aupdate(heard_at=now - timedelta(hours=6))
    for number in range(3):
        await Alert.objects.acreate(
            fingerprint=f"over{number}", name="Over", severity="page", started_at=now, ended_at=now, heard_at=now
        )
    for number, problem in enumerate(("", "Alertmanager did not answer within 10 seconds.")):
        await AlertSilence.objects.acreate(
            name="NodeNotReady", matchers={"alertname": "NodeNotReady", "node": f"node-{number}"}, reason=LONG * (1 + number),
            author_name="olga-operator", until_at=now + timedelta(hours=1), alertmanager_problem=problem,
        )  # fmt: skip


async def end(stage: Stage) -> None:
    _period.undo()
    await end_of_all()


async def end_of_all() -> None:
    await Alert.objects.all().adelete()
    await AlertSilence.objects.all().adelete()


async def _fire(name: str, severity: str, summary: str, *, runbook: str = "", **labels: str) -> None:
    def fire() -> None:
        now = timezone.now()
        Alert.objects.create(
            fingerprint=name, name=name, severity=severity, labels={"alertname": name, **labels},
            annotations={"summary": summary, "runbook": runbook}, started_at=now, heard_at=now,
        )  # fmt: skip

    await sync_to_async(fire)()


async def quick_announcements(stage: Stage) -> None:
    """A team at work and no announcements; open pages look for one a few times a second, instead of twice a minute."""
    for name, seconds in (("LOOK_SECONDS", 0.2), ("SPREAD_SECONDS", 0.1), ("KEPT_SECONDS", 0.1)):
        _period.setattr(announced, name, seconds)
    await Announcement.objects.all().adelete()
    await executing.team(stage)


async def two_announcements(stage: Stage) -> None:
    """A long warning with maintenance, a short text, and one that has ended."""
    await sync_to_async(_write_two)()


async def end_announcements(stage: Stage) -> None:
    _period.undo()
    await Announcement.objects.all().adelete()


def _write_two() -> None:
    now, hour = timezone.now(), timedelta(hours=1)
    Announcement.objects.create(
        text=LONG_ANNOUNCEMENT,
        severity="warning",
        from_at=now - hour,
        until_at=now + 12 * hour,
        no_launches_from=now - hour / 2,
        author_name="olga-operator",
    )
    Announcement.objects.create(text="The registry is slow.", from_at=now - hour, author_name="ada-admin")
    Announcement.objects.create(
        text="The GPUs are back.", from_at=now - 9 * hour, until_at=now - hour, author_name="olga-operator"
    )
