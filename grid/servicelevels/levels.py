"""The service levels as data. Each counts what was bad and all there was, as PromQL over our own metrics; the rest was good.

In the expressions `$window` is a range of Prometheus (`1h`), `$threshold` a number and `$bucket` the matcher of a histogram's bucket.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from grid.core.translation import gettext as _

OBJECTIVE_OF = 10_000  # objectives are whole numbers of 10,000: 9,950 is 99.5 %
# Below 93.1 % even a complete failure burns a budget of 30 days less than 14.4 times as fast as allowed: too slow for the first alert.
LEAST_OBJECTIVE, HIGHEST_OBJECTIVE = 9_400, 9_999
WINDOW_DAYS = 30
SHORTEST_WINDOW, LONGEST_WINDOW = 7, 90
# Reasons with which an execution ends as an error though the platform did what it promises: a full quota, a secret or files that are gone.
NOT_PLATFORM = ("over_quota_timeout", "secret_missing", "files_missing")
ENDED = ("succeeded", "failed", "error", "stopped")

_QUEUED = '(sum(compute_grid_executions{state="queued"}) or 0 * sum(compute_grid_controller_leads == 1))'
_REASONS = "|".join(NOT_PLATFORM)


def _increase(metric: str, *matchers: str) -> str:
    chosen = f"{{{','.join(matchers)}}}" if matchers else ""
    return f"sum(increase({metric}{chosen}[$window]))"


def _slower(metric: str, *matchers: str) -> str:
    return f"{_increase(metric + '_count', *matchers)} - {_increase(metric + '_bucket', *matchers, '$bucket')}"


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """A promise in plain words, with its `{objective}` and perhaps a `{threshold}`, and its measure; `runbook` is in docs/alerts.md.

    `steps` are the thresholds that a histogram can measure, in `unit`; without them any number can. Fewer than `fewest` within an alert's
    longer window alert nobody: one of two is not a trend.
    """

    id: str
    title: str
    promise: str
    explained: str
    counted: str
    bad: str
    total: str
    objective: int
    threshold: int = 0
    steps: tuple[int, ...] = ()
    unit: str = ""
    steps_of_second: int = 1
    highest_threshold: int = 0
    fewest: int = 10
    runbook: str = ""  # if it is not the id

    @property
    def name(self) -> str:
        """Return the name in alerts and setting keys: camel case."""
        return "".join(word.capitalize() for word in self.id.split("-"))


_STARTS = "compute_grid_start_seconds"
_PHASES = "compute_grid_start_phase_seconds"
_SCREEN = "compute_grid_event_to_screen_seconds"
_REQUESTS = "compute_grid_http_request_seconds"
_PROXIED = "compute_grid_proxy_request_seconds"
_START_STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)

LEVELS: tuple[ServiceLevel, ...] = (
    ServiceLevel(
        id="start-time", runbook="start-up-time", title=_("Start-up time"),
        promise=_("{objective} of starts run within {threshold} of their launch."),
        explained=_("From the launch until the execution runs, its wait in the queue included. One that ended before it ran is not "
                    "counted."),
        counted=_("starts that ran"), bad=_slower(_STARTS, 'ran="true"'),
        total=_increase(f"{_STARTS}_count", 'ran="true"'), objective=9_500, threshold=300, steps=_START_STEPS, unit="seconds",
    ),
    ServiceLevel(
        id="queue-time", title=_("Queue time"),
        promise=_("{objective} of starts get their slots within {threshold}."),
        explained=_("From the launch until slots are reserved. A person over the quota waits too, and counts."),
        counted=_("starts"), bad=_slower(_PHASES, 'phase="queued"') + " or vector(0)",
        total=_increase(f"{_STARTS}_count"), objective=9_500, threshold=600, steps=_START_STEPS, unit="seconds",
    ),
    ServiceLevel(
        id="queue-length", title=_("Queue length"),
        promise=_("In {objective} of the time no more than {threshold} executions are queued."),
        explained=_("Looked at each minute, of all people together."),
        counted=_("minutes"), bad=f"sum_over_time(({_QUEUED} > bool $threshold)[$window:$step])",
        total=f"count_over_time({_QUEUED}[$window:$step])",
        objective=9_500, threshold=100, highest_threshold=1_000_000, unit="executions", fewest=1,
    ),
    ServiceLevel(
        id="failure-rate", title=_("Failure rate"),
        promise=_("{objective} of executions end without an error of the platform."),
        explained=_("A program that fails by itself is not counted as bad, nor is a full quota, or a secret or files that are gone."),
        counted=_("executions that ended"),
        bad=_increase("compute_grid_execution_failures_total", 'state="error"', f'reason!~"{_REASONS}"') + " or vector(0)",
        total=_increase("compute_grid_execution_states_entered_total", f'state=~"{"|".join(ENDED)}"'), objective=9_900,
    ),
    ServiceLevel(
        id="event-to-screen", title=_("Event to screen"),
        promise=_("{objective} of updates reach the browser within {threshold}."),
        explained=_("From the moment the dashboard hears of a change in the cluster until it has sent it to a browser that shows it."),
        counted=_("updates"), bad=_slower(_SCREEN), total=_increase(f"{_SCREEN}_count"),
        objective=9_900, threshold=1000, steps=(100, 500, 1000, 5000), unit="milliseconds",
        steps_of_second=1000, fewest=100,
    ),
    ServiceLevel(
        id="pages", runbook="availability-of-pages", title=_("Availability of pages"),
        promise=_("{objective} of requests are answered without an error of the server."),
        explained=_("Bad is an answer with a code from 500. Requests that reached no web process are not seen here."),
        counted=_("requests"), bad=_increase(f"{_REQUESTS}_count", 'code=~"5.."') + " or vector(0)",
        total=_increase(f"{_REQUESTS}_count"),
        objective=9_950, fewest=100,
    ),
    ServiceLevel(
        id="workspaces", runbook="availability-of-workspaces", title=_("Availability of workspaces"),
        promise=_("{objective} of requests reach the program in the pod."),
        explained=_("Of requests to workspaces, apps and clusters through the proxy; bad is 502, 503 or 504. A program that its owner has "
                    "crashed counts too."),
        counted=_("requests"), bad=_increase(f"{_PROXIED}_count", 'code=~"502|503|504"') + " or vector(0)",
        total=_increase(f"{_PROXIED}_count"),
        objective=9_950, fewest=100,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LevelTarget:
    """A service level with the objective (of 10,000), threshold and window in force."""

    level: ServiceLevel
    objective: int
    threshold: int
    window_days: int = WINDOW_DAYS

    @property
    def budget(self) -> float:
        return round(1 - self.objective / OBJECTIVE_OF, 6)

    @property
    def measured_threshold(self) -> int:
        """Return the threshold that is measured: the largest step that does not exceed the one that is set."""
        steps = self.level.steps
        return max((step for step in steps if step <= self.threshold), default=steps[0]) if steps else self.threshold

    @property
    def promise(self) -> str:
        threshold = f"{self.measured_threshold:,}"
        if self.level.unit in ("seconds", "milliseconds"):
            threshold = duration_words(self.measured_threshold / self.level.steps_of_second)
        return self.level.promise.format(objective=f"{self.objective * 100 / OBJECTIVE_OF:g} %", threshold=threshold)

    def bad(self, window: str, step: str = "1m") -> str:
        return self._filled(self.level.bad, window, step)

    def total(self, window: str, step: str = "1m") -> str:
        return self._filled(self.level.total, window, step)

    def error_ratio(self, window: str, step: str = "1m") -> str:
        """Return the share of bad ones; nothing where there was nothing."""
        return f"({self.bad(window, step)}) / (({self.total(window, step)}) > 0)"

    def _filled(self, text: str, window: str, step: str) -> str:
        bound = self.measured_threshold / self.level.steps_of_second
        # Prometheus 2 keeps "300.0" as our processes write it, and other writers say "300".
        bucket = f'le=~"{bound:g}|{bound:.1f}"'
        filled = text.replace("$bucket", bucket).replace("$threshold", str(self.measured_threshold))
        return filled.replace("$window", window).replace("$step", step)


def default_targets() -> tuple[LevelTarget, ...]:
    return tuple(LevelTarget(level, level.objective, level.threshold) for level in LEVELS)


def duration_words(seconds: float) -> str:
    """Return a time in its largest whole unit."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"


@dataclass(frozen=True, slots=True)
class LevelDay:
    day: date
    bad: float
    total: float


@dataclass(frozen=True, slots=True)
class LevelStatus:
    """How a service level stands. `attained` is None when nothing was counted in the window; `burn` is how many times faster than allowed
    the budget was used up lately, None when that is not known. `left` is the share of the budget that is left, negative when overspent;
    `days` has the share that was left after each day."""

    target: LevelTarget
    total: float
    bad: float
    attained: float | None
    left: float | None
    burn: float | None
    days: tuple[tuple[date, float], ...]


def status_of(target: LevelTarget, days: Sequence[LevelDay], burn_ratio: float | None) -> LevelStatus:
    """Return the status over the window's days. `burn_ratio` is the share of bad ones lately."""
    counted = sorted((day for day in days if day.total > 0), key=lambda day: day.day)
    # Prometheus extrapolates an increase, so a day may have a little more bad ones than there were at all.
    parts = [(day.day, min(max(day.bad, 0.0), day.total), day.total) for day in counted]
    total, bad = sum(part[2] for part in parts), sum(part[1] for part in parts)
    burn = None if burn_ratio is None else min(max(burn_ratio, 0.0), 1.0) / target.budget
    if not total:
        return LevelStatus(target, 0, 0, None, None, burn, ())
    allowed, spent, left = total * target.budget, 0.0, []
    for day, of_day, _all in parts:
        spent += of_day
        left.append((day, 1 - spent / allowed))
    return LevelStatus(target, total, bad, 1 - bad / total, 1 - bad / allowed, burn, tuple(left))
