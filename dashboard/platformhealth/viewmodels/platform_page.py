"""The page of the platform's health: lights, incidents of the last 30 days, workloads and periodic tasks; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from dashboard.platformhealth.viewmodels.platform_health import Health, HealthPart
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.decoding import prepared
from grid.core.translation import gettext as _
from grid.core.wording import exact_duration, plural
from grid.database.periodic import RunsIn, TaskRecord
from grid.platformhealth.facts import Light, Workload
from grid.platformhealth.taskhealth import task_state
from grid.platformhealth.versions import VersionLine

OLD = timedelta(minutes=2)  # of a report; the controller looks twice a minute
LATELY = timedelta(hours=1)
SHOWN_DAYS = 30
_RUNS_IN = {RunsIn.LEADER: _("Leading controller"), RunsIn.EVERY_PROCESS: _("This web process")}
_NEVER = _("Not known: no controller has looked yet. It looks within half a minute of its start.")


@dataclass(frozen=True, slots=True)
class WorkloadLine:
    workload: Workload = field(hash=False)  # its labels have no hash
    status: StatusLine


class IncidentLine(msgspec.Struct, frozen=True):
    """`ended_at` is None while it continues."""

    name: str
    sentence: str
    at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class IncidentsView:
    lines: tuple[IncidentLine, ...]
    days: int = SHOWN_DAYS


@dataclass(frozen=True, slots=True)
class WorkloadsView:
    """`troubles` say what cannot be read; `checked_at` is None before the first look."""

    lines: tuple[WorkloadLine, ...]
    troubles: tuple[str, ...]
    checked_at: datetime | None


@dataclass(frozen=True, slots=True)
class PeriodicTaskLine:
    """A periodic task; `started_at` and `took` are of its last run, None and "" before the first has ended."""

    name: str
    runs_in: str
    status: StatusLine
    sentence: str
    every: str
    started_at: datetime | None
    took: str
    failures: int


def light_parts(lights: Sequence[Light], checked_at: datetime | None, now: datetime) -> tuple[HealthPart, ...]:
    """Return the lights that the controller has stored. Old ones say nothing of now, only what was seen last."""
    if checked_at is None:
        return (HealthPart(_("Services of the cluster"), "wait", _NEVER),)
    if now - checked_at <= OLD:
        return tuple(HealthPart(light.name, light.severity, light.sentence) for light in lights)
    then = _("Not known since the controller looked last. Then: {sentence}")
    return tuple(HealthPart(light.name, "wait", then.format(sentence=light.sentence), checked_at) for light in lights)


def workload_lines(workloads: Iterable[Workload], now: datetime) -> tuple[WorkloadLine, ...]:
    """Return them with the worst first."""
    by_name = sorted(workloads, key=lambda workload: (workload.namespace, workload.name))
    return tuple(sorted((_line(each, now) for each in by_name), key=lambda line: line.status.severity == "ok"))


def _line(workload: Workload, now: datetime) -> WorkloadLine:
    restarts = (pod.restarted_at for pod in workload.pods if pod.restarted_at is not None)
    restarted = sum(timedelta() <= now - at < LATELY for at in restarts)
    is_short = workload.ready < workload.wanted
    if restarted and not is_short:
        return WorkloadLine(workload, StatusLine("wait", _("{pods} restarted", pods=plural(restarted, "pod", "pods"))))
    words = _("{ready} of {wanted} ready", ready=workload.ready, wanted=workload.wanted)
    return WorkloadLine(workload, StatusLine("problem" if is_short else "ok", words))


def task_lines(tasks: Iterable[TaskRecord], read_at: datetime) -> tuple[PeriodicTaskLine, ...]:
    """Return them as they were when they were read, with the worst first."""
    judged = [(task, task_state(task, read_at)) for task in tasks]
    ranks = ("problem", "wait", "neutral", "ok")
    judged.sort(key=lambda pair: (ranks.index(pair[1].severity), pair[0].name.lower()))
    return tuple(
        PeriodicTaskLine(
            name=task.name,
            runs_in=_RUNS_IN[task.where],
            status=StatusLine(state.severity, state.word),
            sentence=state.sentence,
            every=exact_duration(round(task.interval)),
            started_at=task.started_at,
            took="" if task.seconds is None else f"{task.seconds:,.2f} s",
            failures=task.failures,
        )
        for task, state in judged
    )


def platform_fragments(
    lights: Health,
    incidents: Iterable[object],
    workloads: WorkloadsView,
    versions: tuple[VersionLine, ...],
    tasks: tuple[PeriodicTaskLine, ...],
) -> list[Fragment]:
    known = msgspec.convert(tuple(incidents), prepared(tuple[IncidentLine, ...]), from_attributes=True)
    return [
        Fragment("platform-checked", "platformhealth/fragments/platform_checked.html", workloads.checked_at),
        Fragment("platform-lights", "platformhealth/fragments/platform_lights.html", lights),
        Fragment("platform-incidents", "platformhealth/fragments/platform_incidents.html", IncidentsView(known)),
        Fragment("platform-workloads", "platformhealth/fragments/platform_workloads.html", workloads),
        Fragment("platform-tasks", "platformhealth/fragments/platform_tasks.html", tasks),
        Fragment("platform-versions", "platformhealth/fragments/platform_versions.html", versions),
    ]
