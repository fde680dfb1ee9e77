"""The node lifecycle controller: detects silent kubelets, taints nodes by their conditions, and deletes lost pods.

A node whose lease and status have not changed for the grace period becomes Unknown; its pods are marked as not ready, and evicted
when their tolerations end. Pods of a node that no longer exists are deleted for good after a short quarantine, because no kubelet
is left to end them. Silence is measured on this clock from the last change seen, so clocks that differ do no harm.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from grid.core.errors import Conflict, GridError, NotFound
from grid.sandbox.client import (
    LEASES,
    NODES,
    PODS,
    Api,
    Clock,
    EventRecorder,
    Mirrors,
    Object,
    condition_of,
    format_time,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import EmbeddedController
from grid.sandbox.controllers.nodehealth import heartbeat, leaves_after, silent_conditions, wanted_taints
from grid.sandbox.controllers.podresources import is_finished
from grid.sandbox.controllers.replicas import is_ready
from grid.sandbox.controllers.workoff import sleep_or_wake

logger = logging.getLogger(__name__)

_AFTER_WAKE_SECONDS = 0.2
_LEASE_NAMESPACE = "kube-node-lease"
_Step = tuple[Callable[[Object], Awaitable[None]], Object]


@dataclass(frozen=True, slots=True)
class NodeTimeouts:
    """The controller's timeouts in seconds; the defaults are Kubernetes'."""

    grace: float = 40.0
    period: float = 5.0
    quarantine: float = 40.0


@dataclass(slots=True)
class _Memory:
    """The last change of each node's heartbeat, since when a pod's node is missing, and when a pod must leave its node.

    All times are monotonic. As on a real cluster, toleration seconds count from when this controller first sees pod and
    taint together, whatever the taint's `timeAdded` says, which kubectl does not write.
    """

    heard: dict[str, tuple[tuple[str, str], float]] = field(default_factory=dict)
    orphaned: dict[str, float] = field(default_factory=dict)
    leaving: dict[str, float] = field(default_factory=dict)


class NodeLifecycleController(EmbeddedController):
    """The controller that taints unhealthy nodes and deletes the pods of missing ones, while `run` runs."""

    component = "node-controller"

    def __init__(
        self,
        client: Api,
        *,
        clock: Clock | None = None,
        mirrors: Mirrors | None = None,
        rng: random.Random | None = None,
        patience: NodeTimeouts | None = None,
    ) -> None:
        self._patience = patience or NodeTimeouts()
        super().__init__(client, clock=clock, mirrors=mirrors, rng=rng)

    def _begin(self) -> None:
        self._nodes = self._mirrors.of(NODES)
        self._pods = self._mirrors.of(PODS)
        self._leases = self._mirrors.of(LEASES)
        self._taint_events = EventRecorder(self._client, "taint-eviction-controller", clock=self._clock)
        self._memory = _Memory()
        self._wake = asyncio.Event()
        self._nodes.subscribe(self._node_changed)

    async def run(self) -> None:
        """Run rounds until cancelled."""
        async with self._mirrors.running():
            while True:
                self._wake.clear()
                try:
                    await self.run_once()
                except GridError as error:
                    logger.warning("node lifecycle waits for the API server: %s", error)
                except Exception:
                    logger.exception("a round of node lifecycle failed; the next one starts anew")
                await self._pause()

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        """Wake the next round for a node whose taints changed or must change, so that it does not wait for the period."""
        taints = new["spec"].get("taints") or [] if new is not None else []
        known = old["spec"].get("taints") or [] if old is not None else []
        if old is None or new is None or known != taints or wanted_taints(new, self._clock.now()) != taints:
            self._wake.set()

    async def _pause(self) -> None:
        await sleep_or_wake(self._clock, self._patience.period, self._wake)
        await self._clock.sleep(_AFTER_WAKE_SECONDS)

    async def run_once(self) -> None:
        """Check every node and every lost pod once; a conflict on one does not hold up the others."""
        looks: list[_Step] = [(self._look_at, node) for node in list(self._nodes.values())]
        steps = looks + [(self._clear_away, pod) for pod in self._lost_pods()]
        for step, item in steps:
            try:
                await step(item)
            except (NotFound, Conflict) as error:
                logger.debug("%s changed meanwhile and is looked at again: %s", key_of(item), error)
        known = {name_of(node) for node in self._nodes.values()}
        self._memory.heard = {name: heard for name, heard in self._memory.heard.items() if name in known}
        if self._memory.leaving:
            present = {uid_of(pod) for pod in self._pods.values()}
            self._memory.leaving = {uid: due for uid, due in self._memory.leaving.items() if uid in present}

    async def _look_at(self, node: Object) -> None:
        if self._is_silent(node):
            node = await self._say_unknown(node)
        taints = wanted_taints(node, self._clock.now())
        if taints != (node["spec"].get("taints") or []):
            version = node["metadata"]["resourceVersion"]
            body = {"metadata": {"resourceVersion": version}, "spec": {"taints": taints or None}}
            node = await self._client.patch(NODES.path(name=name_of(node)), body)
        ready = condition_of(node, "Ready")
        unknown = ready is not None and ready.get("status") == "Unknown"
        for pod in self._pods_on(name_of(node)):
            if unknown and is_ready(pod):
                await self._say_not_ready(pod)
            if self._must_leave(pod, node) and not is_terminating(pod):
                await self._evict(pod)

    def _must_leave(self, pod: Object, node: Object) -> bool:
        left = leaves_after(pod, node)
        if left is None:
            self._memory.leaving.pop(uid_of(pod), None)
            return False
        now = self._clock.monotonic()
        return left == 0 or self._memory.leaving.setdefault(uid_of(pod), now + left) <= now

    def _is_silent(self, node: Object) -> bool:
        name, now = name_of(node), self._clock.monotonic()
        sign = heartbeat(node, self._leases.get(f"{_LEASE_NAMESPACE}/{name}"))
        heard = self._memory.heard.get(name)
        if heard is None or heard[0] != sign:
            self._memory.heard[name] = (sign, now)
            return False
        return now - heard[1] >= self._patience.grace

    async def _say_unknown(self, node: Object) -> Object:
        conditions = silent_conditions(node, self._clock.now())
        if conditions is None:
            return node
        name = name_of(node)
        logger.warning("node=%s has been silent for %.0f s", name, self._patience.grace)
        body = {
            **node,
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "status": {**node.get("status", {}), "conditions": conditions},
        }
        answer = await self._client.update(NODES.path(name=name, subresource="status"), body)
        about = reference_to(node, kind=NODES.kind, api_version=NODES.api_version)
        await self._events.record(about, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        return answer

    def _pods_on(self, name: str) -> list[Object]:
        return [pod for pod in self._pods.values() if pod["spec"].get("nodeName") == name and not is_finished(pod)]

    async def _say_not_ready(self, pod: Object) -> None:
        now = format_time(self._clock.now())
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        path = PODS.path(namespace_of(pod), name_of(pod), "status")
        await self._client.patch(path, {"status": {"conditions": [condition]}}, kind="strategic")
        await self._events.record(_about(pod), "NodeNotReady", "Node is not ready", type="Warning")

    async def _evict(self, pod: Object) -> None:
        message = f"Marking for deletion Pod {key_of(pod)}"
        await self._taint_events.record(_about(pod), "TaintManagerEviction", message)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        path = PODS.path(namespace_of(pod), name_of(pod), "status")
        await self._client.patch(path, {"status": {"conditions": [condition]}}, kind="strategic")
        await self._client.delete(PODS.path(namespace_of(pod), name_of(pod)), uid=uid_of(pod))

    def _lost_pods(self) -> list[Object]:
        """Return pods whose node is gone for good, and terminating pods without a node: no kubelet will end them."""
        now = self._clock.monotonic()
        nodes = {name_of(node) for node in self._nodes.values()}
        lost: list[Object] = []
        orphaned: dict[str, float] = {}
        for pod in self._pods.values():
            node = pod["spec"].get("nodeName")
            if not node and is_terminating(pod):
                lost.append(pod)
            elif node and node not in nodes:
                since = orphaned[uid_of(pod)] = self._memory.orphaned.get(uid_of(pod), now)
                if now - since >= self._patience.quarantine:
                    lost.append(pod)
        self._memory.orphaned = orphaned
        return lost

    async def _clear_away(self, pod: Object) -> None:
        path = PODS.path(namespace_of(pod), name_of(pod))
        node = pod["spec"].get("nodeName")
        if node:
            await self._node_still_missing(node)
        if node and not is_finished(pod):
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": format_time(self._clock.now()),
            }
            status = {"phase": "Failed", "conditions": [condition]}
            await self._client.patch(
                PODS.path(namespace_of(pod), name_of(pod), "status"), {"status": status}, kind="strategic"
            )
        await self._client.delete(path, grace_seconds=0, uid=uid_of(pod))
        logger.info("pod=%s deleted: its node %s is gone", key_of(pod), node or "was never assigned")

    async def _node_still_missing(self, name: str) -> None:
        """Raise unless the server confirms that the node is gone, because the mirror may be behind."""
        try:
            await self._client.get(NODES.path(name=name))
        except NotFound:
            return
        raise Conflict(f"node {name} exists again")


def _about(pod: Object) -> Object:
    return reference_to(pod, kind=PODS.kind, api_version=PODS.api_version)
