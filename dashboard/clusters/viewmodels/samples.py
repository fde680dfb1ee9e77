"""A cluster over time, for its chart and the equivalent table: thinned samples and scale events; pure.

A scale event is a change of the desired number of workers. The samples show that it happened, the stored history shows why: the
autoscaler's own events, and changes by people.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from dashboard.clusters.viewmodels.clusters import ClusterRecord
from dashboard.executions.viewmodels.execution import LifecycleLine
from dashboard.shell.viewmodels.charts import (
    DASH_DOT,
    DASHES,
    DOTS,
    FINE_DOTS,
    LONG_DASHES,
    ChartLine,
    ChartScale,
    chart_values,
)
from grid.core.reasons import ANYBODY
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import plural

POINTS = 500
TABLE_ROWS = 60
_CLOSE = timedelta(seconds=45)  # a sample is written every 15 seconds, and the history one reconciliation later
_RESCALE = Expression(r"(?s)New size: (\d+); reason: (.*)")
_RESCALE_REASON = "SuccessfulRescale"
_RESIZED = "Resized"


@dataclass(frozen=True, slots=True)
class SamplePoint:
    """The values of one `ClusterSample`; `wanted` is the desired number of workers."""

    at: datetime
    ready: int
    wanted: int
    cpu_percent: int | None
    memory_percent: int | None
    pending_tasks: int | None


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """A change of the desired number of workers; `before` is None when unknown."""

    at: datetime
    before: int | None
    after: int
    cause: str

    @property
    def words(self) -> str:
        if self.before is None:
            change = _("To {workers}", workers=plural(self.after, "worker", "workers"))
        else:
            before, workers = self.before, plural(self.after, "worker", "workers")
            change = (
                _("Grows from {before} to {workers}", before=before, workers=workers)
                if self.after > before
                else _("Shrinks from {before} to {workers}", before=before, workers=workers)
            )
        return f"{change}: {self.cause}" if self.cause else f"{change}."


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One row of the table: a sample or a scale event."""

    at: datetime
    ready: int | None
    wanted: int | None
    cpu: str
    memory: str
    pending: str
    event: str


def thinned(samples: Sequence[SamplePoint], limit: int = POINTS) -> list[SamplePoint]:
    """Return at most `limit` samples, spread over time, that keep peaks and dips: of each stretch the fewest ready and most wanted."""
    if len(samples) <= limit:
        return list(samples)
    stretches = max(1, limit // 2 - 1)
    first, last = samples[0], samples[-1]
    width = (last.at - first.at) / stretches or timedelta(microseconds=1)
    kept: dict[datetime, SamplePoint] = {first.at: first, last.at: last}
    lowest: SamplePoint | None = None
    highest: SamplePoint | None = None
    current = 0
    for one in samples:
        place = min(int((one.at - first.at) / width), stretches - 1)
        if place != current or lowest is None or highest is None:
            kept |= {found.at: found for found in (lowest, highest) if found is not None}
            lowest = highest = one
            current = place
            continue
        if one.ready < lowest.ready:
            lowest = one
        if one.wanted > highest.wanted:
            highest = one
    kept |= {found.at: found for found in (lowest, highest) if found is not None}
    return [kept[at] for at in sorted(kept)]


@dataclass(frozen=True, slots=True)
class _Told:
    """A line of history about the number of workers; `size` is None when the line does not name it. `is_repeated` is set for an event
    with a count above 1: Kubernetes counts a repeated event, at the time of the first."""

    at: datetime
    size: int | None
    cause: str
    is_repeated: bool


def scale_events(samples: Sequence[SamplePoint], lines: Iterable[LifecycleLine]) -> list[ScaleEvent]:
    """Return the changes that the samples show, with their causes from the history, and those in the history alone; oldest first."""
    told = [one for line in lines if (one := _told(line)) is not None]
    unused = list(told)
    found: list[ScaleEvent] = []
    for before, after in pairwise(samples):
        if before.wanted == after.wanted:
            continue
        near = [one for one in unused if _is_about(one, before, after)]
        if near:
            # After a person's change the autoscaler reports one as well: it is the same change, with the person as its cause.
            why = min(near, key=lambda one: one.size is not None)
            unused = [one for one in unused if one not in near]
            at = max(before.at, min(why.at, after.at))
            found.append(ScaleEvent(at, before.wanted, after.wanted, why.cause))
            continue
        again = [one for one in told if one.is_repeated and one.size == after.wanted and one.at <= after.at]
        found.append(ScaleEvent(after.at, before.wanted, after.wanted, again[-1].cause if again else ""))
    found += [ScaleEvent(one.at, None, one.size, one.cause) for one in unused if one.size is not None]
    return sorted(found, key=lambda event: event.at)


def _is_about(one: _Told, before: SamplePoint, after: SamplePoint) -> bool:
    is_near = before.at - _CLOSE <= one.at <= after.at + _CLOSE
    return is_near and one.size in (None, after.wanted)


def cause_in_words(reason: str) -> str:
    """Return Kubernetes' reason, such as "cpu resource utilization (percentage of request) above target", in plain words."""
    known = {
        "All metrics below target": _("everything that is measured is below its target."),
        "Current number of replicas above Spec.MaxReplicas": _("there were more than the maximum."),
        "Current number of replicas below Spec.MinReplicas": _("there were fewer than the minimum."),
    }
    if reason in known:
        return known[reason]
    if reason.startswith("cpu ") and reason.endswith("above target"):
        return _("CPU use is above its target.")
    if reason.startswith("memory ") and reason.endswith("above target"):
        return _("memory use is above its target.")
    if reason.startswith("external metric") and reason.endswith("above target"):
        return _("the framework has more tasks waiting than the workers can take.")
    return f"{reason}." if reason else ""


def rescale_words(message: str) -> str:
    """Return the autoscaler's message of a change in plain words: "To 16 workers: CPU use is above its target."."""
    found = _RESCALE.search(message)
    return ScaleEvent(datetime.min, None, int(found[1]), cause_in_words(found[2].strip())).words if found else message


def chart(cluster: ClusterRecord, samples: Sequence[SamplePoint], events: Sequence[ScaleEvent]) -> dict[str, Any]:
    """Return the chart of the workers, as `static/chart.js` draws it. Times are seconds since 1970; a target of 0 is not drawn."""
    workers = ChartScale("workers", top=2, label=_("workers"), is_whole=True)
    lines = [
        ChartLine("ready", _("ready"), [one.ready for one in samples], "workers", "--chart-ready", is_stepped=True),
        ChartLine(
            "wanted", _("wanted"), [one.wanted for one in samples], "workers", "--chart-wanted", DOTS, is_stepped=True
        ),
        ChartLine("cpu", _("CPU"), [one.cpu_percent for one in samples], "%", "--chart-cpu", LONG_DASHES, 1.5),
        ChartLine("memory", _("memory"), [one.memory_percent for one in samples], "%", "--chart-memory", DASH_DOT, 1.5),
    ]
    targets = (
        ("cpu", _("CPU target"), cluster.target_cpu, DASHES),
        ("memory", _("memory target"), cluster.target_memory, FINE_DOTS),
    )
    for name, label, target, dash in targets:
        if cluster.autoscale and target:
            level = [target] * len(samples)
            lines.append(ChartLine(f"{name}-target", label, level, "%", f"--chart-{name}", dash, 1))
    return {
        "times": [int(one.at.timestamp()) for one in samples],
        "charts": {"workers": chart_values((workers, ChartScale("%", top=100, unit=" %", is_right=True)), lines)},
        "events": [
            {"at": int(one.at.timestamp()), "grows": one.before is None or one.after > one.before, "words": one.words}
            for one in events[-POINTS:]
        ],
    }


def sample_rows(samples: Sequence[SamplePoint], events: Sequence[ScaleEvent]) -> list[SampleRow]:
    """Return the table's rows, newest first: the latest scale events in up to half of the rows, and evenly spread samples in the rest."""
    shown_events = list(events[-TABLE_ROWS // 2 :])
    rows = [
        SampleRow(one.at, one.ready, one.wanted, _percent(one.cpu_percent), _percent(one.memory_percent),
                  "" if one.pending_tasks is None else str(one.pending_tasks), "")
        for one in _spread(samples, TABLE_ROWS - len(shown_events))
    ]  # fmt: skip
    rows += [SampleRow(one.at, None, one.after, "", "", "", one.words) for one in shown_events]
    return sorted(rows, key=lambda row: row.at, reverse=True)


def _told(line: LifecycleLine) -> _Told | None:
    """Parse a line of history; None when it is not about the number of workers."""
    if line.reason == _RESCALE_REASON and (found := _RESCALE.search(line.message)):
        return _Told(line.at, int(found[1]), cause_in_words(found[2].strip()), line.count > 1)
    return _Told(line.at, None, line.words(ANYBODY), False) if line.reason == _RESIZED else None


def _spread(samples: Sequence[SamplePoint], count: int) -> list[SamplePoint]:
    """Return at most `count` evenly spread samples, always with the newest."""
    if len(samples) <= count:
        return list(samples)
    step = (len(samples) - 1) / (count - 1)
    return [samples[round(step * place)] for place in range(count)]


def _percent(value: int | None) -> str:
    return "" if value is None else f"{value} %"
