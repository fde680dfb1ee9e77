"""What stands beside the program of a run's pod: the executor of its files, and nginx in front of its web server. Both are native sidecars
where the server has them, and ordinary containers where it has not. How they end says nothing about the run."""

from grid.core.labels import KEYS
from grid.kube.objects import ContainerStatus, Pod

PROGRAM = "run"  # the containers' names
FRONT = "nginx"
FRONT_PORTS = (19080, 19081)
EXECUTOR = "executor"
PREPARER = "executor-prepare"  # where the cluster has no native sidecars: the setup step that fetches the files for the executor


def has_ordinary_executor(pod: Pod) -> bool:
    """Return whether its executor is a container like its program, as where the cluster has no native sidecars."""
    return any(container.name == PREPARER for container in pod.spec.init_containers)


def has_ordinary_front(pod: Pod) -> bool:
    """Return whether its nginx is a container like its program. In a pod that is no run of ours, one of that name is a program."""
    return KEYS.execution in pod.metadata.labels and {PROGRAM, FRONT} <= {
        container.name for container in pod.spec.containers
    }


def has_front(pod: Pod) -> bool:
    """Return whether an nginx runs in front of its program."""
    has_sidecar = any(
        container.name == FRONT and container.restart_policy == "Always" for container in pod.spec.init_containers
    )
    return has_sidecar or has_ordinary_front(pod)


def is_sidecar(pod: Pod, name: str) -> bool:
    """Return whether the container of that name is like the program, and is none. The name is asked first, because the pod's others are
    then seldom looked at."""
    return (name == EXECUTOR and has_ordinary_executor(pod)) or (name == FRONT and has_ordinary_front(pod))


def programs(pod: Pod) -> list[ContainerStatus]:
    """Return its containers without those that stand beside the program."""
    return [status for status in pod.status.container_statuses if not is_sidecar(pod, status.name)]


def program_ended(pod: Pod) -> bool:
    """Return whether the program has ended for good."""
    ended = [status.state.terminated for status in programs(pod)]
    if not ended:
        return False
    if pod.status.phase in ("Succeeded", "Failed") or pod.spec.restart_policy == "Never":
        return all(ended)
    return all(end is not None and end.exit_code == 0 for end in ended)
