"""One node's page: its facts, its pods, its events; pure."""

from dataclasses import dataclass

from dashboard.nodes.viewmodels.infrastructure import NodeRow
from dashboard.shell.viewmodels.live import Fragment
from grid.kube.objects import Node


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node's facts; `row` is None when the node is gone."""

    name: str
    row: NodeRow | None
    address: str = ""
    version: str = ""
    system: str = ""
    runtime: str = ""
    taints: tuple[str, ...] = ()


def node_facts(name: str, node: Node | None, row: NodeRow | None) -> Fragment:
    if node is None:
        return Fragment("facts", "nodes/fragments/node_facts.html", NodeFacts(name, None))
    info = node.status.node_info
    facts = NodeFacts(
        name=name,
        row=row,
        address=next((address.address for address in node.status.addresses if address.type == "InternalIP"), ""),
        version=info.kubelet_version,
        system=info.os_image,
        runtime=info.container_runtime_version,
        taints=tuple(
            f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}" for taint in node.spec.taints
        ),
    )
    return Fragment("facts", "nodes/fragments/node_facts.html", facts)
