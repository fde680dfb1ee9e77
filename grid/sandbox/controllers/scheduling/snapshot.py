"""The state for one scheduling decision: nodes, their requested amounts and ports, and volume claims."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grid.sandbox.client import key_of, name_of
from grid.sandbox.controllers.podresources import Amounts, add, allocatable, is_finished, pod_requests

Port = tuple[str, str, int]
"""Host address, protocol, port."""


@dataclass(slots=True)
class NodeState:
    """A node and what its pods request; `place` adds a pod that was just scheduled."""

    node: Mapping[str, Any]
    allocatable: Amounts
    used: Amounts = field(default_factory=dict)
    pods: list[Mapping[str, Any]] = field(default_factory=list)
    ports: set[Port] = field(default_factory=set)

    @property
    def name(self) -> str:
        return name_of(self.node)

    def free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)

    def place(self, pod: Mapping[str, Any], requests: Mapping[str, int]) -> None:
        self.pods.append(pod)
        add(self.used, requests)
        self.ports |= host_ports(pod)

    def copy(self) -> "NodeState":
        return NodeState(self.node, self.allocatable, dict(self.used), list(self.pods), set(self.ports))


@dataclass(slots=True)
class Snapshot:
    """Nodes by name, in a fixed order, and claims by `namespace/name`."""

    nodes: dict[str, NodeState]
    claims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def build_snapshot(
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    claims: Iterable[Mapping[str, Any]] = (),
    *,
    requests_of: Callable[[Mapping[str, Any]], Amounts] = pod_requests,
) -> Snapshot:
    """Return a snapshot, in which finished pods and pods on missing nodes take nothing."""
    states = {name_of(node): NodeState(node, allocatable(node)) for node in sorted(nodes, key=name_of)}
    for pod in pods:
        state = states.get(pod["spec"].get("nodeName") or "")
        if state is not None and not is_finished(pod):
            state.place(pod, requests_of(pod))
    return Snapshot(states, {key_of(claim): claim for claim in claims})


def host_ports(pod: Mapping[str, Any]) -> set[Port]:
    return {
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in pod["spec"].get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def ports_clash(wanted: set[Port], taken: set[Port]) -> bool:
    """Return True when a wanted host port is taken: same protocol and port, and equal addresses or one of them 0.0.0.0."""
    for address, protocol, port in wanted:
        for other_address, other_protocol, other_port in taken:
            same = address == other_address or "0.0.0.0" in (address, other_address)
            if (protocol, port) == (other_protocol, other_port) and same:
                return True
    return False
