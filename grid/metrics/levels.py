"""How the service levels stood on each of the last days, from a Prometheus that scrapes our own metrics; it needs no rules there."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from grid.metrics.sources import answers_expected, prometheus_client
from grid.servicelevels.levels import LevelDay, LevelTarget

BURN_WINDOW = "1h"


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
