"""Tells the containers of a pod apart: setup steps (init containers), sidecars (init containers that are always restarted), the program.

Beside the program of a run stand the executor of its files, and nginx in front of its web server. Both are native sidecars where the server
has them, and ordinary containers where it has not. How they end says nothing about the run.
"""

from typing import Literal

from grid.core.labels import KEYS
from grid.core.translation import gettext as _
from grid.core.wording import capitalised
from grid.kube.objects import ContainerSpec, ContainerStatus, Event, Pod

Part = Literal["setup", "program", "sidecar"]

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
    names = {container.name for container in pod.spec.containers}
    return KEYS.execution in pod.metadata.labels and {PROGRAM, FRONT} <= names


def is_sidecar(pod: Pod, name: str) -> bool:
    """Return whether the container is like the program, and is none. The name is asked first: the pod is then seldom looked at."""
    return (name == EXECUTOR and has_ordinary_executor(pod)) or (name == FRONT and has_ordinary_front(pod))


def programs(pod: Pod) -> list[ContainerStatus]:
    """Return its containers without those that stand beside the program."""
    return [status for status in pod.status.container_statuses if not is_sidecar(pod, status.name)]


def program_ended(pod: Pod) -> bool:
    """Return whether the program has ended for good."""
    ended = [status.state.terminated for status in programs(pod)]
    if pod.status.phase in ("Succeeded", "Failed") or pod.spec.restart_policy == "Never":
        return bool(ended) and all(ended)
    return bool(ended) and all(end is not None and end.exit_code == 0 for end in ended)


def part_of(pod: Pod, status: ContainerStatus) -> Part:
    for spec in pod.spec.init_containers:
        if spec.name == status.name:
            return "sidecar" if spec.restart_policy == "Always" else "setup"
    if any(other.name == status.name for other in pod.status.init_container_statuses):
        return "setup"
    stands = is_sidecar(pod, status.name) and any(other.name == status.name for other in pod.status.container_statuses)
    return "sidecar" if stands else "program"


def subject(pod: Pod, status: ContainerStatus) -> str:
    """Return how sentences begin: "The program", "Setup step fetch", "Sidecar proxy"; "Container a" if it is one of several programs."""
    return capitalised(within(pod, status))


def within(pod: Pod, status: ContainerStatus) -> str:
    """Return the same as it stands within a sentence: "the program", "setup step fetch"."""
    part = part_of(pod, status)
    if part == "setup":
        return _("setup step {name}", name=status.name)
    if part == "sidecar":
        return _("sidecar {name}", name=status.name)
    return _("container {name}", name=status.name) if len(programs(pod)) > 1 else _("the program")


def spec_of(pod: Pod, status: ContainerStatus) -> ContainerSpec:
    for spec in (*pod.spec.init_containers, *pod.spec.containers):
        if spec.name == status.name:
            return spec
    return ContainerSpec(name=status.name)


def is_about(event: Event, status: ContainerStatus) -> bool:
    """Return whether the event may be about this container: it names the container, or none."""
    path = event.involved_object.field_path
    return not path or path.endswith(f"{{{status.name}}}")
