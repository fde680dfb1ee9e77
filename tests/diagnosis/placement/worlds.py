"""SchedulingContext of a pod made from whole objects, and a diagnosis as a person reads it."""

from collections.abc import Iterable, Mapping
from typing import Any

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.placement import SchedulingContext
from grid.kube.objects import Node, Pod, StorageClass, Volume, VolumeClaim
from tests.support.builders import decode, room_of


def surroundings(
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]] = (),
    objects: Iterable[Mapping[str, Any]] = (),
    *,
    namespace: str = "",
    **more: Any,
) -> SchedulingContext:
    """`objects` are claims, volumes and storage classes, all of the cluster's; a claim without a namespace is in `namespace`."""
    by_node: dict[str, list[Pod]] = {}
    for decoded in (decode(pod, Pod) for pod in pods):
        by_node.setdefault(decoded.spec.node_name, []).append(decoded)
    claims, volumes, classes = {}, {}, {}
    for each in objects:
        if each.get("kind") == "PersistentVolumeClaim":
            claim = decode(each, VolumeClaim)
            claims[f"{claim.metadata.namespace or namespace}/{claim.metadata.name}"] = claim
        elif each.get("kind") == "PersistentVolume":
            volume = decode(each, Volume)
            volumes[volume.metadata.name] = volume
        elif each.get("kind") == "StorageClass":
            classes[each["metadata"]["name"]] = decode(each, StorageClass)
    return SchedulingContext(
        nodes=[decode(node, Node) for node in nodes],
        **{
            "pods": lambda: [each for here in by_node.values() for each in here],
            "pods_on": lambda name: by_node.get(name, []),
            "room": room_of(each for here in by_node.values() for each in here),
            "claims": claims,
            "volumes": volumes,
            "classes": classes,
            **more,
        },
    )


def as_read(diagnosis: Diagnosis) -> str:
    """The whole diagnosis but Kubernetes' own words: the sentence, the next step, and the table."""
    normal = {True: "normal", False: "not normal", None: "normal or not, nobody knows"}[diagnosis.is_normal]
    lines = [
        f"[{diagnosis.code}, {diagnosis.severity}, {normal}] {diagnosis.sentence}",
        f"    {diagnosis.who or 'nobody'}: {diagnosis.next_step or '-'} -> {diagnosis.link or '-'}",
    ]
    for row in diagnosis.table:
        until = f" until {row.until:%H:%M}" if row.until else ""
        names = ", ".join(row.names) + (", ..." if row.nodes > len(row.names) else "")
        lines.append(f"    {row.nodes} ({names}): {row.what} [{row.lasting}{until}]")
    return "\n".join(lines)
