"""The part of kube-state-metrics that Compute Grid asks for, made from the stored nodes and pods, in its names and labels (v2).

Labels of nodes are all told, as with `--metric-labels-allowlist=nodes=[*]`.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from grid.core.decoding import prepared
from grid.core.quantity import parse_quantity
from grid.sandbox.apiserver.store import Record
from grid.sandbox.exposition import Family, Sample, label_name, text_of

_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_STATUSES = ("true", "false", "unknown")
_AT_ONCE = 500
T = TypeVar("T")


class _Slim(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of an object; the rest is skipped."""


class _Owner(_Slim, frozen=True, rename="camel"):
    kind: str = ""
    name: str = ""
    controller: bool = False


class _Metadata(_Slim, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    owner_references: tuple[_Owner, ...] = ()


class _Resources(_Slim, frozen=True, rename="camel"):
    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}


class _Container(_Slim, frozen=True, rename="camel"):
    name: str = ""
    resources: _Resources = _Resources()


class _PodSpec(_Slim, frozen=True, rename="camel"):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()


class _PodStatus(_Slim, frozen=True, rename="camel"):
    phase: str = ""
    host_i_p: str = msgspec.field(default="", name="hostIP")
    pod_i_p: str = msgspec.field(default="", name="podIP")


class _Pod(_Slim, frozen=True, rename="camel"):
    metadata: _Metadata = _Metadata()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _Condition(_Slim, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""


class _NodeStatus(_Slim, frozen=True, rename="camel"):
    allocatable: dict[str, str | int | float] = {}
    conditions: tuple[_Condition, ...] = ()


class _Node(_Slim, frozen=True, rename="camel"):
    metadata: _Metadata = _Metadata()
    status: _NodeStatus = _NodeStatus()


async def state_metrics(nodes: Iterable[Record], pods: Iterable[Record]) -> str:
    """Return what kube-state-metrics would answer. With many pods it lets others of the loop have their turn meanwhile."""
    found_nodes = await _decoded([record.raw for record in nodes], msgspec.json.Decoder(prepared(_Node)).decode)
    found_pods = await _decoded([record.raw for record in pods], msgspec.json.Decoder(prepared(_Pod)).decode)
    return await asyncio.to_thread(_text, found_nodes, found_pods)


async def _decoded(raw: Sequence[bytes], decode: Callable[[bytes], T]) -> list[T]:
    objects: list[T] = []
    for start in range(0, len(raw), _AT_ONCE):
        objects += map(decode, raw[start : start + _AT_ONCE])
        await asyncio.sleep(0)
    return objects


def _text(nodes: Sequence[_Node], pods: Sequence[_Pod]) -> str:
    def gauge(name: str, help_text: str, samples: Iterator[Sample]) -> Family:
        return Family(name, "gauge", help_text, samples)

    return text_of(
        [
            gauge("kube_node_labels", "The labels of a node.", map(_node_labels, nodes)),
            gauge("kube_node_status_allocatable", "What pods may have of a node.", _allocatable(nodes)),
            gauge("kube_node_status_condition", "The conditions of a node.", _conditions(nodes)),
            gauge("kube_pod_info", "Where a pod is and what made it.", map(_info, pods)),
            gauge("kube_pod_status_phase", "The phase of a pod.", _phases(pods)),
            gauge(
                "kube_pod_container_resource_requests", "Requests.", _asked(pods, lambda resources: resources.requests)
            ),
            gauge("kube_pod_container_resource_limits", "Limits.", _asked(pods, lambda resources: resources.limits)),
        ]
    )


def _node_labels(node: _Node) -> Sample:
    labels = {label_name(name, prefix="label_"): value for name, value in node.metadata.labels.items()}
    return {"node": node.metadata.name, **labels}, 1


def _allocatable(nodes: Sequence[_Node]) -> Iterator[Sample]:
    for node in nodes:
        for labels, value in _amounts(node.status.allocatable):
            yield {"node": node.metadata.name, **labels}, value


def _conditions(nodes: Sequence[_Node]) -> Iterator[Sample]:
    for node in nodes:
        for condition in node.status.conditions:
            for status in _STATUSES:
                labels = {"node": node.metadata.name, "condition": condition.type, "status": status}
                yield labels, float(condition.status.lower() == status)


def _info(pod: _Pod) -> Sample:
    owner = next((reference for reference in pod.metadata.owner_references if reference.controller), _Owner())
    more = {
        "node": pod.spec.node_name,
        "host_ip": pod.status.host_i_p,
        "pod_ip": pod.status.pod_i_p,
        "created_by_kind": owner.kind,
        "created_by_name": owner.name,
    }
    return {**_pod(pod), **more}, 1


def _phases(pods: Sequence[_Pod]) -> Iterator[Sample]:
    for pod in pods:
        for phase in _PHASES:
            yield {**_pod(pod), "phase": phase}, float(pod.status.phase == phase)


def _asked(pods: Sequence[_Pod], read: Callable[[_Resources], Mapping[str, str | int | float]]) -> Iterator[Sample]:
    for pod in pods:
        for container in pod.spec.containers:
            for labels, value in _amounts(read(container.resources)):
                yield {**_pod(pod), "container": container.name, "node": pod.spec.node_name, **labels}, value


def _pod(pod: _Pod) -> dict[str, str]:
    return {"namespace": pod.metadata.namespace, "pod": pod.metadata.name, "uid": pod.metadata.uid}


def _amounts(quantities: Mapping[str, str | int | float]) -> Iterator[Sample]:
    for name, quantity in quantities.items():
        unit = {"cpu": "core", "memory": "byte", "ephemeral-storage": "byte"}.get(name, "integer")
        if name.startswith("hugepages-"):
            unit = "byte"
        yield {"resource": label_name(name), "unit": unit}, float(parse_quantity(str(quantity)))
