"""What is sent of a pod: the log of its main container, and what is known of it; pure."""

from grid.core.labels import APP_COMPONENT, HEAD, KEYS, WORKER
from grid.executions.caches import execution_of
from grid.executions.manifests import CONTAINER
from grid.kube.objects import ContainerStatus, Pod
from grid.logs.logshipping.lines import LineSource
from grid.models.environment import Kind

_ENDED = ("Succeeded", "Failed")


def source_of(pod: Pod) -> LineSource:
    """Return what a pod's lines are of."""
    labels = pod.metadata.labels
    kind = labels.get(APP_COMPONENT, "")
    return LineSource(
        execution=execution_of(pod),
        kind=Kind.CLUSTER.value if kind in (HEAD, WORKER) else kind,
        project=labels.get(KEYS.project, ""),
        user=labels.get(KEYS.user, ""),
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        container=CONTAINER,
    )


def has_run(pod: Pod) -> bool:
    """Return whether there is a log to read."""
    status = _program(pod)
    return status is not None and (status.state.waiting is None or status.restart_count > 0)


def has_ended(pod: Pod) -> bool:
    """Return whether no more will be written."""
    status = _program(pod)
    is_last = status is not None and status.state.terminated is not None and pod.spec.restart_policy == "Never"
    return is_last or pod.status.phase in _ENDED


def restarts(pod: Pod) -> int:
    """Return how often the container was restarted; each run has a log of its own."""
    status = _program(pod)
    return status.restart_count if status is not None else 0


def _program(pod: Pod) -> ContainerStatus | None:
    return next((status for status in pod.status.container_statuses if status.name == CONTAINER), None)
