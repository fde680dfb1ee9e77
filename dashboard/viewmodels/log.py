"""Which container's log an execution's page shows, and what to say when there is none; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.viewmodels.execution import ExecutionRecord
from grid.kube.objects import Pod

MAIN_CONTAINER = "run"


@dataclass(frozen=True, slots=True)
class LogSource:
    """`pods` and `containers` are what may be chosen."""

    namespace: str
    pod: str
    container: str
    has_started: bool
    pods: tuple[str, ...]
    containers: tuple[str, ...]


def log_source(pods: Sequence[Pod], *, pod: str, container: str, main: str) -> LogSource | None:
    """What was asked for when it exists, else the main pod's main container; None without pods."""
    if not pods:
        return None
    by_name = {one.metadata.name: one for one in sorted(pods, key=lambda one: one.metadata.name)}
    found = by_name.get(pod) or by_name.get(main) or next(iter(by_name.values()))
    containers = [one.name for one in (*found.spec.init_containers, *found.spec.containers)]
    usual = MAIN_CONTAINER if MAIN_CONTAINER in containers else containers[-1] if containers else ""
    chosen = container if container in containers else usual
    return LogSource(
        namespace=found.metadata.namespace,
        pod=found.metadata.name,
        container=chosen,
        has_started=_has_started(found, chosen),
        pods=tuple(by_name),
        containers=tuple(containers),
    )


def why_no_log(record: ExecutionRecord) -> str:
    if record.is_final:
        return "No log was kept of it: it ended before its program wrote anything."
    if record.state == "stopping":
        return "Its program has ended; what it wrote last appears here when the execution has ended."
    return "Its program has not started yet. The log appears here as soon as it writes something."


def _has_started(pod: Pod, container: str) -> bool:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.name == container:
            state = status.state
            return bool(state.running or state.terminated or status.last_state.terminated)
    return False
