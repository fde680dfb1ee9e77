"""What the proxy keeps of a pod: whose it is, and where it answers. These are some 500 bytes of the 15,000 that the API server sends."""

import sys

import msgspec

from grid.core.labels import APP_COMPONENT, KEYS
from grid.diagnosis.beside import FRONT, PROGRAM
from grid.kube.objects import Metadata, PodSpec, PodStatus
from grid.kube.slim import Slim

_NAMELESS, _SPEC, _STATUS = Metadata(name=""), PodSpec(), PodStatus()


class Entrance(Slim, frozen=True, kw_only=True):
    """A pod, decoded from the API server's JSON. `address` is "" unless it runs, `has_front` whether an nginx runs in front of its program,
    `has_crashed` whether the program waits for its restart. Of what was read nothing else is kept."""

    read: Metadata = msgspec.field(name="metadata")
    spec: PodSpec = _SPEC
    status: PodStatus = _STATUS
    key: str = ""
    resource_version: str = ""
    execution: str = ""
    component: str = ""
    address: str = ""
    is_leaving: bool = False
    has_front: bool = False
    has_crashed: bool = False

    def __post_init__(self) -> None:
        read, containers = self.read, {container.name for container in self.spec.containers}
        sidecars = {each.name for each in self.spec.init_containers if each.restart_policy == "Always"}
        # Where the cluster has no native sidecars, nginx is a container like the program; in another's pod one of that name is a program.
        has_ordinary_front = KEYS.execution in read.labels and {PROGRAM, FRONT} <= containers
        programs = [status for status in self.status.container_statuses if status.name == PROGRAM]
        kept = {
            "key": f"{read.namespace}/{read.name}",
            "resource_version": read.resource_version,
            "execution": read.labels.get(KEYS.execution, ""),
            "component": sys.intern(read.labels.get(APP_COMPONENT, "")),
            "address": self.status.pod_ip if self.status.phase == "Running" else "",
            "is_leaving": read.deletion_timestamp is not None,
            "has_front": FRONT in sidecars or has_ordinary_front,
            "has_crashed": any(program.restart_count > 0 and not program.ready for program in programs),
        }
        for name, value in {**kept, "read": _NAMELESS, "spec": _SPEC, "status": _STATUS}.items():
            msgspec.structs.force_setattr(self, name, value)

    @property
    def metadata(self) -> "Entrance":
        """Itself: key and version are what a store asks of it."""
        return self


class Entrances:
    """The pods of each execution, as a listener of a store. An index of the store itself would take 200 bytes more a pod, for a group of
    which most have one."""

    def __init__(self) -> None:
        self._of: dict[str, Entrance | tuple[Entrance, ...]] = {}

    def of(self, execution: str) -> tuple[Entrance, ...]:
        pods = self._of.get(execution, ())
        return pods if isinstance(pods, tuple) else (pods,)

    def take(self, old: Entrance | None, new: Entrance | None) -> None:
        if old is not None:
            self._put(old.execution, [pod for pod in self.of(old.execution) if pod is not old])
        if new is not None and new.execution:
            self._put(new.execution, [*self.of(new.execution), new])

    def _put(self, execution: str, pods: list[Entrance]) -> None:
        if pods:
            self._of[execution] = pods[0] if len(pods) == 1 else tuple(pods)
        else:
            self._of.pop(execution, None)
