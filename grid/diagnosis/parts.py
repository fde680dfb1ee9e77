"""Tells the containers of a pod apart: setup steps (init containers), sidecars (init containers that are always restarted), and the
program itself. The executor and nginx of a run are sidecars too where they are ordinary containers."""

from typing import Literal

from grid.core.translation import gettext as _
from grid.core.wording import capitalised
from grid.diagnosis.beside import is_sidecar, programs
from grid.kube.objects import ContainerSpec, ContainerStatus, Event, Pod

Part = Literal["setup", "program", "sidecar"]


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
