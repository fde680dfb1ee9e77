"""How long starts took day by day: the charts of the page of start-up times, and the table beside them; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from dashboard.shell.viewmodels.charts import DASHES, DOTS, SOLID, ChartLine, ChartScale, chart_values
from dashboard.starts.viewmodels.start_times import share_words
from dashboard.starts.viewmodels.startup import seconds_words
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.starts.startdays import StartSums, whole_percentile


@dataclass(frozen=True, slots=True)
class StartDayLine:
    """The starts of one day (UTC); "–" for what nothing is known of."""

    day: date
    count: str
    p50: str
    p90: str
    cold: str
    new_node: str


def start_day_lines(days: Sequence[date], sums: Mapping[date, StartSums]) -> list[StartDayLine]:
    """Return a line for each day, the newest first."""
    lines = []
    for day in reversed(days):
        of_day = sums.get(day, StartSums())
        p50, p90 = whole_percentile(of_day, 50), whole_percentile(of_day, 90)
        lines.append(
            StartDayLine(
                day=day,
                count=f"{of_day.starts:,}",
                p50="–" if p50 is None else seconds_words(p50),
                p90="–" if p90 is None else seconds_words(p90),
                cold=share_words(of_day.image_pulled, of_day.image_known) if of_day.starts else "–",
                new_node=share_words(of_day.new_node, of_day.node_known) if of_day.starts else "–",
            )
        )
    return lines


def start_charts(days: Sequence[date], sums: Mapping[date, StartSums]) -> dict[str, Any]:
    """Return the values that `static/chart.js` draws: a moment for each day, and gaps where nothing was started."""
    each = [sums.get(day, StartSums()) for day in days]

    def line(name: str, label: str, values: Iterable[float | None], colour: str, dash: tuple[int, ...]) -> ChartLine:
        return ChartLine(name, label, list(values), "amount", colour, dash)

    times = [
        line("p50", "p50", (_rounded(whole_percentile(of_day, 50)) for of_day in each), "--requested", SOLID),
        line("p90", "p90", (_rounded(whole_percentile(of_day, 90)) for of_day in each), "--chart-cpu", DASHES),
    ]
    shares = [
        line(
            "cold",
            _("image pulled"),
            (_share(of_day.image_pulled, of_day.image_known) for of_day in each),
            "--chart-cpu",
            SOLID,
        ),
        line(
            "node",
            ngettext("new node", "new nodes", 1),
            (_share(of_day.new_node, of_day.node_known) for of_day in each),
            "--chart-memory",
            DOTS,
        ),
    ]
    moments = [int(datetime.combine(day, time(), UTC).timestamp()) for day in days]
    return {
        "times": moments,
        "range": [moments[0], moments[-1]],
        "charts": {
            "took": chart_values([ChartScale("amount", top=1, unit=" s")], times),
            "cold": chart_values([ChartScale("amount", top=100, unit="%")], shares),
        },
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _share(cases: int, known: int) -> float | None:
    return round(100 * cases / known, 1) if known else None
