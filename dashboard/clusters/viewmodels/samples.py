"""A cluster over time, for its chart and the equivalent table: thinned samples and scale events; pure.

A scale event is a change of the desired number of workers. The samples show that it happened, the stored history shows why: the
autoscaler's own events, and changes by people.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

from dashboard.clusters.viewmodels.clusters import ClusterRecord
from dashboard.executions.viewmodels.execution import LifecycleLine
from dashboard.nodes.viewmodels.pool_history import evenly_spread
from dashboard.shell.viewmodels import charts
from grid.core.reasons import ANYBODY
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import plural

POINTS = 500
TABLE_ROWS = 60
_CLOSE = timedelta(seconds=45)  # a sample is written every 15 seconds, and the history one reconciliation later
_RESCALE = Expression(r"(?s)New size: (\d+); reason: (.*)")
_CAUSES = {
    "All metrics below target": _("everything that is measured is below its target."),
    "Current number of replicas above Spec.MaxReplicas": _("there were more than the maximum."),
    "Current number of replicas below Spec.MinReplicas": _("there were fewer than the minimum."),
}
_ABOVE_TARGET = {
    "cpu ": _("CPU use is above its target."),
    "memory ": _("memory use is above its target."),
    "external metric": _("the framework has more tasks waiting than the workers can take."),
}


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
        workers = plural(self.after, "worker", "workers")
        if self.before is None:
            change = _("To {workers}", workers=workers)
        elif self.after > self.before:
            change = _("Grows from {before} to {workers}", before=self.before, workers=workers)
        else:
            change = _("Shrinks from {before} to {workers}", before=self.before, workers=workers)
        return f"{change}: {self.cause}" if self.cause else f"{change}."


@dataclass(frozen=True, slots=True)
class SampleRow:
    at: datetime
    ready: int | None
    wanted: int | None
    cpu: str = ""
    memory: str = ""
    pending: str = ""
    event: str = ""


def thinned(samples: Sequence[SamplePoint], limit: int = POINTS) -> list[SamplePoint]:
    """Return at most `limit` samples, spread over time, that keep peaks and dips: of each stretch the fewest ready and most wanted."""
    if len(samples) <= limit:
        return list(samples)
    stretches = max(1, limit // 2 - 1)
    first, last = samples[0], samples[-1]
    width = (last.at - first.at) / stretches or timedelta(microseconds=1)
    kept = {first.at: first, last.at: last}
    for _stretch, some in groupby(samples, key=lambda sample: min(int((sample.at - first.at) / width), stretches - 1)):
        within = list(some)
        extremes = (min(within, key=lambda sample: sample.ready), max(within, key=lambda sample: sample.wanted))
        kept |= {sample.at: sample for sample in extremes}
    return [kept[at] for at in sorted(kept)]


@dataclass(frozen=True, slots=True)
class _SizeChange:
    """A line of history about the number of workers, with the `size` if it says so; a repeated event has the time of the first."""

    at: datetime
    size: int | None
    cause: str
    is_repeated: bool


def scale_events(samples: Sequence[SamplePoint], history: Iterable[LifecycleLine]) -> list[ScaleEvent]:
    """Return the changes that the samples show, with their causes from the history, and those in the history alone; oldest first."""
    lines = [change for line in history if (change := _size_change(line)) is not None]
    unused = list(lines)
    events: list[ScaleEvent] = []
    for before, after in pairwise(samples):
        if before.wanted == after.wanted:
            continue
        first, last = before.at - _CLOSE, after.at + _CLOSE
        near = [line for line in unused if first <= line.at <= last and line.size in (None, after.wanted)]
        if near:
            # After a person's change the autoscaler reports one as well: it is the same change, with the person as its cause.
            why = min(near, key=lambda line: line.size is not None)
            unused = [line for line in unused if line not in near]
            at = max(before.at, min(why.at, after.at))
            cause = why.cause
        else:
            again = [line for line in lines if line.is_repeated and line.size == after.wanted and line.at <= after.at]
            at, cause = after.at, again[-1].cause if again else ""
        events.append(ScaleEvent(at, before.wanted, after.wanted, cause))
    events += [ScaleEvent(line.at, None, line.size, line.cause) for line in unused if line.size is not None]
    return sorted(events, key=lambda event: event.at)


def cause_in_words(reason: str) -> str:
    """Return Kubernetes' reason, such as "cpu resource utilization (percentage of request) above target", in plain words."""
    if reason.endswith("above target"):
        for start, words in _ABOVE_TARGET.items():
            if reason.startswith(start):
                return words
    return _CAUSES.get(reason) or (f"{reason}." if reason else "")


def rescale_words(message: str) -> str:
    """Return the autoscaler's message of a change in plain words: "To 16 workers: CPU use is above its target."."""
    match = _RESCALE.search(message)
    return ScaleEvent(datetime.min, None, int(match[1]), cause_in_words(match[2].strip())).words if match else message


def chart(cluster: ClusterRecord, samples: Sequence[SamplePoint], events: Sequence[ScaleEvent]) -> dict[str, Any]:
    """Return the chart of the workers, as `static/chart.js` draws it. Times are seconds since 1970; a target of 0 is not drawn."""
    workers = charts.ChartScale("workers", top=2, label=_("workers"), is_whole=True)
    ready, wanted = [sample.ready for sample in samples], [sample.wanted for sample in samples]
    cpu, memory = [sample.cpu_percent for sample in samples], [sample.memory_percent for sample in samples]
    lines = [
        charts.ChartLine("ready", _("ready"), ready, "workers", "--chart-ready", is_stepped=True),
        charts.ChartLine("wanted", _("wanted"), wanted, "workers", "--chart-wanted", charts.DOTS, is_stepped=True),
        charts.ChartLine("cpu", _("CPU"), cpu, "%", "--chart-cpu", charts.LONG_DASHES, 1.5),
        charts.ChartLine("memory", _("memory"), memory, "%", "--chart-memory", charts.DASH_DOT, 1.5),
    ]
    targets = (
        ("cpu", _("CPU target"), cluster.target_cpu, charts.DASHES),
        ("memory", _("memory target"), cluster.target_memory, charts.FINE_DOTS),
    )
    for name, label, target, dash in targets:
        if cluster.autoscale and target:
            lines.append(
                charts.ChartLine(f"{name}-target", label, [target] * len(samples), "%", f"--chart-{name}", dash, 1)
            )
    return {
        "times": [int(sample.at.timestamp()) for sample in samples],
        "charts": {
            "workers": charts.chart_values((workers, charts.ChartScale("%", top=100, unit=" %", is_right=True)), lines)
        },
        "events": [
            {
                "at": int(event.at.timestamp()),
                "grows": event.before is None or event.after > event.before,
                "words": event.words,
            }
            for event in events[-POINTS:]
        ],
    }


def sample_rows(samples: Sequence[SamplePoint], events: Sequence[ScaleEvent]) -> list[SampleRow]:
    """Return the table's rows, newest first: the latest scale events in up to half of the rows, and evenly spread samples in the rest."""
    shown_events = list(events[-TABLE_ROWS // 2 :])
    rows = [
        SampleRow(
            sample.at,
            sample.ready,
            sample.wanted,
            cpu="" if sample.cpu_percent is None else f"{sample.cpu_percent} %",
            memory="" if sample.memory_percent is None else f"{sample.memory_percent} %",
            pending="" if sample.pending_tasks is None else str(sample.pending_tasks),
        )
        for sample in evenly_spread(samples, TABLE_ROWS - len(shown_events))
    ]
    rows += [SampleRow(event.at, None, event.after, event=event.words) for event in shown_events]
    return sorted(rows, key=lambda row: row.at, reverse=True)


def _size_change(line: LifecycleLine) -> _SizeChange | None:
    if line.reason == "SuccessfulRescale" and (match := _RESCALE.search(line.message)):
        return _SizeChange(line.at, int(match[1]), cause_in_words(match[2].strip()), line.count > 1)
    return _SizeChange(line.at, None, line.words(ANYBODY), False) if line.reason == "Resized" else None
