"""An incident for each alert, as data: what is measured while it lasts and after it ended, and what the alert says then.

Values are those of each minute, as promtool writes them: `a+bxn` begins with a and grows by b, n times.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

BAD, GOOD = 60, 400  # minutes of a broken promise, and of a kept one afterwards: longer than the longest short window
_ALWAYS = f"0+100x{BAD + GOOD}"
_ONLY_BAD = f"0+100x{BAD} {100 * BAD}x{GOOD - 1}"
_ONLY_GOOD = f"0x{BAD} 100+100x{GOOD - 1}"

# By service level: all starts are slow, all changes late; of the others half are bad.
BROKEN_PROMISES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "start-time": (
        "100%",
        {
            'compute_grid_start_seconds_count{ran="true",kind="job"}': _ALWAYS,
            'compute_grid_start_seconds_bucket{ran="true",kind="job",le="300.0"}': _ONLY_GOOD,
        },
    ),
    "queue-time": (
        "100%",
        {
            'compute_grid_start_seconds_count{ran="true",kind="job"}': _ALWAYS,
            'compute_grid_start_phase_seconds_count{phase="queued"}': _ALWAYS,
            'compute_grid_start_phase_seconds_bucket{phase="queued",le="600.0"}': _ONLY_GOOD,
        },
    ),
    "queue-length": (
        "100%",
        {
            'compute_grid_executions{state="queued",kind="job"}': f"101x{BAD} _x{GOOD}",
            "compute_grid_controller_leads": f"1x{BAD + GOOD}",
        },
    ),
    "failure-rate": (
        "50%",
        {
            'compute_grid_execution_failures_total{state="error",reason="not_created"}': _ONLY_BAD,
            'compute_grid_execution_failures_total{state="error",reason="over_quota_timeout"}': _ALWAYS,
            'compute_grid_execution_failures_total{state="failed",reason="exit_code"}': _ALWAYS,
            'compute_grid_execution_states_entered_total{state="running"}': _ALWAYS,
            'compute_grid_execution_states_entered_total{state="error"}': _ALWAYS,
            'compute_grid_execution_states_entered_total{state="failed"}': _ALWAYS,
        },
    ),
    "event-to-screen": (
        "100%",
        {
            'compute_grid_event_to_screen_seconds_count{page="executions"}': _ALWAYS,
            'compute_grid_event_to_screen_seconds_bucket{page="executions",le="1.0"}': _ONLY_GOOD,
        },
    ),
    "pages": (
        "50%",
        {
            'compute_grid_http_request_seconds_count{route="home",method="GET",code="500"}': _ONLY_BAD,
            'compute_grid_http_request_seconds_count{route="home",method="GET",code="200"}': _ALWAYS,
        },
    ),
    "workspaces": (
        "50%",
        {
            'compute_grid_proxy_request_seconds_count{code="502"}': _ONLY_BAD,
            'compute_grid_proxy_request_seconds_count{code="500"}': _ALWAYS,
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Incident:
    """Lasts for an hour. `values` are those that stand in the alert's texts, by template mark; an alert with a label has it."""

    series: Mapping[str, str]
    values: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


_CACHE = {"instance": "web-1", "cache": "pods"}
_LABELS = 'instance="web-1",cache="pods"'
_VALUE, _SHARE, _SECONDS, _ROUND = (
    f"{{{{ $value{how} }}}}" for how in ("", " | humanizePercentage", " | humanizeDuration", " | humanize")
)
_VOLUME = 'namespace="compute-grid-system",persistentvolumeclaim="files"'


def _disk(left: int, share: str) -> Incident:
    return Incident(
        {
            f"kubelet_volume_stats_available_bytes{{{_VOLUME}}}": f"{left}x60 50x60",
            f"kubelet_volume_stats_capacity_bytes{{{_VOLUME}}}": "100x120",
            'kubelet_volume_stats_available_bytes{namespace="other",persistentvolumeclaim="theirs"}': "0x120",
            'kubelet_volume_stats_capacity_bytes{namespace="other",persistentvolumeclaim="theirs"}': "100x120",
        },
        {_SHARE: share},
        {"persistentvolumeclaim": "files"},
    )


INCIDENTS: Mapping[str, Incident] = {
    "ComputeGridNoController": Incident(
        {
            'compute_grid_controller_leads{instance="a"}': "0x60 1x60",
            'compute_grid_controller_leads{instance="b"}': "_x60 0x60",
        },
        {_VALUE: "0"},
    ),
    "ComputeGridSeveralControllers": Incident(
        {
            'compute_grid_controller_leads{instance="a"}': "1x60 1x60",
            'compute_grid_controller_leads{instance="b"}': "1x60 0x60",
        },
        {_VALUE: "2"},
    ),
    "ComputeGridWebNotMeasured": Incident({f"compute_grid_cache_synced{{{_LABELS}}}": "_x70 1x50"}),
    "ComputeGridCacheNotSynced": Incident({f"compute_grid_cache_synced{{{_LABELS}}}": "0x60 1x60"}, labels=_CACHE),
    "ComputeGridCacheBehind": Incident(
        {f"compute_grid_cache_behind_seconds{{{_LABELS}}}": "90x60 0x60"}, {_SECONDS: "1m 30s"}, _CACHE
    ),
    "ComputeGridLoopBlocked": Incident(
        {'compute_grid_loop_longest_wait_seconds{instance="web-1"}': "2x60 0.01x60"},
        {_SECONDS: "2s"},
        {"instance": "web-1"},
    ),
    "ComputeGridApiServerErrors": Incident(
        {
            'compute_grid_api_request_seconds_count{method="GET",code="0"}': "0+5x60 300x60",
            'compute_grid_api_request_seconds_count{method="GET",code="503"}': "0+5x60 300x60",
            'compute_grid_api_request_seconds_count{method="GET",code="404"}': "0+30x120",
        },
        {_SHARE: "25%"},
    ),
    "ComputeGridDatabaseErrors": Incident(
        {'compute_grid_database_errors_total{instance="web-1"}': "0+2x60 120x60"}, {_ROUND: "10"}
    ),
    "ComputeGridQueueOldest": Incident(
        {"compute_grid_queue_oldest_seconds": "10000x60 0x60"}, {_SECONDS: "2h 46m 40s"}
    ),
    "ComputeGridDiskLow": _disk(10, "10%"),
    "ComputeGridDiskFull": _disk(3, "3%"),
    "ComputeGridRelistStorm": Incident(
        {f'compute_grid_watch_relists_total{{{_LABELS},reason="gone"}}': "0+1x60 60x60"}, {_ROUND: "15"}, _CACHE
    ),
    "ComputeGridLogLinesLost": Incident(
        {
            'compute_grid_log_lines_total{result="refused"}': "0+2x60 120x60",
            'compute_grid_log_lines_total{result="sent"}': "0+50x120",
        },
        {_ROUND: "30"},
    ),
}
