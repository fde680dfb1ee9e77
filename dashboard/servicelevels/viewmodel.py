"""The page of service levels in words: each level's promise, what was attained, the error budget and how fast it burns; pure."""

import math
from dataclasses import dataclass, replace

from dashboard.shell.viewmodels.charts import Sparkline, sparkline
from grid.core.translation import gettext as _
from grid.core.wording import day_words
from grid.servicelevels.levels import LevelStatus, ServiceLevel

# The page of ours that says more, by level: the name of its URL, and its title.
_MORE = {
    "start-time": ("startup", _("Start-up times")),
    "queue-time": ("queue", _("Queue")),
    "queue-length": ("queue", _("Queue")),
    "failure-rate": ("overview", _("Overview")),
}
_NO_PROMETHEUS = _("Needs Prometheus, which is not connected: set GRID_PROMETHEUS_URL.")
_NO_METRICS = _(
    "Prometheus has no metrics of it: check that it scrapes the web processes, the proxies and the controllers."
)
_LITTLE = 0.25  # of a budget
_CHART_WIDTH = 300


@dataclass(frozen=True, slots=True)
class LevelCard:
    """A service level as the page shows it; `attained` and what follows is "" where nothing is known."""

    level: ServiceLevel
    promise: str
    severity: str
    state: str
    days: int
    advice: str = ""
    attained: str = ""
    counted: str = ""
    left: str = ""
    share: int = 0
    meter: str = "ok"
    burn: str = ""
    chart: Sparkline | None = None
    more: str = ""
    more_title: str = ""
    source: str = ""


def level_card(status: LevelStatus, source: str, *, has_prometheus: bool) -> LevelCard:
    """Return the card of a level; `source` says who knows it, "" when nobody does."""
    target = status.target
    level = target.level
    more, more_title = _MORE.get(level.id, ("", ""))
    card = LevelCard(
        level=level,
        promise=target.promise,
        severity="neutral",
        state=_("Not measured"),
        days=target.window_days,
        advice=_NO_METRICS if has_prometheus else _NO_PROMETHEUS,
        more=more,
        more_title=more_title,
    )
    if not source:
        return card
    named = "Prometheus" if source == "prometheus" else _("the database")
    card = replace(card, source=named, burn=_burn(status, source))
    if status.attained is None or status.left is None:
        none = _("No {counted} in the last {window_days} days.", counted=level.counted, window_days=target.window_days)
        return replace(card, state=_("Nothing to measure"), advice=none)
    severity, state, advice = _state(status, status.left)
    left = _("{left} left") if status.left >= 0 else _("overspent by {left}")
    numbers = {"bad": round(status.bad), "total": round(status.total)}
    return replace(
        card,
        severity=severity,
        state=state,
        advice=advice,
        attained=_percent(status.attained),
        counted=_("{bad:,} of {total:,} {counted} broke the promise", counted=level.counted, **numbers),
        left=left.format(left=_percent(abs(status.left))),
        share=round(100 * min(1.0, max(0.0, status.left))),
        meter=severity,
        chart=_chart(status),
    )


def _state(status: LevelStatus, left: float) -> tuple[str, str, str]:
    if left < 0:
        advice = _("The error budget of {days} days is used up. Put reliability before changes until it recovers.")
        return "problem", _("Missed"), advice.format(days=status.target.window_days)
    if status.burn is not None and status.burn > 1:
        return "wait", _("Met, burning too fast"), _("At the present rate the budget does not last for its window.")
    if left < _LITTLE:
        return "wait", _("Met, little budget left"), _("Changes that risk more errors can wait until it recovers.")
    return "ok", _("Met"), ""


def _burn(status: LevelStatus, source: str) -> str:
    since = _("in the last hour") if source == "prometheus" else _("today")
    if status.burn is None:
        return _("not known: no {counted} {since}", counted=status.target.level.counted, since=since)
    return _("{burn:.1f} times the allowed rate, {since}", burn=status.burn, since=since)


def _percent(share: float) -> str:
    """Return a share, rounded down: what was just missed does not look attained. Near 100 % there are more digits."""
    value = 100 * share
    digits = 3 if 99 <= value < 100 else 1 if value < 95 else 2
    shown = math.floor(value * 10**digits + 1e-6) / 10**digits
    return f"{shown:,.{digits}f}".rstrip("0").rstrip(".") + " %"


def _chart(status: LevelStatus) -> Sparkline | None:
    if len(status.days) < 2:
        return None
    days, last = [(day.toordinal(), max(0.0, left)) for day, left in status.days], status.days[-1]
    first_day = status.days[0][0]
    words = _(
        "Error budget left after each day, {first_day} to {last_day}: {first} at first, {last} at last",
        first_day=day_words(first_day),
        last_day=day_words(last[0]),
        first=_percent(max(0.0, status.days[0][1])),
        last=_percent(max(0.0, last[1])),
    )
    span = (last[0].toordinal() - status.target.window_days + 1, last[0].toordinal())
    return sparkline(days, span=span, top=1, words=words, gap=status.target.window_days, width=_CHART_WIDTH)
