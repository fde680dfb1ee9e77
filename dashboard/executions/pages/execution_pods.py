"""Finds an execution's pods in the watch caches. Labels are trusted in the executions' namespace only: elsewhere others may write them."""

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings

from grid.diagnosis.diagnosis import Diagnosis
from grid.kube.objects import Pod
from grid.runtime import Runtime
from grid.runtime.caches import id_of
from grid.runtime.executionrows import ExecutionRow

# In which the pods tell the condition.
POD_STATES = frozenset({"deploying", "preparing", "running"})


def pods_of(runtime: Runtime, execution_id: str) -> Sequence[Pod]:
    pods, trusted = runtime.pods.by("execution", execution_id), settings.GRID_NAMESPACE
    return [pod for pod in pods if pod.metadata.namespace == trusted]


def execution_of(runtime: Runtime, pod: Pod) -> ExecutionRow | None:
    """Return the pod's execution if it is active or has ended within the last hour."""
    return runtime.executions.get(id_of(pod))


def explain(runtime: Runtime, pod: Pod, now: datetime, *, sees_all: bool = False) -> Diagnosis:
    """Explain the pod; only who sees all executions is told whose pods hold the nodes that it waits for."""
    return runtime.explainer.explain(pod, names_others=sees_all, now=now)
