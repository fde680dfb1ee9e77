"""Decodes Deployments, DaemonSets and their pods into `grid.platformhealth.facts`; pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from grid.core.decoding import prepared
from grid.kube.objects import Metadata, Pod, is_ready
from grid.kube.slim import Slim
from grid.platformhealth.facts import PlatformPod, Workload

# Of one workload, since all of them are stored at each look, and a DaemonSet has one on each node.
MOST_PODS = 20


class _Selector(Slim, frozen=True, kw_only=True):
    match_labels: dict[str, str] = {}


class _Change(Slim, frozen=True, kw_only=True):
    type: str = ""
    last_update_time: datetime | None = None


class _Spec(Slim, frozen=True, kw_only=True):
    replicas: int = 1
    selector: _Selector = _Selector()


class _Status(Slim, frozen=True, kw_only=True):
    ready_replicas: int = 0
    number_ready: int = 0
    desired_number_scheduled: int = 0
    conditions: tuple[_Change, ...] = ()


class Controlled(Slim, frozen=True, kw_only=True):
    """A Deployment or DaemonSet."""

    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _List(Slim, frozen=True, kw_only=True):
    items: tuple[Controlled, ...] | None = None


def workload(kind: str, controlled: Controlled, pods: Iterable[Pod]) -> Workload:
    """Return it with those of the pods that its selector names. A DaemonSet notes no time of a change: its newest pod tells it."""
    meta, spec, status = controlled.metadata, controlled.spec, controlled.status
    own = [pod for pod in pods if pod.metadata.namespace == meta.namespace and _has(pod, spec.selector.match_labels)]
    is_deployment = kind == "Deployment"
    changes = [change.last_update_time for change in status.conditions if change.type == "Progressing"]
    times = changes if is_deployment else [pod.metadata.creation_timestamp for pod in own]
    return Workload(
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        ready=status.ready_replicas if is_deployment else status.number_ready,
        wanted=spec.replicas if is_deployment else status.desired_number_scheduled,
        changed_at=max(filter(None, times), default=meta.creation_timestamp),
        labels=meta.labels,
        pods=tuple(sorted(map(_pod, own), key=_badness)[:MOST_PODS]),
        more_pods=max(0, len(own) - MOST_PODS),
    )


def _has(pod: Pod, selector: Mapping[str, str]) -> bool:
    return bool(selector) and selector.items() <= pod.metadata.labels.items()


def _badness(pod: PlatformPod) -> tuple[bool, float, str]:
    """Those that are not ready come first, then those that have restarted last."""
    return pod.is_ready, -pod.restarted_at.timestamp() if pod.restarted_at else 0.0, pod.name


def _pod(pod: Pod) -> PlatformPod:
    statuses = pod.status.container_statuses
    ends = [status.last_state.terminated.finished_at for status in statuses if status.last_state.terminated is not None]
    waits = [status.state.waiting.reason for status in statuses if status.state.waiting is not None]
    return PlatformPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        is_ready=is_ready(pod),
        restarts=sum(status.restart_count for status in statuses),
        restarted_at=max(filter(None, ends), default=None),
        waits_for=next(iter(waits), ""),
    )


def decoded(body: bytes) -> list[Controlled]:
    return list(msgspec.json.decode(body, type=prepared(_List)).items or ())
