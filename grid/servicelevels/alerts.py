"""The alerts as data: three burn rates for each service level (Google's Site Reliability Workbook, "Alerting on SLOs"), and those of what
is known to go wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from grid.core.translation import gettext as _
from grid.servicelevels.levels import LevelTarget

PLATFORM_NAMESPACE = "compute-grid-system"
RATIO, EVENTS = "compute_grid:level_errors:ratio", "compute_grid:level_events:count"


@dataclass(frozen=True, slots=True)
class BurnRate:
    """A rate of which `share` of the budget is gone within the long range (of `hours`), and which still holds in the short one."""

    share: float
    hours: int
    long: str
    short: str
    severity: Literal["page", "ticket"]
    suffix: str

    def factor(self, target: LevelTarget) -> float:
        """Return how many times as fast as allowed that is: at least once, and no faster than nearly everything being bad."""
        fastest = _MOST_BAD / target.budget  # beyond that the alert could not fire
        return min(max(1.0, round(self.share * target.window_days * 24 / self.hours, 6)), fastest)

    def words(self, target: LevelTarget) -> str:
        factor, days = self.factor(target), target.window_days
        if factor == 1:
            return _("faster than allowed, for {hours} days", hours=self.hours // 24)
        return _(
            "{factor:.3g} times as fast as allowed; in {days} days the budget of {window} days is gone",
            factor=factor,
            days=round(days / factor),
            window=days,
        )


# The shares of the workbook. For a window of 30 days they are 14.4, 6 and 1 times the allowed rate.
BURN_RATES = (
    BurnRate(0.02, 1, "1h", "5m", "page", "BurnsFast"),
    BurnRate(0.05, 6, "6h", "30m", "page", "Burns"),
    BurnRate(0.1, 72, "3d", "6h", "ticket", "BurnsSlowly"),
)
_MOST_BAD = 0.9
WINDOWS = ("5m", "30m", "1h", "6h", "3d")


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Fires once `expression` has had a result for `lasts`; texts may have Prometheus' template marks; `runbook` is in docs/alerts.md."""

    name: str
    expression: str
    lasts: str
    severity: Literal["page", "ticket"]
    summary: str
    description: str
    runbook: str
    level: str = ""


def burn_alerts(targets: Sequence[LevelTarget]) -> tuple[AlertRule, ...]:
    return tuple(_burn_alert(target, rate) for target in targets for rate in BURN_RATES)


def _burn_alert(target: LevelTarget, rate: BurnRate) -> AlertRule:
    level = target.level
    chosen, bound = f'{{level="{level.id}"}}', f"{round(rate.factor(target) * target.budget, 8):g}"
    return AlertRule(
        name=f"ComputeGrid{level.name}{rate.suffix}",
        expression=f"{RATIO}_{rate.long}{chosen} > {bound}\n"
        f"and {RATIO}_{rate.short}{chosen} > {bound}\n"
        f"and {EVENTS}_{rate.long}{chosen} >= {level.fewest}",
        lasts="0s",
        severity=rate.severity,
        summary=_("{level}: the error budget burns {speed}.", level=level.title, speed=rate.words(target)),
        description=_(
            "In {{{{ $value | humanizePercentage }}}} of the {counted} of the last {long} the promise was broken: "
            "{promise}",
            counted=level.counted,
            long=rate.long,
            promise=target.promise,
        ),
        runbook=level.runbook or level.id,
        level=level.id,
    )


_API_ERRORS = 'sum(rate(compute_grid_api_request_seconds_count{code=~"0|5.."}[5m])) / sum(rate(compute_grid_api_request_seconds_count[5m]))'
_DISK = (
    f'min by (persistentvolumeclaim) (kubelet_volume_stats_available_bytes{{namespace="{PLATFORM_NAMESPACE}"}} '
    f'/ kubelet_volume_stats_capacity_bytes{{namespace="{PLATFORM_NAMESPACE}"}})'
)

# By name: its expression, for how long it holds, how grave it is and its anchor in docs/alerts.md; what is wrong, and more of it.
_PLAIN: Mapping[str, tuple[tuple[str, str, Literal["page", "ticket"], str], str, str]] = {
    "NoController": (
        ("(sum(compute_grid_controller_leads) or vector(0)) < 1", "2m", "page", "no-controller-leads"),
        _("No controller leads: nothing is launched, stopped or cleaned up."),
        _("{{ $value }} controllers lead, for two minutes. A change of leader takes half a minute."),
    ),
    "SeveralControllers": (
        ("sum(compute_grid_controller_leads) > 1", "2m", "page", "several-controllers-lead"),
        _("Several controllers believe that they lead."),
        _(
            "{{ $value }} controllers lead. One does by the Lease; the others may be from another installation that is scraped as well."
        ),
    ),
    "WebNotMeasured": (
        ("absent(compute_grid_cache_synced)", "5m", "page", "web-processes-are-not-measured"),
        _("Prometheus hears of no web process."),
        _("None runs, or their metrics are not scraped; then most other alerts are silent too."),
    ),
    "CacheNotSynced": (
        ("min by (instance, cache) (compute_grid_cache_synced) == 0", "5m", "page", "a-cache-is-not-synced"),
        _("A web process has not read the cluster yet."),
        _(
            "{{ $labels.instance }} has no first list of {{ $labels.cache }}, for five minutes: its pages cannot show them."
        ),
    ),
    "CacheBehind": (
        ("max by (instance, cache) (compute_grid_cache_behind_seconds) > 60", "2m", "page", "a-cache-is-behind"),
        _("Pages show an old state of the cluster."),
        _("{{ $labels.cache }} of {{ $labels.instance }} may be {{ $value | humanizeDuration }} behind the cluster."),
    ),
    "LoopBlocked": (
        ("max by (instance) (compute_grid_loop_longest_wait_seconds) > 1", "5m", "ticket", "the-event-loop-is-blocked"),
        _("A process makes everybody wait."),
        _(
            "What was due in {{ $labels.instance }} waited up to {{ $value | humanizeDuration }} for the event loop, again and again for "
            "five minutes."
        ),
    ),
    "ApiServerErrors": (
        (f"{_API_ERRORS} > 0.05", "5m", "page", "the-api-server-answers-with-errors"),
        _("The API server does not answer, or with errors."),
        _(
            "{{ $value | humanizePercentage }} of our requests to the API server had no answer, or one with a code from 500."
        ),
    ),
    "DatabaseErrors": (
        ("sum(increase(compute_grid_database_errors_total[5m])) >= 5", "5m", "page", "the-database-has-errors"),
        _("The database refuses statements."),
        _("{{ $value | humanize }} statements failed within five minutes."),
    ),
    "QueueOldest": (
        ("max(compute_grid_queue_oldest_seconds) > 7200", "10m", "ticket", "an-execution-is-queued-for-very-long"),
        _("An execution has been queued for very long."),
        _("The one that waits longest has been queued for {{ $value | humanizeDuration }}."),
    ),
    "DiskLow": (
        (f"{_DISK} < 0.15", "15m", "ticket", "a-volume-of-the-platform-is-full"),
        _("A volume of the platform is nearly full."),
        _("{{ $labels.persistentvolumeclaim }} has {{ $value | humanizePercentage }} left."),
    ),
    "DiskFull": (
        (f"{_DISK} < 0.05", "5m", "page", "a-volume-of-the-platform-is-full"),
        _("A volume of the platform is full."),
        _(
            "{{ $labels.persistentvolumeclaim }} has {{ $value | humanizePercentage }} left. A full one stops launches and pages."
        ),
    ),
    "RelistStorm": (
        (
            "sum by (instance, cache) (increase(compute_grid_watch_relists_total[15m])) > 10",
            "5m",
            "ticket",
            "a-watch-is-broken-off-again-and-again",
        ),
        _("A watch is broken off again and again."),
        _(
            "{{ $labels.instance }} listed {{ $labels.cache }} {{ $value | humanize }} times within 15 minutes; each time "
            "costs the API server a full list."
        ),
    ),
    "LogLinesLost": (
        (
            'sum(increase(compute_grid_log_lines_total{result!="sent"}[15m])) > 0',
            "5m",
            "ticket",
            "lines-are-missing-at-the-log-receiver",
        ),
        _("Lines of executions' logs are missing at the log receiver."),
        _("{{ $value | humanize }} lines were refused by it, or dropped for want of room, within 15 minutes."),
    ),
}
PLAIN_ALERTS = tuple(
    AlertRule(f"ComputeGrid{name}", expression, lasts, severity, summary, description, runbook)
    for name, ((expression, lasts, severity, runbook), summary, description) in _PLAIN.items()
)
