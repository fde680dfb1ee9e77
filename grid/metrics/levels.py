"""How the service levels stood on each of the last days, from a Prometheus that scrapes our own metrics; it needs no rules there."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException

from grid.core.errors import ClusterUnavailable
from grid.core.translation import gettext as _
from grid.metrics.sources import PROMETHEUS_SECONDS
from grid.servicelevels import LevelDay, LevelTarget

BURN_WINDOW = "1h"


@dataclass(frozen=True, slots=True)
class LevelDays:
    """What was counted of a service level on each day, and the share of bad ones lately, None when nothing was counted then."""

    days: tuple[LevelDay, ...]
    burn_ratio: float | None


class PrometheusLevels:
    """Asks for all service levels in two queries. `base_url` may carry a user and password; no message ever shows it."""

    def __init__(self, base_url: str) -> None:
        self._client = PrometheusConnect(url=base_url.rstrip("/"), timeout=PROMETHEUS_SECONDS, retry=0)

    def read(self, targets: Sequence[LevelTarget], until: datetime) -> dict[str, LevelDays]:
        """Return what is known, by id; without those of which Prometheus has no metrics in their window. A day ends at the time of `until`.
        It blocks; call it in a thread. Raise ClusterUnavailable."""
        start = until - timedelta(days=max(target.window_days for target in targets) - 1)
        try:
            days = _days(self._client.custom_query_range(days_query(targets), start, until, "86400s"))
            asked = self._client.custom_query(burn_query(targets), params={"time": until.timestamp()})
            ratios = {one["metric"]["level"]: float(one["value"][1]) for one in asked}
        except (OSError, PrometheusApiClientException, ValueError, LookupError, TypeError, AttributeError) as error:
            # As in `Prometheus.measure`: their texts may hold the URL with a password in it.
            raise ClusterUnavailable(
                _("Prometheus does not answer as it should ({name}).", name=type(error).__name__)
            ) from error
        firsts = {
            target.level.id: until.astimezone(UTC).date() - timedelta(days=target.window_days - 1) for target in targets
        }
        within = {level: tuple(day for day in found if day.day >= firsts[level]) for level, found in days.items()}
        return {level: LevelDays(found, _finite(ratios.get(level))) for level, found in within.items() if found}


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


def _days(answer: Sequence[Mapping[str, Any]]) -> dict[str, tuple[LevelDay, ...]]:
    counts: dict[str, dict[date, dict[str, float]]] = {}
    for series in answer:
        level, count = series["metric"]["level"], series["metric"]["count"]
        for at, text in series["values"]:
            value = _finite(float(text))
            if value is not None:
                day = datetime.fromtimestamp(float(at), UTC).date()
                counts.setdefault(level, {}).setdefault(day, {})[count] = value
    found = {
        level: tuple(
            LevelDay(day, one.get("bad", 0), one["total"]) for day, one in sorted(days.items()) if "total" in one
        )
        for level, days in counts.items()
    }
    return {level: days for level, days in found.items() if days}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
