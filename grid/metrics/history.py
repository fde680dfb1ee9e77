"""The past from a Prometheus: of node pools, nodes, pods and executions, where it scrapes kube-state-metrics and the kubelets' cAdvisor;
and of the service levels, where it scrapes our own metrics, for which it needs no rules.

kube-state-metrics must be allowed to tell the nodes' pool label (`--metric-labels-allowlist=nodes=[LABEL]`); else it knows no pools, and
nothing is found.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from grid.metrics.expressions import in_columns, metric_label, pool_columns
from grid.metrics.sources import answers_expected, prometheus_client
from grid.servicelevels.levels import LevelDay, LevelTarget

BURN_WINDOW = "1h"


class PrometheusHistory:
    """Asks for all columns of a pool in one range query. `base_url` may carry a user and password; no message ever shows it."""

    def __init__(self, base_url: str, *, pool_label: str) -> None:
        self._client = prometheus_client(base_url)
        self._label = metric_label(pool_label)

    def read(self, pool: str | None, first: int, last: int, step: int) -> dict[int, dict[str, int]]:
        """Return the known columns of `PoolSample` by minute, each `step` minutes; of all pools together with None. It blocks; call it in a
        thread. Raise ClusterUnavailable."""
        minutes = self.ask(self.query(pool), first, last, step).items()
        return {minute: {name: max(0, round(value)) for name, value in known.items()} for minute, known in minutes}

    def ask(self, query: str, first: int, last: int, step: int) -> dict[int, dict[str, float]]:
        """Return what an expression with the label `column` was each `step` minutes, by minute. It blocks; call it in a thread. Raise
        ClusterUnavailable."""
        start, end = (datetime.fromtimestamp(minute * 60, UTC) for minute in (first, last))
        columns = defaultdict[int, dict[str, float]](dict)
        with answers_expected():
            for series in self._client.custom_query_range(query, start, end, f"{step * 60}s"):
                column = series["metric"]["column"]
                for at, text in series["values"]:
                    if math.isfinite(value := float(text)):
                        columns[round(float(at) / 60)][column] = value
        return dict(columns)

    def query(self, pool: str | None) -> str:
        return in_columns(pool_columns(pool, self._label))


@dataclass(frozen=True, slots=True)
class LevelDays:
    """What was counted of a service level on each day, and the share of bad ones lately, None when nothing was counted then."""

    days: tuple[LevelDay, ...]
    burn_ratio: float | None


class PrometheusLevels:
    """Asks for all service levels in two queries. `base_url` may carry a user and password; no message ever shows it."""

    def __init__(self, base_url: str) -> None:
        self._client = prometheus_client(base_url)

    def read(self, targets: Sequence[LevelTarget], until: datetime) -> dict[str, LevelDays]:
        """Return what is known, by id; without those of which Prometheus has no metrics in their window. A day ends at the time of `until`.
        It blocks; call it in a thread. Raise ClusterUnavailable."""
        start = until - timedelta(days=max(target.window_days for target in targets) - 1)
        with answers_expected():
            days = _days(self._client.custom_query_range(days_query(targets), start, until, "86400s"))
            asked = self._client.custom_query(burn_query(targets), params={"time": until.timestamp()})
            ratios = {series["metric"]["level"]: float(series["value"][1]) for series in asked}
        levels = {}
        for target in targets:
            id, first = target.level.id, until.astimezone(UTC).date() - timedelta(days=target.window_days - 1)
            if within := tuple(day for day in days.get(id, ()) if day.day >= first):
                levels[id] = LevelDays(within, _finite(ratios.get(id)))
        return levels


def days_query(targets: Sequence[LevelTarget]) -> str:
    """Return one expression for the bad and all of a day of each level, told apart by the labels `level` and `count`."""
    return " or ".join(
        _labelled(_labelled(f"({expression})", "count", name), "level", target.level.id)
        for target in targets
        for name, expression in (("bad", target.bad("1d", "5m")), ("total", target.total("1d", "5m")))
    )


def burn_query(targets: Sequence[LevelTarget]) -> str:
    """Return one expression for the share of bad ones lately of each level."""
    return " or ".join(
        _labelled(f"({target.error_ratio(BURN_WINDOW)})", "level", target.level.id) for target in targets
    )


def _labelled(expression: str, label: str, value: str) -> str:
    return f'label_replace({expression}, "{label}", "{value}", "", "")'


def _days(answer: Sequence[Mapping[str, Any]]) -> dict[str, list[LevelDay]]:
    counts = defaultdict[tuple[str, date], dict[str, float]](dict)
    for series in answer:
        level, count = series["metric"]["level"], series["metric"]["count"]
        for at, text in series["values"]:
            value = _finite(float(text))
            if value is not None:
                counts[level, datetime.fromtimestamp(float(at), UTC).date()][count] = value
    days = defaultdict[str, list[LevelDay]](list)
    for (level, day), counted in sorted(counts.items()):
        if "total" in counted:
            days[level].append(LevelDay(day, counted.get("bad", 0), counted["total"]))
    return days


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
