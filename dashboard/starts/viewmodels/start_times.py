"""How long starts took: percentiles of the whole and of each phase, by tier, environment, pool or image, and charts by day; pure."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from dashboard.shell.viewmodels.charts import DASHES, DOTS, SOLID, ChartLine, ChartScale, chart_values
from dashboard.shell.viewmodels.format import spreadsheet_text
from dashboard.starts.viewmodels.startup import PHASE_WORDS, seconds_words
from grid.core.translation import gettext as _, ngettext
from grid.diagnosis.startup import Phase
from grid.starts.startdays import MERGED, WHOLE, StartSums, percentile, seconds_together, together, whole_percentile

GROUPINGS = {"tier": _("Tier"), "environment": _("Environment"), "pool": _("Node pool"), "image": _("Image")}
RANGES = {"7": _("7 days"), "30": _("30 days")}
PERCENTILES = (50, 90, 99)
_DASH = "–"


@dataclass(frozen=True, slots=True)
class GroupStarts:
    """The starts of a group, by day and together. A day without starts may be left out."""

    key: str
    name: str
    days: Mapping[date, StartSums]
    whole: StartSums


@dataclass(frozen=True, slots=True)
class StartTimesView:
    """A page's query: how starts are grouped, the days that are looked at, and the group whose phases are shown, "" for all."""

    by: str = "tier"
    range: str = "7"
    of: str = ""

    @classmethod
    def parse(cls, asked: Mapping[str, str]) -> "StartTimesView":
        """Return the view; what is unknown is the default."""
        by, range = asked.get("by", ""), asked.get("range", "")
        return cls(by if by in GROUPINGS else "tier", range if range in RANGES else "7", asked.get("of", "")[:255])

    def days(self, now: datetime) -> list[date]:
        """Return the days (UTC) that are looked at; today is the last."""
        today, number = now.astimezone(UTC).date(), int(self.range)
        return [today - timedelta(days=before) for before in range(number - 1, -1, -1)]

    def query(self, **changed: str) -> str:
        values = {"by": self.by, "range": self.range, "of": self.of, **changed}
        return "?" + urlencode({name: value for name, value in values.items() if value})

    def ranges(self) -> list[tuple[str, str, bool]]:
        """Return of each range the title, the link, and whether it is shown."""
        return [(title, self.query(range=key), key == self.range) for key, title in RANGES.items()]


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Nearest-rank percentiles; "–" without any."""

    p50: str
    p90: str
    p99: str


@dataclass(frozen=True, slots=True)
class StartTimesLine:
    """One group: its whole starts, and the share of them that pulled an image or needed a new node."""

    name: str
    url: str
    count: str
    total: Percentiles
    longest: str
    cold: str
    new_node: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """One phase; `share` is its part of the time of all starts together, in percent."""

    word: str
    count: str
    times: Percentiles
    share: int


@dataclass(frozen=True, slots=True)
class SlowStart:
    """`title` is "" when the execution was deleted."""

    id: str
    title: str
    group: str
    took: str
    cause: str
    at: datetime


def group_of(key: str, name: str, days: Mapping[date, StartSums]) -> GroupStarts:
    return GroupStarts(key, name, days, together(days.values()))


def start_lines(groups: Iterable[GroupStarts], view: StartTimesView) -> list[StartTimesLine]:
    return [
        StartTimesLine(
            name=group.name,
            url=view.query(of=group.key),
            count=f"{group.whole.starts:,}",
            total=_words(whole_percentile(group.whole, percent) for percent in PERCENTILES),
            longest=_longest(group.whole),
            cold=share_words(group.whole.image_pulled, group.whole.image_known),
            new_node=share_words(group.whole.new_node, group.whole.node_known),
            is_chosen=group.key == view.of,
        )
        for group in groups
    ]


def phase_times(sums: StartSums) -> list[PhaseTimes]:
    """Return the phases of the starts, in order, without those that no start had."""
    whole = seconds_together(sums.times.get(WHOLE, {}))
    words = {phase.value: word for phase, word in PHASE_WORDS.items()}
    words[MERGED] = _("Phases that could not be told apart")
    return [
        PhaseTimes(
            word=words[name],
            count=f"{sum(counts.values()):,}",
            times=_words(percentile(counts, percent) for percent in PERCENTILES),
            share=round(100 * seconds_together(counts) / whole) if whole else 0,
        )
        for name in (*Phase, MERGED)
        if any(counts := sums.times.get(name, {}))
    ]


def medians_of(sums: StartSums) -> dict[Phase, float]:
    return {phase: median for phase in Phase if (median := percentile(sums.times.get(phase, {}), 50)) is not None}


def start_times_csv(groups: Iterable[GroupStarts], by: str) -> str:
    """Return one row a group: its starts, how many were cold or needed a new node of how many known, and all percentiles in seconds."""
    text = io.StringIO()
    writer = csv.writer(text)
    numbers = [f"{name}_p{percent}_seconds" for name in (WHOLE, *Phase) for percent in PERCENTILES]
    counts = ("starts", "image_pulled", "image_known", "new_node", "node_known")
    writer.writerow((f"{by}_id", by, *counts, *numbers))
    for group in groups:
        row: list[object] = [spreadsheet_text(group.key), spreadsheet_text(group.name)]
        row += [getattr(group.whole, name) for name in counts]
        each = [group.whole.times.get(name, {}) for name in Phase]
        seconds_each = [whole_percentile(group.whole, percent) for percent in PERCENTILES]
        seconds_each += [percentile(counts, percent) for counts in each for percent in PERCENTILES]
        row += ["" if seconds is None else f"{seconds:.3f}" for seconds in seconds_each]
        writer.writerow(row)
    return text.getvalue()


def _words(times: Iterable[float | None]) -> Percentiles:
    return Percentiles(*(_DASH if seconds is None else seconds_words(seconds) for seconds in times))


def _longest(sums: StartSums) -> str:
    seconds = {phase: seconds_together(sums.times.get(phase, {})) for phase in Phase}
    longest, whole = max(seconds, key=lambda phase: seconds[phase]), seconds_together(sums.times.get(WHOLE, {}))
    return f"{PHASE_WORDS[longest]}, {round(100 * seconds[longest] / whole)}%" if seconds[longest] and whole else _DASH


def share_words(cases: int, known: int) -> str:
    """Return the share of the cases in those that are known; "not known" without any."""
    if not known:
        return _("not known")
    share = 100 * cases / known
    return "<1%" if 0 < share < 1 else f"{int(share)}%"


@dataclass(frozen=True, slots=True)
class StartDayLine:
    """The starts of one day (UTC); "–" for what nothing is known of."""

    day: date
    count: str
    times: Percentiles
    cold: str
    new_node: str


def start_day_lines(days: Sequence[date], sums: Mapping[date, StartSums]) -> list[StartDayLine]:
    """Return a line for each day, the newest first."""
    each = ((day, sums.get(day, StartSums())) for day in reversed(days))
    return [
        StartDayLine(
            day=day,
            count=f"{of_day.starts:,}",
            times=_words(whole_percentile(of_day, percent) for percent in PERCENTILES),
            cold=share_words(of_day.image_pulled, of_day.image_known) if of_day.starts else _DASH,
            new_node=share_words(of_day.new_node, of_day.node_known) if of_day.starts else _DASH,
        )
        for day, of_day in each
    ]


def start_charts(days: Sequence[date], sums: Mapping[date, StartSums]) -> dict[str, Any]:
    """Return the values that `static/chart.js` draws: a moment for each day, and gaps where nothing was started."""
    each = [sums.get(day, StartSums()) for day in days]
    measured = ([whole_percentile(of_day, percent) for of_day in each] for percent in (50, 90))
    p50, p90 = ([None if took is None else round(took, 1) for took in of_days] for of_days in measured)
    pulled = [_share(of_day.image_pulled, of_day.image_known) for of_day in each]
    new_node = [_share(of_day.new_node, of_day.node_known) for of_day in each]
    times = [
        ChartLine("p50", "p50", p50, "amount", "--requested", SOLID),
        ChartLine("p90", "p90", p90, "amount", "--chart-cpu", DASHES),
    ]
    shares = [
        ChartLine("cold", _("image pulled"), pulled, "amount", "--chart-cpu", SOLID),
        ChartLine("node", ngettext("new node", "new nodes", 1), new_node, "amount", "--chart-memory", DOTS),
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


def _share(cases: int, known: int) -> float | None:
    return round(100 * cases / known, 1) if known else None
