"""What runs of a job have measured: charts over steps, with a line for each run, and the table beside them; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from dashboard.shell.viewmodels.charts import (
    DASH_DOT,
    DASHES,
    DOTS,
    LONG_DASHES,
    SOLID,
    ChartLine,
    ChartScale,
    chart_values,
)
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import plural

MOST_CHARTS = 12
MOST_RUNS = 8
LOWEST, HIGHEST = "lowest", "highest"
ORDERS = {"": _("Newest first"), LOWEST: _("Lowest first"), HIGHEST: _("Highest first")}  # of a sweep's runs
_EXACT = 1e15  # up to here a double holds each whole number
_LOOKS = (
    ("--accent", SOLID),
    ("--chart-cpu", DASHES),
    ("--chart-memory", DOTS),
    ("--chart-ready", LONG_DASHES),
    ("--bad", DASH_DOT),
)


@dataclass(frozen=True, slots=True)
class MetricPoints:
    """One metric of a run; `points` are the steps and values that are kept of `count`."""

    name: str
    count: int
    last: float
    lowest: float
    highest: float
    points: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """What an execution has measured, in the order in which its metrics turned up; `refused` and `unkept` count values without a place."""

    metrics: Sequence[MetricPoints] = ()
    refused: int = 0
    unkept: int = 0

    @property
    def rows(self) -> Sequence[Sequence[str]]:
        """The rows of the table: name, last, lowest and highest value, and count."""
        return [
            (metric.name, *map(number_words, (metric.last, metric.lowest, metric.highest)), f"{metric.count:,}")
            for metric in self.metrics
        ]

    @property
    def notes(self) -> Iterator[str]:
        """Sentences about what is not shown."""
        if self.refused:
            yield ngettext(
                "{count:,} value was no finite number, such as NaN, or had no usable name.",
                "{count:,} values were no finite number, such as NaN, or had no usable name.",
                self.refused,
            )
        if self.unkept:
            yield _(
                "Only {metrics} metrics are kept; {values} of others are not.",
                metrics=len(self.metrics),
                values=plural(self.unkept, "value", "values"),
            )
        if len(self.metrics) > MOST_CHARTS:
            yield _("The first {count} metrics are drawn.", count=MOST_CHARTS)

    @property
    def titles(self) -> dict[str, str]:
        return chart_titles([self.metrics])


def number_words(value: float) -> str:
    """Return a number with at most five significant digits, whole ones in full."""
    return f"{int(value):,}" if value % 1 == 0 and abs(value) < _EXACT else f"{value:.5g}"


def chart_titles(runs: Iterable[Sequence[MetricPoints]]) -> dict[str, str]:
    """Return the names of the charts and their titles. What a program calls a metric is no name of a chart."""
    names = dict.fromkeys(metric.name for metrics in runs for metric in metrics)
    return {f"metric-{number}": name for number, name in zip(range(MOST_CHARTS), names, strict=False)}


def charts(runs: Mapping[str, Sequence[MetricPoints]]) -> dict[str, Any]:
    """Return a chart of each metric, with a line for each of the runs, which are given by their titles."""
    shown = {
        key: {"title": title, **_chart(title, runs, is_alone=len(runs) == 1)}
        for key, title in chart_titles(runs.values()).items()
    }
    return {"steps": True, "times": [], "charts": shown}


def _chart(name: str, runs: Mapping[str, Sequence[MetricPoints]], *, is_alone: bool) -> dict[str, Any]:
    lines = {
        title: dict(metric.points) for title, metrics in runs.items() for metric in metrics if metric.name == name
    }  # of several values at one step the last counts
    steps = sorted({step for line in lines.values() for step in line})
    looks = dict(zip(runs, cycle(_LOOKS), strict=False))
    drawn = [
        ChartLine(
            f"run-{number}",
            _("value") if is_alone else title,
            [line.get(step) for step in steps],
            "value",
            looks[title][0],
            dash=looks[title][1],
        )
        for number, (title, line) in enumerate(lines.items())
    ]
    return {"times": steps, **chart_values([ChartScale("value", 0, is_free=True)], drawn)}
