"""The node pools over the last hours: values of the charts, and rows of the table beside them; pure. A chart has at most 500 moments, so
over a day each stands for three minutes, with the highest value of them: a peak is never lost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

from dashboard.shell.viewmodels import charts as drawing
from dashboard.shell.viewmodels.live import ViewModel
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _
from grid.models.pool import ALL_POOLS

T = TypeVar("T")

RANGES: Mapping[str, int] = {"1h": 60, "6h": 6 * 60, "24h": 24 * 60}  # in minutes
RANGE_WORDS = {"1h": _("the last hour"), "6h": _("the last 6 hours"), "24h": _("the last day")}
RANGE_TITLES = {"1h": _("1 hour"), "6h": _("6 hours"), "24h": _("1 day")}
_LAST_WORDS = {"1h": _("The last hour"), "6h": _("The last 6 hours"), "24h": _("The last day")}
DEFAULT_RANGE = "24h"
POINTS, TABLE_ROWS = 500, 24
GAP = 3  # stretches without a sample that are shown as a gap
_MEBIBYTE = 2**20
_GIBIBYTE_IN_MEBIBYTES = 1024


@dataclass(frozen=True, slots=True)
class PoolPoint:
    """The values of a `PoolSample`, or of several pools' in one minute together. What only samples know is None in a minute without one."""

    minute: int
    nodes: int
    nodes_ready: int
    requested_millicores: int
    allocatable_millicores: int
    used_millicores: int | None
    requested_mebibytes: int
    allocatable_mebibytes: int
    used_mebibytes: int | None
    requested_gpus: int
    allocatable_gpus: int
    pods_waiting: int | None
    executions_running: int | None
    executions_waiting: int | None

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.minute * 60, UTC)


COLUMNS = tuple(field.name for field in fields(PoolPoint))[1:]
_MAY_BE_UNKNOWN = (
    *("used_millicores", "used_mebibytes", "pods_waiting"),
    *("executions_running", "executions_waiting"),
)


@dataclass(frozen=True, slots=True)
class PoolMoments:
    """What a chart shows: minutes, and the values at each; None where nothing is known."""

    minutes: tuple[int, ...]
    points: tuple[PoolPoint | None, ...]
    is_from_prometheus: bool = False

    @property
    def known(self) -> list[PoolPoint]:
        return [point for point in self.points if point is not None]


def width_of(minutes: int, most: int = POINTS) -> int:
    """Return how many minutes one moment stands for."""
    return -(-minutes // most)


def moments(samples: Iterable[PoolPoint], width: int, *, until: int) -> PoolMoments:
    """Return the highest values of each stretch of `width` minutes, with a None in each gap and after the last sample when that is old.
    Stretches begin at multiples of the width, so that they stay the same when the chart is read again."""
    stretches: dict[int, list[PoolPoint]] = {}
    for sample in samples:
        stretches.setdefault(sample.minute // width * width, []).append(sample)
    minutes: list[int] = []
    points: list[PoolPoint | None] = []
    for minute in [*sorted(stretches), until // width * width]:
        if minutes and minute - minutes[-1] > GAP * width:
            minutes.append(minutes[-1] + width)
            points.append(None)
        if minute in stretches and (not minutes or minutes[-1] != minute):
            minutes.append(minute)
            points.append(_highest(minute, stretches[minute]))
    return PoolMoments(tuple(minutes), tuple(points))


def pool_samples_with(known: Mapping[int, Mapping[str, int]], sampled: PoolMoments) -> list[PoolPoint]:
    """Return a point for each minute of either, with what Prometheus knows (columns by minute) in place of what was sampled. What neither
    knows of resources is 0."""
    own = {point.minute: point for point in sampled.known}
    nothing: dict[str, Any] = dict.fromkeys(COLUMNS, 0) | dict.fromkeys(_MAY_BE_UNKNOWN)
    minutes = sorted({*own, *known})
    return [replace(own.get(minute) or PoolPoint(minute, **nothing), **known.get(minute, {})) for minute in minutes]


def _highest(minute: int, samples: Sequence[PoolPoint]) -> PoolPoint:
    if len(samples) == 1:
        return replace(samples[0], minute=minute)
    columns = ([getattr(sample, name) for sample in samples] for name in COLUMNS)
    return PoolPoint(minute, *(max((value for value in each if value is not None), default=None) for each in columns))  # type: ignore[arg-type]


# --- Charts ---


class ChartBox(ViewModel, frozen=True, gc=False):
    name: str
    title: str
    unit: str

    @property
    def words(self) -> str:
        return _("{title} in {unit}", title=self.title, unit=self.unit) if self.unit else self.title


_BOXES = (
    ChartBox("cpu", _("CPU"), _("cores")),
    ChartBox("memory", _("Memory"), "GiB"),
    ChartBox("gpus", _("GPUs"), ""),
    ChartBox("nodes", _("Nodes"), ""),
    ChartBox("work", _("Executions"), ""),
)


def boxes_of(points: Iterable[PoolPoint]) -> list[ChartBox]:
    """Return the charts of these values; that of GPUs only when there are any."""
    has_gpus = any(point.allocatable_gpus or point.requested_gpus for point in points)
    return [box for box in _BOXES if box.name != "gpus" or has_gpus]


def pool_charts(shown: PoolMoments, range: str, *, until: int) -> dict[str, Any]:
    """Return the values that `static/chart.js` draws, over the whole range up to the minute `until`, also where nothing is known."""

    def line(
        name: str, column: str, colour: str, dash: tuple[int, ...], *, label: str = "", size: int = 1, **more: Any
    ) -> drawing.ChartLine:
        known = [None if point is None else getattr(point, column) for point in shown.points]
        values = known if size == 1 else [None if value is None else round(value / size, 2) for value in known]
        return drawing.ChartLine(name, label or name, values, "amount", colour, dash, **more)

    def amounts(unit: str, size: int = 1, *, is_used: bool = True) -> list[drawing.ChartLine]:
        return [
            line("requested", f"requested_{unit}", "--requested", drawing.SOLID, size=size, is_filled=True),
            *([line("used", f"used_{unit}", "--used", drawing.DOTS, size=size)] if is_used else []),
            line(
                "allocatable", f"allocatable_{unit}", "--muted", drawing.DASHES, size=size, width=1.5, is_stepped=True
            ),
        ]

    nodes = [
        line("nodes", "nodes", "--muted", drawing.DASHES, width=1.5, is_stepped=True),
        line("ready", "nodes_ready", "--chart-ready", drawing.SOLID, is_stepped=True),
    ]
    pods = _("pods waiting for a node")
    work = [
        line("running", "executions_running", "--chart-ready", drawing.SOLID, is_stepped=True),
        line("waiting", "executions_waiting", "--chart-cpu", drawing.DASHES, is_stepped=True),
        line("pods", "pods_waiting", "--chart-memory", drawing.DOTS, label=pods, is_stepped=True),
    ]
    part, whole = drawing.ChartScale("amount", top=1), drawing.ChartScale("amount", top=2, is_whole=True)
    charts = {
        "cpu": drawing.chart_values([part], amounts("millicores", 1000)),
        "memory": drawing.chart_values([part], amounts("mebibytes", _GIBIBYTE_IN_MEBIBYTES)),
        "gpus": drawing.chart_values([whole], amounts("gpus", is_used=False)),
        "nodes": drawing.chart_values([whole], nodes),
        "work": drawing.chart_values([whole], work),
    }
    times = [minute * 60 for minute in shown.minutes]
    return {"times": times, "range": [60 * (until - RANGES[range]), 60 * until], "charts": charts}


# --- The section of a page ---


class RangeTab(ViewModel, frozen=True, gc=False):
    title: str
    query: str
    is_current: bool


class PoolHistorySection(ViewModel, frozen=True, gc=False):
    """Everything of the section but the pools' rows. `problem` says why there is nothing to see."""

    title: str
    during: str
    pool: str
    url: str
    whole: str
    tabs: tuple[RangeTab, ...]
    boxes: Sequence[ChartBox]
    rows: Sequence["PoolHistoryRow"]
    source: str
    problem: str


def section(
    shown: PoolMoments | None, range: str, *, pool: str, is_read: bool, query_of: Callable[[str], str], url: str
) -> PoolHistorySection:
    """Return the section. `shown` is None, and `is_read` False, when the samples cannot be read; `query_of` is the page's query for a
    range, and `url` answers the values."""
    problem, known = "", shown.known if shown is not None else ()
    if not is_read:
        problem = _("The samples cannot be read now. The charts come as soon as the database answers.")
    source, minutes = _("Sampled once a minute."), width_of(RANGES[range])
    if shown is not None and shown.is_from_prometheus:
        source = _("Nodes and resources from Prometheus, executions sampled once a minute.")
    elif minutes > 1:
        source = _(
            "Sampled once a minute; each point is the highest of {minutes} minutes, and the pools below are as last sampled.",
            minutes=minutes,
        )
    return PoolHistorySection(
        title=_LAST_WORDS[range],
        during=RANGE_WORDS[range],
        pool=pool,
        url=f"{url}?{urlencode({'range': range} | ({'pool': pool} if pool else {}))}",
        whole=f"?{urlencode({'range': range})}#pool-history",
        tabs=tuple(RangeTab(RANGE_TITLES[name], query_of(name), name == range) for name in RANGES),
        boxes=boxes_of(known),
        rows=history_rows(known),
        source=source,
        problem=problem,
    )


def range_of(text: str) -> str:
    return text if text in RANGES else DEFAULT_RANGE


# --- The table beside them ---


class PoolHistoryRow(ViewModel, frozen=True, gc=False):
    at: datetime
    nodes: str
    cpu: str
    memory: str
    gpus: str
    running: str
    waiting: str
    pods_waiting: str


def history_rows(known: Sequence[PoolPoint]) -> list[PoolHistoryRow]:
    """Return evenly spread moments in words, newest first, the newest always."""
    return [
        PoolHistoryRow(
            at=point.at,
            nodes=nodes_words(point),
            cpu=cpu_words(point, point.used_millicores),
            memory=memory_words(point, point.used_mebibytes),
            gpus=_words(point.requested_gpus, None, point.allocatable_gpus, str) if point.allocatable_gpus else "",
            running=count_words(point.executions_running),
            waiting=count_words(point.executions_waiting),
            pods_waiting=count_words(point.pods_waiting),
        )
        for point in evenly_spread(known)
    ]


def evenly_spread(moments: Sequence[T], most: int = TABLE_ROWS) -> list[T]:
    """Return at most so many of the moments, newest first, the newest always."""
    if len(moments) <= most:
        return list(reversed(moments))
    step = (len(moments) - 1) / (most - 1)
    return [moments[round(step * place)] for place in reversed(range(most))]


def cpu_words(point: PoolPoint, used: int | None = None) -> str:
    return _words(point.requested_millicores, used, point.allocatable_millicores, format_cores)


def memory_words(point: PoolPoint, used: int | None = None) -> str:
    return _words(point.requested_mebibytes, used, point.allocatable_mebibytes, mebibyte_words)


def _words(requested: int, used: int | None, allocatable: int, words: Callable[[int], str]) -> str:
    amounts = {"requested": words(requested), "allocatable": words(allocatable)}
    if used is None:
        return _("{requested} of {allocatable}", **amounts)
    return _("{requested}, {used} used of {allocatable}", used=words(used), **amounts)


def count_words(number: int | None) -> str:
    return "–" if number is None else str(number)


def mebibyte_words(mebibytes: int) -> str:
    return format_bytes(mebibytes * _MEBIBYTE)


def nodes_words(point: PoolPoint) -> str:
    if point.nodes_ready == point.nodes:
        return str(point.nodes)
    return _("{ready} of {nodes}", ready=point.nodes_ready, nodes=point.nodes)


SPARK_POINTS = 48
# What sparklines show.
TREND_COLUMNS = (
    *("requested_millicores", "allocatable_millicores", "requested_mebibytes", "allocatable_mebibytes"),
    "executions_waiting",
)


class Trends(ViewModel, frozen=True, gc=False):
    """By pool: rows of the first minute of stretches, oldest first, and `TREND_COLUMNS`; and the newest sample, unless it is gone."""

    stretches: dict[str, list[tuple[int, ...]]]
    newest: dict[str, PoolPoint]


class PoolTrend(ViewModel, frozen=True, gc=False):
    """One pool: its newest figures, "" once it is gone, and sparklines that lead there."""

    title: str
    query: str
    is_chosen: bool
    nodes: str
    cpu: str
    cpu_line: drawing.Sparkline
    memory: str
    memory_line: drawing.Sparkline
    waiting: str
    waiting_line: drawing.Sparkline


def pool_trends(
    trends: Trends, range: str, *, until: int, chosen: str, query_of: Callable[[str], str]
) -> list[PoolTrend]:
    """Return a row for all pools together, one for each by name, and one for the nodes without a pool."""
    names = sorted(trends.stretches, key=lambda name: (name != ALL_POOLS, not name, name))
    return [_trend(name, trends, range, until, name == chosen, query_of(name)) for name in names]


def _trend(name: str, trends: Trends, range: str, until: int, is_chosen: bool, query: str) -> PoolTrend:
    minutes, cpu, cpu_most, memory, memory_most, waiting = zip(*trends.stretches[name], strict=True)
    span, gap = (until - RANGES[range], until), GAP * width_of(RANGES[range], SPARK_POINTS)

    def drawn(values: tuple[int, ...], top: int, what: str, words: Callable[[int], str]) -> drawing.Sparkline:
        lowest, highest = words(min(values)), words(max(values))
        named = {"what": what, "range": RANGE_WORDS[range]}
        sentence = (
            _("{what} in {range}: {amount}", amount=lowest, **named)
            if lowest == highest
            else _("{what} in {range}: {lowest} to {highest}", lowest=lowest, highest=highest, **named)
        )
        return drawing.sparkline(list(zip(minutes, values, strict=True)), span=span, top=top, words=sentence, gap=gap)

    now = trends.newest.get(name)
    return PoolTrend(
        title={ALL_POOLS: _("All pools"), "": _("No pool")}.get(name, name),
        query=query,
        is_chosen=is_chosen,
        nodes="" if now is None else nodes_words(now),
        cpu="" if now is None else cpu_words(now),
        cpu_line=drawn(cpu, max(cpu_most), _("Cores requested"), format_cores),
        memory="" if now is None else memory_words(now),
        memory_line=drawn(memory, max(memory_most), _("Memory requested"), mebibyte_words),
        waiting="" if now is None else count_words(now.executions_waiting),
        waiting_line=drawn(waiting, max(waiting), _("Executions waiting"), str),
    )
