"""The scheduler's part in binding: the volumes of claims that wait for their first pod, once that has been given a node."""

from collections.abc import Mapping
from typing import Any

from grid.sandbox.client import VOLUME_CLAIMS, VOLUMES, Api, annotations_of, name_of, namespace_of, reference_to
from grid.sandbox.controllers.scheduling.claims import VolumePlaces
from grid.sandbox.controllers.scheduling.snapshot import Snapshot
from grid.sandbox.controllers.volumebinding import BOUND_BY_CONTROLLER
from grid.sandbox.storage import SELECTED_NODE


async def choose_volumes(client: Api, pod: Mapping[str, Any], node: str, snapshot: Snapshot) -> bool:
    """Reserve a volume for each waiting claim, or ask for one on this node. Return False when no claim of the pod waits.

    The pod may be bound once the claims are. What is written names the version that was read, so of two pods one gets a volume.
    """
    waiting = VolumePlaces(pod, snapshot).bindings(snapshot.nodes[node]) or []
    for claim, volume in waiting:
        if volume is None:
            if SELECTED_NODE not in annotations_of(claim):
                meta = {"resourceVersion": _version(claim), "annotations": {SELECTED_NODE: node}}
                await client.patch(VOLUME_CLAIMS.path(namespace_of(claim), name_of(claim)), {"metadata": meta})
        elif not volume["spec"].get("claimRef"):
            reference = reference_to(claim, kind=VOLUME_CLAIMS.kind, api_version=VOLUME_CLAIMS.api_version)
            meta = {"resourceVersion": _version(volume), "annotations": {BOUND_BY_CONTROLLER: "yes"}}
            body = {"metadata": meta, "spec": {"claimRef": reference}}
            await client.patch(VOLUMES.path(name=name_of(volume)), body)
    return bool(waiting)


def _version(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["resourceVersion"])
