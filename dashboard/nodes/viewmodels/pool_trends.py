"""A row for each node pool beside the charts of the last hours: its newest figures, and sparklines that lead there; pure."""

from collections.abc import Callable

from dashboard.nodes.viewmodels.pool_history import (
    GAP,
    RANGE_WORDS,
    RANGES,
    PoolPoint,
    count_words,
    cpu_words,
    mebibyte_words,
    memory_words,
    nodes_words,
    width_of,
)
from dashboard.shell.viewmodels.charts import Sparkline, sparkline
from dashboard.shell.viewmodels.live import ViewModel
from grid.core.quantity import format_cores
from grid.core.translation import gettext as _
from grid.models.pool import ALL_POOLS

SPARK_POINTS = 48
# What sparklines show.
TREND_COLUMNS = (
    *("requested_millicores", "allocatable_millicores", "requested_mebibytes", "allocatable_mebibytes"),
    "executions_waiting",
)


class Trends(ViewModel, frozen=True, gc=False):
    """By pool: stretches of time, oldest first, as rows of their first minute and `TREND_COLUMNS`; and the newest sample, of a pool that
    is not gone."""

    stretches: dict[str, list[tuple[int, ...]]]
    newest: dict[str, PoolPoint]


class PoolTrend(ViewModel, frozen=True, gc=False):
    """One pool: its newest figures, "" once it is gone, and sparklines that lead there."""

    title: str
    query: str
    is_chosen: bool
    nodes: str
    cpu: str
    cpu_line: Sparkline
    memory: str
    memory_line: Sparkline
    waiting: str
    waiting_line: Sparkline


def pool_trends(
    trends: Trends, range: str, *, until: int, chosen: str, query_of: Callable[[str], str]
) -> list[PoolTrend]:
    """Return a row for all pools together, one for each by name, and one for the nodes without a pool."""
    names = sorted(trends.stretches, key=lambda name: (name != ALL_POOLS, not name, name))
    return [_trend(name, trends, range, until, name == chosen, query_of(name)) for name in names]


def _trend(name: str, trends: Trends, range: str, until: int, is_chosen: bool, query: str) -> PoolTrend:
    minutes, cpu, cpu_most, memory, memory_most, waiting = zip(*trends.stretches[name], strict=True)
    span, gap = (until - RANGES[range], until), GAP * width_of(RANGES[range], SPARK_POINTS)

    def drawn(values: tuple[int, ...], top: int, what: str, words: Callable[[int], str]) -> Sparkline:
        lowest, highest = words(min(values)), words(max(values))
        named = {"what": what, "range": RANGE_WORDS[range]}
        sentence = (
            _("{what} in {range}: {amount}", amount=lowest, **named)
            if lowest == highest
            else _("{what} in {range}: {lowest} to {highest}", lowest=lowest, highest=highest, **named)
        )
        points = list(zip(minutes, values, strict=True))
        return sparkline(points, span=span, top=top, words=sentence, gap=gap)

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
