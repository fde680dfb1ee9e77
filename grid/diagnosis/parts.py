"""Tells the containers of a pod apart: setup steps (init containers), sidecars (init containers that are always restarted), and the
program itself. The executor is a sidecar too where it is an ordinary container."""

from typing import Literal

from grid.diagnosis.files import programs
from grid.kube.objects import ContainerSpec, ContainerStatus, Event, Pod

Part = Literal["setup", "program", "sidecar"]


def part_of(pod: Pod, status: ContainerStatus) -> Part:
    spec = next((one for one in pod.spec.init_containers if one.name == status.name), None)
    if spec is None:
        if any(one.name == status.name for one in pod.status.init_container_statuses):
            return "setup"
        is_known = any(one.name == status.name for one in pod.status.container_statuses)
        return "sidecar" if is_known and status.name not in {one.name for one in programs(pod)} else "program"
    return "sidecar" if spec.restart_policy == "Always" else "setup"


def subject(pod: Pod, status: ContainerStatus) -> str:
    """Return how sentences call the container: "The program", "Setup step fetch", "Sidecar proxy"; "Container a" if it is one of several
    programs."""
    program = f"Container {status.name}" if len(programs(pod)) > 1 else "The program"
    words = {"setup": f"Setup step {status.name}", "sidecar": f"Sidecar {status.name}", "program": program}
    return words[part_of(pod, status)]


def spec_of(pod: Pod, status: ContainerStatus) -> ContainerSpec:
    every = (*pod.spec.init_containers, *pod.spec.containers)
    return next((one for one in every if one.name == status.name), ContainerSpec(name=status.name))


def is_about(event: Event, status: ContainerStatus) -> bool:
    """Return whether the event may be about this container: it names the container, or none."""
    path = event.involved_object.field_path
    return not path or path.endswith(f"{{{status.name}}}")
