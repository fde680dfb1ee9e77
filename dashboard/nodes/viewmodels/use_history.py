"""What a node, a pod or an execution used over the last hours, as Prometheus knows it: charts and the table beside them; pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from dashboard.nodes.viewmodels.pool_history import RANGE_TITLES, RANGE_WORDS, RANGES, ChartBox, RangeTab, evenly_spread
from dashboard.shell.viewmodels.charts import DASHES, DOTS, LONG_DASHES, SOLID, ChartLine, ChartScale, chart_values
from dashboard.shell.viewmodels.live import ViewModel
from dashboard.usage.viewmodels.failure_moments import FailureMoment
from grid.core.translation import gettext as _

Known = Mapping[int, Mapping[str, float]]  # columns by minute
_GIBIBYTE, _MEBIBYTE = 2**30, 2**20
_OF_A_POOL = _(
    "Disk and network are the sums of the pool's nodes; waiting and file systems are of the node with the most."
)
UNCONNECTED = _(
    "CPU, memory, disk and network over time need Prometheus, which is not connected. Whoever runs Compute Grid connects it: "
    "set GRID_PROMETHEUS_URL, as the installation guide says."
)
SILENT = _("Prometheus does not answer now. The charts come as soon as it does.")
UNKNOWN = _(
    "Prometheus answers, but it knows nothing of this in this time. It must scrape the kubelets' cAdvisor metrics."
)


class _Line(ViewModel, frozen=True, gc=False):
    column: str
    label: str
    colour: str
    dash: tuple[int, ...] = SOLID
    is_filled: bool = False


class _Chart(ViewModel, frozen=True, gc=False):
    box: ChartBox
    size: float  # of the unit, in what Prometheus counts
    lines: Sequence[_Line]
    is_always_shown: bool = False
    top: float = 0.1  # to which the axis reaches at least


def _amounts(name: str) -> list[_Line]:
    return [
        _Line(f"{name}_used", _("used"), "--used", is_filled=True),
        _Line(f"{name}_requested", _("requested"), "--requested", DOTS),
        _Line(f"{name}_limit", _("limit"), "--muted", DASHES),
    ]


def _full(column: str, title: str) -> _Chart:
    line = _Line(column, _("used"), "--used", is_filled=True)
    return _Chart(ChartBox(column, title, _("percent")), 1, [line], top=100)


def _rates(name: str, title: str, first: tuple[str, str], second: tuple[str, str]) -> _Chart:
    lines = [_Line(*first, "--chart-cpu"), _Line(*second, "--chart-memory", LONG_DASHES)]
    return _Chart(ChartBox(name, title, _("MiB a second")), _MEBIBYTE, lines)


_WAITING = _Line("throttled", _("waiting"), "--bad")
_CHARTS = (
    _Chart(ChartBox("cpu", _("CPU"), _("cores")), 1, _amounts("cpu"), is_always_shown=True),
    _Chart(ChartBox("memory", _("Memory"), "GiB"), _GIBIBYTE, _amounts("memory"), is_always_shown=True),
    _Chart(ChartBox("gpu", _("GPU at work"), _("percent")), 1, [_Line("gpu", _("at work"), "--chart-ready")]),
    _Chart(ChartBox("throttled", _("Waiting for CPU"), _("percent of the time")), 1, [_WAITING]),
    _full("filesystem", _("Fullest file system")),
    _full("volume", _("Fullest volume")),
    _rates("disk", _("Disk"), ("read", _("read")), ("written", _("written"))),
    _rates("network", _("Network"), ("received", _("received")), ("sent", _("sent"))),
)


def use_values(
    known: Known, range: str, width: int, failures: Sequence[FailureMoment], *, until: int
) -> dict[str, Any]:
    """Return the values that `static/chart.js` draws, over the whole range and the minute `until`: something may just have failed."""
    minutes = _minutes(known, width)

    def drawn(chart: _Chart, line: _Line) -> ChartLine:
        values = [_in(chart.size, known.get(minute, {}).get(line.column)) for minute in minutes]
        return ChartLine(line.column, line.label, values, "amount", line.colour, line.dash, is_filled=line.is_filled)

    charts = {}
    for chart in _CHARTS:
        lines = [drawn(chart, line) for line in chart.lines if _is_known(line, known)]
        charts[chart.box.name] = chart_values([ChartScale("amount", top=chart.top)], lines)
    first, end = 60 * (until - RANGES[range]), 60 * (until + 1)
    events = [
        {"at": int(failure.at.timestamp()), "words": failure.words, "grows": False}
        for failure in failures
        if first <= failure.at.timestamp() <= end
    ]
    return {"times": [minute * 60 for minute in minutes], "range": [first, end], "charts": charts, "events": events}


def _minutes(known: Known, width: int) -> list[int]:
    minutes: list[int] = []
    for minute in sorted(known):
        if minutes and minute - minutes[-1] > width:
            minutes.append(minutes[-1] + width)
        minutes.append(minute)
    return minutes


def _in(size: float, value: float | None) -> float | None:
    return None if value is None else round(max(0.0, value) / size, 3)


# --- The section of a page ---


class UseRow(ViewModel, frozen=True, gc=False):
    at: datetime
    cells: Sequence[str]


class UseSection(ViewModel, frozen=True, gc=False):
    """`problem` says why there is nothing to see; without Prometheus there are neither boxes nor tabs."""

    title: str
    url: str
    tabs: Sequence[RangeTab]
    boxes: Sequence[ChartBox]
    rows: Sequence[UseRow]
    failures: Sequence[FailureMoment]
    problem: str
    note: str = ""


def use_section(
    known: Known | None,
    range: str,
    failures: Sequence[FailureMoment],
    *,
    url: str,
    problem: str,
    query: Mapping[str, str],
) -> UseSection:
    """Return the section. `known` is None without Prometheus; `query` is the rest of the page's query."""
    if known is None:
        return UseSection(_("Use over time"), "", (), (), (), (), problem)
    measured = [chart for chart in _CHARTS if any(_is_known(line, known) for line in chart.lines)]
    shown = measured or [chart for chart in _CHARTS if chart.is_always_shown]
    tabs = [RangeTab(RANGE_TITLES[name], "?" + urlencode({**query, "range": name}), name == range) for name in RANGES]
    return UseSection(
        title=_("Use in {range}", range=RANGE_WORDS[range]),
        url=f"{url}?{urlencode({'range': range})}",
        tabs=tabs,
        boxes=[chart.box for chart in shown],
        rows=_rows(known, shown),
        failures=failures,
        problem=problem,
    )


def pool_use_section(known: Known | None, range: str, *, url: str, problem: str) -> UseSection | None:
    """Return what is shown of a pool below its charts of samples, which have CPU and memory; None where nothing is known of it."""
    shown = [
        chart
        for chart in _CHARTS
        if not chart.is_always_shown and any(_is_known(line, known or {}) for line in chart.lines)
    ]
    if not known or not shown:
        return None
    title = _("What the pool's nodes also used in {range}", range=RANGE_WORDS[range])
    return UseSection(title, url, (), [chart.box for chart in shown], _rows(known, shown), (), problem, _OF_A_POOL)


def _is_known(line: _Line, known: Known) -> bool:
    return any(line.column in columns for columns in known.values())


def _rows(known: Known, charts: Sequence[_Chart]) -> list[UseRow]:
    return [
        UseRow(datetime.fromtimestamp(minute * 60, UTC), [_words(chart, known[minute]) for chart in charts])
        for minute in evenly_spread(sorted(known))
    ]


def _words(chart: _Chart, values: Mapping[str, float]) -> str:
    amounts = ((line.label, _in(chart.size, values.get(line.column))) for line in chart.lines)
    return ", ".join(f"{value:.4g} {label}" for label, value in amounts if value is not None) or "–"
