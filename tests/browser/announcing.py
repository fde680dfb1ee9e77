"""What the browser tests of announcements put on the stage."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.announcements import records as announced
from grid.models import Announcement
from tests.browser import executing
from tests.browser.server import Stage

_period = pytest.MonkeyPatch()
LONG = (
    "Compute Grid is upgraded on Sunday. Save what you have in memory, push what you want to keep, and expect the notebooks that are "
    "still running afterwards to be a little slower for an hour, because images are pulled again on every node of the cluster."
)


async def quick(stage: Stage) -> None:
    """A team at work and no announcements; open pages look for one a few times a second, instead of twice a minute."""
    for name, seconds in (("LOOK_SECONDS", 0.2), ("SPREAD_SECONDS", 0.1), ("KEPT_SECONDS", 0.1)):
        _period.setattr(announced, name, seconds)
    await Announcement.objects.all().adelete()
    await executing.team(stage)


async def two(stage: Stage) -> None:
    """A long warning with maintenance, a short text, and one that has ended."""
    await sync_to_async(_two)()


async def end(stage: Stage) -> None:
    _period.undo()
    await Announcement.objects.all().adelete()


def _two() -> None:
    now, hour = timezone.now(), timedelta(hours=1)
    Announcement.objects.create(
        text=LONG,
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
