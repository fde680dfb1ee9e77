"""Removal of one node: taint it, evict its pods, stop its machine, delete the node.

Every step can be interrupted and begun again. A removal that cannot be finished (a pod arrived that may not be moved, a disruption
budget refuses for too long) is called off, and the node takes pods again.
"""

import contextlib
import logging
from collections.abc import Sequence
from typing import Any

from grid.core.errors import Conflict, GridError, NotFound
from grid.core.labels import DELETION_CANDIDATE_TAINT, TO_BE_DELETED_TAINT
from grid.sandbox.client import (
    CONFIG_MAPS,
    NODES,
    PODS,
    Api,
    Clock,
    EventRecorder,
    Object,
    answer_of,
    is_terminating,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.autoscaling.scaledown import NodeVerdict, pods_to_move, why_immovable
from grid.sandbox.controllers.autoscaling.status import NAME, NAMESPACE
from grid.sandbox.controllers.podresources import is_finished
from grid.sandbox.pools import Cloud

logger = logging.getLogger(__name__)

# Within this time after the taint, a binding that was decided before it arrives.
_SETTLE_SECONDS = 1.0
_POLL_SECONDS = 1.0
_REFUSED_SECONDS = 120.0
_LONGEST_GRACE_SECONDS = 600.0


class CalledOff(Exception):
    """The node stays; the message says why."""


class NodeRemoval:
    """Removal of nodes for one autoscaler, each by one call of `remove`."""

    def __init__(self, client: Api, cloud: Cloud, events: EventRecorder, clock: Clock) -> None:
        self._client = client
        self._cloud = cloud
        self._events = events
        self._clock = clock

    async def remove(self, node: Object, verdict: NodeVerdict) -> bool:
        """Return True when the node is gone, False when its removal was called off."""
        name = name_of(node)
        empty = not verdict.moving
        about_node = reference_to(node, kind=NODES.kind, api_version=NODES.api_version)
        try:
            await self._mark(name)
            await self._events.record(about_node, "ScaleDown", "marked the node as toBeDeleted/unschedulable")
            await self._tell(_announcement(verdict), empty=empty)
            await self._clock.sleep(_SETTLE_SECONDS)
            await self._drain(name)
        except CalledOff as reason:
            logger.warning("node=%s stays: %s", name, reason)
            await unmark(self._client, name, (TO_BE_DELETED_TAINT, DELETION_CANDIDATE_TAINT))
            message = f"failed to drain the node, aborting ScaleDown: {reason}"
            await self._events.record(about_node, "ScaleDownFailed", message, type="Warning")
            return False
        await self._cloud.delete(name)
        with contextlib.suppress(NotFound):
            await self._client.delete(NODES.path(name=name), uid=uid_of(node))
        done = f"Scale-down: empty node {name} removed" if empty else f"Scale-down: node {name} removed with drain"
        await self._tell(done, empty=empty)
        return True

    async def _mark(self, name: str) -> None:
        stamp = str(int(self._clock.now().timestamp()))
        await mark(self._client, name, TO_BE_DELETED_TAINT, stamp, "NoSchedule")

    async def _tell(self, message: str, *, empty: bool) -> None:
        about = {"kind": CONFIG_MAPS.kind, "apiVersion": "v1", "namespace": NAMESPACE, "name": NAME}
        await self._events.record(about, "ScaleDownEmpty" if empty else "ScaleDown", message)

    async def _drain(self, name: str) -> None:
        """Evict the node's pods, listed from the server itself, and wait until they are gone. Raise `CalledOff`."""
        deadline = self._clock.monotonic() + _REFUSED_SECONDS + _LONGEST_GRACE_SECONDS
        refused_until = self._clock.monotonic() + _REFUSED_SECONDS
        reported_uids: set[str] = set()
        while True:
            pods = await self._pods_on(name)
            if not pods:
                return
            refusal = ""
            for pod in pods:
                if is_terminating(pod):
                    continue
                why = why_immovable(pod)
                if why:
                    raise CalledOff(why)
                refusal = await self._evict(pod, reported_uids) or refusal
            now = self._clock.monotonic()
            if refusal and now >= refused_until:
                raise CalledOff(refusal)
            if now >= deadline:
                raise CalledOff(f"pod {name_of(pods[0])} does not end")
            await self._clock.sleep(_POLL_SECONDS)

    async def _pods_on(self, name: str) -> list[Any]:
        pods = await self._client.list(PODS.path(), field_selector=f"spec.nodeName={name}")
        return pods_to_move([pod for pod in pods if not is_finished(pod)])

    async def _evict(self, pod: Object, reported_uids: set[str]) -> str:
        """Ask for an eviction once; return the refusal, or "" when the pod is being deleted."""
        namespace, name = namespace_of(pod), name_of(pod)
        body: Object = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid_of(pod)}},
        }
        try:
            await self._client.create(PODS.path(namespace, name, "eviction"), body)
        except (NotFound, Conflict):
            return ""
        except GridError as error:
            return answer_of(error).message
        if uid_of(pod) not in reported_uids:
            reported_uids.add(uid_of(pod))
            about = reference_to(pod, kind=PODS.kind, api_version=PODS.api_version)
            await self._events.record(about, "ScaleDown", "deleting pod for node scale down")
        return ""


def _announcement(verdict: NodeVerdict) -> str:
    if not verdict.moving:
        return f'Scale-down: removing empty node "{verdict.node}"'
    names = ",".join(name_of(pod) for pod in verdict.moving)
    return (
        f"Scale-down: removing node {verdict.node}, utilization: {verdict.utilization:.2f}, pods to reschedule: {names}"
    )


async def mark(client: Api, name: str, key: str, value: str, effect: str) -> None:
    """Set a taint on the present node; do nothing if the node is gone."""
    await _change_taints(client, name, remove=(key,), add={"key": key, "value": value, "effect": effect})


async def unmark(client: Api, name: str, keys: Sequence[str]) -> None:
    await _change_taints(client, name, remove=keys, add=None)


async def _change_taints(client: Api, name: str, *, remove: Sequence[str], add: Object | None) -> None:
    """Change the taints against the version that was read, and again after a conflict, because taints are one list."""
    while True:
        try:
            node = await client.get(NODES.path(name=name))
            present = node["spec"].get("taints") or []
            taints = [item for item in present if item["key"] not in remove] + ([add] if add else [])
            if taints != present:
                version = node["metadata"]["resourceVersion"]
                body = {"metadata": {"resourceVersion": version}, "spec": {"taints": taints or None}}
                await client.patch(NODES.path(name=name), body)
            return
        except NotFound:
            return
        except Conflict:
            pass
