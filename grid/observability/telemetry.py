"""What a process counts of its own work, named as Prometheus names things: the unit at the end, and no label whose values have no bound.

It is counted in memory since the process began, and `grid.runtime.metrics` serves it; Prometheus adds up what several processes counted.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache, partial
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary

MOST_REASONS = 200  # entries of the knowledge base are reasons too
MOST_ROUTES = 500  # there are as many as URL patterns; only a bug would make more
OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# A server may answer with any number; 0 says that no answer came.
CODES = {0: "0"} | {int(status): str(int(status)) for status in HTTPStatus}
REGISTRY = CollectorRegistry()

# A start takes seconds where image and node are there, and half an hour where a large node has to be made.
_START_BUCKETS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_counter, _gauge = partial(Counter, registry=REGISTRY), partial(Gauge, registry=REGISTRY)
_histogram, _summary = partial(Histogram, registry=REGISTRY), partial(Summary, registry=REGISTRY)
_start_times = partial(_histogram, buckets=_START_BUCKETS)
_delays = partial(_histogram, buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 30))
_page_times = partial(_histogram, buckets=(0.025, 0.1, 0.25, 0.5, 1, 2.5, 10))

_states = _counter("compute_grid_execution_states_entered", "Executions that entered a state.", ["state"])
_failures = _counter(
    "compute_grid_execution_failures",
    "Executions that failed: with state failed by their own program, with error otherwise; by the code of the reason.",
    ["state", "reason"],
)
_starts = _start_times(
    "compute_grid_start_seconds", "From the launch until the execution ran, or ended before.", ["kind", "ran"]
)
_phases = _start_times(
    "compute_grid_start_phase_seconds",
    "Phases of starts; one that was not needed or is not known is left out.",
    ["phase"],
)
_requests = _histogram(
    "compute_grid_api_request_seconds",
    "From a request to the API server until its answer began; the code is 0 when none came.",
    ["method", "code"],
    buckets=(0.005, 0.02, 0.1, 0.5, 1, 5, 30),
)
_behind = _delays(
    "compute_grid_live_page_behind_seconds", "How long a live page that was due waited for its turn.", ["page"]
)
SOCKETS = _gauge("compute_grid_live_sockets", "Browsers that follow a live page of this process.")

_served = _page_times(
    "compute_grid_http_request_seconds",
    "From a request of a browser until its answer began, by the name of the URL pattern.",
    ["route", "method", "code"],
)
_on_screen = _delays(
    "compute_grid_event_to_screen_seconds",
    "From the moment that a cache took in a change until a browser's websocket was handed the message with it.",
    ["page"],
)
_proxied = _page_times(
    "compute_grid_proxy_request_seconds",
    "From a request to the proxy until its answer began; a program's own 502, 503 and 504 are counted as 500.",
    ["code"],
)
_proxied_as = cache(_proxied.labels)  # each request asks
PROXY_WEBSOCKETS = _gauge("compute_grid_proxy_websockets", "Open websockets of people's programs.")
_launches = _counter("compute_grid_launches", "Executions that were launched.", ["kind"])
_admissions = _counter(
    "compute_grid_admissions",
    "What came of asking for slots: admitted, deferred (once for each reason to wait), or timed_out.",
    ["result"],
)
_database = _histogram(
    "compute_grid_database_seconds",
    "Statements to the database, until it began to answer.",
    ["vendor"],
    buckets=(0.0005, 0.002, 0.01, 0.05, 0.25, 1, 5),
)
_database_errors = _counter(
    "compute_grid_database_errors",
    "Connections and statements that failed, but for those that break a rule of the data.",
)
_relists = _counter("compute_grid_watch_relists", "Lists that had to be read again.", ["cache", "reason"])
_watches = _gauge("compute_grid_watches_open", "Watches that the caches hold open.", ["cache"])
LOG_LINES = _counter(
    "compute_grid_log_lines",
    "Lines of executions' logs for the log receiver: sent, refused by it, or dropped for want of room.",
    ["result"],
)
LOG_GAPS = _counter(
    "compute_grid_log_gaps",
    "Logs of which a part was gone, or could not be read, when it was to be sent to the log receiver.",
)
LOG_BUFFER = _gauge("compute_grid_log_buffer_bytes", "Lines that wait to be sent to the log receiver, in memory.")

DUE_WORK_LATE = _gauge(
    "compute_grid_due_work_late_seconds",
    "For how long the oldest of what is due has been due when the controller looked last, by kind of work.",
    ["work"],
)

_periodic = _summary(
    "compute_grid_periodic_task_seconds",
    "Runs of a periodic task of this process, failed ones among them, and how long they took.",
    ["task"],
)
_periodic_failures = _counter(
    "compute_grid_periodic_task_failures", "Runs of a periodic task of this process that failed.", ["task"]
)
_periodic_success = _gauge(
    "compute_grid_periodic_task_last_success_timestamp_seconds",
    "When a periodic task of this process last succeeded; absent before, and where it does not run.",
    ["task"],
)

_reasons: set[str] = set()
_routes: set[str] = set()


def entered(state: str, reason: str) -> None:
    _states.labels(state).inc()
    if state in ("failed", "error"):
        _failures.labels(state, _bounded(reason)).inc()


def started(kind: str, total: float, phases: Mapping[str, float | None], *, ran: bool) -> None:
    """Count the start of an execution, or its end before; times are in seconds."""
    _starts.labels(kind, str(ran).lower()).observe(total)
    for phase, seconds in phases.items():
        if seconds:
            _phases.labels(phase).observe(seconds)


def asked(method: str, code: int, seconds: float) -> None:
    _requests.labels(_method(method), CODES.get(code, OTHER)).observe(seconds)


def looked(page: str, behind: float) -> None:
    """Count that a live page was brought up to date, so many seconds after it was due."""
    _late(page).observe(behind)


def served(route: str, method: str, code: int, seconds: float) -> None:
    """Count a request to the dashboard; `route` is the name of the URL pattern, never a path."""
    if route not in _routes and len(_routes) >= MOST_ROUTES:
        route = OTHER
    _routes.add(route)
    _served.labels(route, _method(method), CODES.get(code, OTHER)).observe(seconds)


def on_screen(page: str, seconds: float) -> None:
    """Count that a change was handed to one browser."""
    _of_page(page).observe(seconds)


def proxied(code: int, seconds: float) -> None:
    """Count what the proxy answered, to a request or to one for a websocket (101)."""
    _proxied_as(CODES.get(code, OTHER)).observe(seconds)


def launched(kind: str) -> None:
    _launches.labels(kind).inc()


def asked_for_slots(result: str, count: int = 1) -> None:
    """Count what came of asking for slots: "admitted", "deferred" or "timed_out"."""
    _admissions.labels(result).inc(count)


def listed_again(cache: str, reason: str) -> None:
    """Count that a cache's list was read again: "expired", "fruitless" or "misunderstood"."""
    _relists.labels(cache, reason).inc()


def periodic_succeeded(task: str, seconds: float, now: datetime) -> None:
    _periodic.labels(task).observe(seconds)
    _periodic_success.labels(task).set(now.timestamp())


def periodic_failed(task: str, seconds: float) -> None:
    _periodic.labels(task).observe(seconds)
    _periodic_failures.labels(task).inc()


database_failed, watches_of = _database_errors.inc, _watches.labels
forget_periodic = _periodic_success.remove  # as the task ends: a process that no longer leads is not late
# Looking a child up by its labels takes as long as observing.
database_statements, _of_page, _late = cache(_database.labels), cache(_on_screen.labels), cache(_behind.labels)


def _method(method: str) -> str:
    return method if method in METHODS else OTHER


def _bounded(reason: str) -> str:
    if reason not in _reasons and len(_reasons) >= MOST_REASONS:
        return OTHER
    _reasons.add(reason)
    return reason
