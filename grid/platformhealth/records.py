"""Stores a look at the platform, and the incidents that begin and end with it."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from django.db import transaction

from grid.core.translation import gettext as _
from grid.database.periodic import TaskRecord
from grid.models import PlatformIncident, PlatformReport
from grid.platformhealth import outages
from grid.platformhealth.facts import Light
from grid.platformhealth.incidents import UNATTENDED, Streak, judge
from grid.platformhealth.reading import PlatformLook
from grid.platformhealth.versions import VersionLine

UNATTENDED_SENTENCE = _("Nobody looked after the platform: no controller worked, or it did not reach its database.")


def ping() -> None:
    """Ask the database for one row."""
    PlatformReport.objects.order_by("pk").values_list("pk").first()


def record(
    data_plane: str,
    reading: PlatformLook,
    ours: Sequence[Light],
    now: datetime,
    versions: Sequence[VersionLine] = (),
    tasks: Sequence[TaskRecord] = (),
) -> None:
    """Store the look, with the lights of what the controller itself asks, and how its periodic tasks go.
    Two controllers at once store one after the other, and begin each incident once."""
    lights = (*reading.lights, *ours)
    with transaction.atomic():
        report, is_first = PlatformReport.objects.select_for_update().get_or_create(
            pk=data_plane, defaults={"checked_at": now}
        )
        is_unattended = not is_first and now - report.checked_at > UNATTENDED
        if is_unattended and not outages.explains_absence(data_plane, report.checked_at):
            _incident(data_plane, "controller", _("Controller"), UNATTENDED_SENTENCE, report.checked_at, now)
        _turn(data_plane, report, lights, now)
        report.checked_at = now
        report.lights = msgspec.to_builtins(lights)
        report.workloads = msgspec.to_builtins(reading.workloads)
        report.troubles = list(reading.troubles)
        report.versions = msgspec.to_builtins(versions)
        report.tasks = msgspec.to_builtins(tasks)
        report.save()


def _turn(data_plane: str, report: PlatformReport, lights: Sequence[Light], now: datetime) -> None:
    unended = PlatformIncident.objects.filter(data_plane=data_plane, ended_at=None)
    streaks = msgspec.convert(report.streaks, dict[str, Streak])
    judged = judge(lights, streaks, set(unended.values_list("part", flat=True)), now)
    for turn in judged.begun:
        _incident(data_plane, turn.light.key, turn.light.name, turn.light.sentence, turn.at, None)
    for turn in judged.ended:
        unended.filter(part=turn.light.key).update(ended_at=turn.at)
    report.streaks = msgspec.to_builtins(judged.streaks)


def _incident(data_plane: str, part: str, name: str, sentence: str, at: datetime, ended_at: datetime | None) -> None:
    PlatformIncident.objects.create(
        data_plane=data_plane, part=part, name=name, sentence=sentence, at=at, ended_at=ended_at
    )
