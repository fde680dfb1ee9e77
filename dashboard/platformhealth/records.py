"""Reads what the controller has stored of the platform's health."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec
from django.db import DatabaseError
from django.db.models import Count, Max, Q, QuerySet, Sum

from dashboard.platformhealth.viewmodels.platform_health import HealthPart
from dashboard.platformhealth.viewmodels.platform_page import SHOWN_DAYS, light_parts
from grid.clusters.frameworkversions import environment_lines
from grid.core.decoding import prepared
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.database import write_probe as writing
from grid.database.periodic import TaskRecord
from grid.database.trouble import trouble_of
from grid.environments.revisions import declared_by
from grid.models import Environment, Execution, PlatformIncident, PlatformReport
from grid.platformhealth.facts import Light, Workload
from grid.platformhealth.versions import VersionLine

_MOST = 200
_MOST_LINES = 50
_KEPT_SECONDS = 300.0


class StoredHealth(msgspec.Struct, frozen=True):
    """A report as it is stored, and the incidents; `checked_at` is None before the first look."""

    checked_at: datetime | None = None
    lights: tuple[Light, ...] = ()
    workloads: tuple[Workload, ...] = ()
    troubles: tuple[str, ...] = ()
    incidents: Sequence[PlatformIncident] = ()
    versions: tuple[VersionLine, ...] = ()
    tasks: tuple[TaskRecord, ...] = ()


def read_health(data_plane: str, now: datetime) -> StoredHealth:
    """Return the last report, and the incidents of the last 30 days, those that go on first and then the newest."""
    report = PlatformReport.objects.filter(pk=data_plane).first()
    since = now - timedelta(days=SHOWN_DAYS)
    recent = PlatformIncident.objects.filter(Q(ended_at=None) | Q(ended_at__gte=since), data_plane=data_plane)
    incidents = sorted(recent.order_by("-at")[:_MOST], key=lambda incident: incident.ended_at is not None)
    stored = (
        msgspec.convert(report, prepared(StoredHealth), from_attributes=True) if report is not None else StoredHealth()
    )
    return msgspec.structs.replace(stored, incidents=incidents)


def stored_parts(data_plane: str, now: datetime) -> tuple[tuple[str, ...], tuple[HealthPart, ...]]:
    """Return what is wrong with the database, and the lights that the controller has stored; no lights when they cannot be read."""
    problems = database_problems()
    try:
        report = PlatformReport.objects.only("lights", "checked_at").filter(pk=data_plane).first()
    except DatabaseError:
        return problems, ()
    lights = msgspec.convert(report.lights if report is not None else (), prepared(tuple[Light, ...]))
    return problems, light_parts(lights, report.checked_at if report is not None else None, now)


def database_problems() -> tuple[str, ...]:
    """Return sentences that say what is wrong with the database or the folders; () when all can be read and written."""
    try:
        Execution.objects.unsettled().exists()
        return tuple(writing.problems())
    except DatabaseError as error:
        trouble = trouble_of(error)
        return (trouble.value if trouble else _("The database does not answer as it should; the log says more."),)


def framework_lines(now: datetime) -> tuple[VersionLine, ...]:
    """Return what is to be said of the frameworks of all environments that are not archived, what is wrong first. A live page asks for it
    again and again, and it takes half a millisecond for each environment: it is kept until one changes, or five minutes."""
    state = _with_frameworks().aggregate(Count("pk"), Max("updated_at"), Sum("current_revision"))
    return _framework_lines(tuple(state.values()), now.timestamp() // _KEPT_SECONDS)


@lru_cache(maxsize=1)
def _framework_lines(state: tuple[object, ...], period: float) -> tuple[VersionLine, ...]:
    environments = list(_with_frameworks().order_by("name"))
    lines = [line for declared in declared_by(environments) for line in environment_lines(declared)]
    lines.sort(key=lambda line: line.severity != "problem")
    if (more := len(lines) - _MOST_LINES) > 0:
        counted = plural(more, "more line", "more lines")
        words = _("{more_lines}. Each environment’s own page has its lines.", more_lines=counted)
        lines[_MOST_LINES:] = [VersionLine(_("Further frameworks of environments"), "neutral", words)]
    return tuple(lines)


def _with_frameworks() -> QuerySet[Environment]:
    return Environment.objects.filter(is_archived=False).exclude(frameworks={})


def framework_lines_of(instance: object) -> tuple[VersionLine, ...]:
    """Return what is to be said of the frameworks of an environment; () of anything else."""
    return environment_lines(declared_by([instance])[0]) if isinstance(instance, Environment) else ()
