"""Chooses the container whose log an execution's page shows, merges the logs of a cluster, and says why there is no log; pure."""

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dashboard.viewmodels.execution import ExecutionRecord
from grid.kube.objects import Pod
from grid.labels import APP_COMPONENT, HEAD

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")

MAIN_CONTAINER = "run"
ALL = "all"  # the choice that shows the logs of all pods merged
MERGED_PODS = 24


@dataclass(frozen=True, slots=True)
class LogSource:
    """The container whose log is shown; `pods` and `containers` are the choices."""

    namespace: str
    pod: str
    container: str
    has_started: bool
    pods: tuple[str, ...]
    containers: tuple[str, ...]


def all_source(pods: Sequence[Pod]) -> LogSource | None:
    """Return the source of all the cluster's pods merged, in which each pod is also a choice; None without pods."""
    if not pods:
        return None
    names = tuple(sorted((one.metadata.name for one in pods), key=lambda name: ("-head-" not in name, name)))
    return LogSource(
        namespace=pods[0].metadata.namespace,
        pod=ALL,
        container=MAIN_CONTAINER,
        has_started=bool(started_pods(pods)),
        pods=(ALL, *names),
        containers=(MAIN_CONTAINER,),
    )


def log_source(pods: Sequence[Pod], *, pod: str, container: str, main: str) -> LogSource | None:
    """Return the requested pod and container where they exist, else the main pod and its main container; None without pods."""
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


def started_pods(pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods whose program has started, the head first, then the newest."""
    started = [pod for pod in pods if _has_started(pod, MAIN_CONTAINER)]
    started.sort(key=lambda pod: str(pod.metadata.creation_timestamp or ""), reverse=True)
    started.sort(key=lambda pod: pod.metadata.labels.get(APP_COMPONENT) != HEAD)
    return started


def member_name(pod: Pod) -> str:
    """Return the prefix of the pod's log lines: "head", or the random suffix of a worker's name."""
    if pod.metadata.labels.get(APP_COMPONENT) == HEAD:
        return HEAD
    return pod.metadata.name.rpartition("-")[2]


def merged(logs: Mapping[str, str], *, lines: int) -> str:
    """Return the last `lines` of all logs by timestamp, each with its pod's name in front. The logs' lines begin with the kubelet's
    timestamps; a line without one stays after the line before it."""
    width = max(map(len, logs), default=0)
    streams = [_stamped(name.ljust(width), text) for name, text in logs.items()]
    together = [line for _, line in heapq.merge(*streams, key=lambda pair: pair[0])]
    return "".join(f"{line}\n" for line in together[-lines:])


def _stamped(name: str, text: str) -> Iterable[tuple[str, str]]:
    """Return pairs of a timestamp that sorts as text and the line to show."""
    latest = ""
    found = []
    for line in text.splitlines():
        stamp, _, rest = line.partition(" ")
        if _STAMP.fullmatch(stamp):
            seconds, _, fraction = stamp.rstrip("Z").partition(".")
            latest = max(latest, f"{seconds}.{fraction.ljust(9, '0')}")
            found.append((latest, f"{name} {seconds[11:]} {rest}"))
        else:
            found.append((latest, f"{name} {line}"))
    return found


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
