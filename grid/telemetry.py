"""What a process counts of its own work, named as Prometheus names things: the unit at the end, and no label whose values have no bound.

It is counted in memory since the process began, and `grid.runtime.metrics` serves it; Prometheus adds up what several processes counted.
"""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

MOST_REASONS = 200  # entries of the knowledge base are reasons too
OTHER = "other"
REGISTRY = CollectorRegistry()

# A start takes seconds where image and node are there, and half an hour where a large node has to be made.
_START_BUCKETS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_REQUEST_BUCKETS = (0.005, 0.02, 0.1, 0.5, 1, 5, 30)
_BEHIND_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)

_states = Counter(
    "compute_grid_execution_states_entered", "Executions that entered a state.", ["state"], registry=REGISTRY
)
_failures = Counter(
    "compute_grid_execution_failures",
    "Executions that failed: with state failed by their own program, with error otherwise; by the code of the reason.",
    ["state", "reason"],
    registry=REGISTRY,
)
_starts = Histogram(
    "compute_grid_start_seconds",
    "From the launch until the execution ran, or ended before.",
    ["kind", "ran"],
    buckets=_START_BUCKETS,
    registry=REGISTRY,
)
_phases = Histogram(
    "compute_grid_start_phase_seconds",
    "Phases of starts; one that was not needed or is not known is left out.",
    ["phase"],
    buckets=_START_BUCKETS,
    registry=REGISTRY,
)
_requests = Histogram(
    "compute_grid_api_request_seconds",
    "From a request to the API server until its answer began; the code is 0 when none came.",
    ["method", "code"],
    buckets=_REQUEST_BUCKETS,
    registry=REGISTRY,
)
_behind = Histogram(
    "compute_grid_live_page_behind_seconds",
    "How long a live page that was due waited for its turn.",
    ["page"],
    buckets=_BEHIND_BUCKETS,
    registry=REGISTRY,
)
SOCKETS = Gauge("compute_grid_live_sockets", "Browsers that follow a live page of this process.", registry=REGISTRY)

_reasons: set[str] = set()


def entered(state: str, reason: str) -> None:
    """Count that an execution entered the state."""
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
    """Count a request to the API server."""
    _requests.labels(method, str(code)).observe(seconds)


def looked(page: str, behind: float) -> None:
    """Count that a live page was brought up to date, so many seconds after it was due."""
    _behind.labels(page).observe(behind)


def _bounded(reason: str) -> str:
    if reason not in _reasons and len(_reasons) >= MOST_REASONS:
        return OTHER
    _reasons.add(reason)
    return reason
