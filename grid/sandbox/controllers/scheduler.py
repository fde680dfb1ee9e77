"""The scheduler: binds every pending pod to a node, or reports in the real scheduler's words why none takes it.

Highest priority first, then first come, first served. An unschedulable pod is tried again after a change that may help it (a node
came or changed, a pod went away, a claim was bound). It waits for a back-off of 1 to 10 seconds of its own, and is tried in any case
every five minutes. Where pods of lower priority are in the way, as few as possible are
ended, and the node is kept for the pod meanwhile. Pods that name another scheduler are left alone. The decision itself is pure:
`controllers.scheduling`.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grid.core.errors import Conflict, GridError, NotFound
from grid.sandbox.client import (
    DISRUPTION_BUDGETS,
    NODES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
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
from grid.sandbox.controllers.podresources import Amounts, is_finished, pod_requests
from grid.sandbox.controllers.scheduling import SchedulingDecision, Snapshot, build_snapshot, decide
from grid.sandbox.controllers.scheduling.decision import DEFAULT_SCHEDULER, concerns_us
from grid.sandbox.controllers.scheduling.preemption import BY_SCHEDULER, DISRUPTED
from grid.sandbox.controllers.volumechoice import choose_volumes
from grid.sandbox.controllers.workoff import sleep_or_wake

logger = logging.getLogger(__name__)

_FIRST_BACKOFF, _LONGEST_BACKOFF = 1.0, 10.0
_RETRY_ANYWAY_SECONDS = 300.0
# A binding that the mirror has not shown after this time was lost or undone, and the pod is scheduled again.
_ASSUMED_SECONDS = 30.0
_AFTER_FAILURE_SECONDS = 1.0
_OTHERS = (DISRUPTION_BUDGETS, VOLUMES, STORAGE_CLASSES)


@dataclass(slots=True)
class _Attempts:
    """The failed attempts to schedule one pod. Times are monotonic. `minds_others`: a pod that is placed may help it."""

    count: int
    not_before: float
    anyway_at: float
    seen_change: int


@dataclass(frozen=True, slots=True)
class _Assumed:
    """A binding that the server has accepted and the mirror has not shown yet."""

    pod: Object
    node: str
    until: float


class Scheduler(EmbeddedController):
    """The controller that binds pending pods to nodes. There is one per cluster, as two would bind against each other."""

    component = DEFAULT_SCHEDULER

    def _begin(self) -> None:
        self._pods = self._mirrors.of(PODS)
        self._nodes = self._mirrors.of(NODES)
        self._claims = self._mirrors.of(VOLUME_CLAIMS)
        self._others = {item.kind: self._mirrors.of(item) for item in _OTHERS}
        self._requests: dict[str, Amounts] = {}
        self._assumed: dict[str, _Assumed] = {}
        self._attempts: dict[str, _Attempts] = {}
        # The number of changes that may have made room; a pod that failed before the newest one is tried again.
        self._changes = 0
        self._wake = asyncio.Event()
        self._pods.subscribe(self._pod_changed)
        self._nodes.subscribe(self._node_changed)
        for mirror in (self._claims, self._others[VOLUMES.kind], self._others[STORAGE_CLASSES.kind]):
            mirror.subscribe(self._storage_changed)

    async def run(self) -> None:
        """Schedule until cancelled."""
        async with self._mirrors.running():
            while True:
                self._wake.clear()
                try:
                    wait = await self._schedule_all()
                except Exception:
                    logger.exception("scheduling failed and is tried again")
                    wait = _AFTER_FAILURE_SECONDS
                await sleep_or_wake(self._clock, wait, self._wake)

    async def _schedule_all(self) -> float:
        """Try every pod that is due; return the seconds until the next one is."""
        now = self._clock.monotonic()
        self._forget_old_assumptions(now)
        waiting = [pod for pod in self._pods.values() if concerns_us(pod) and uid_of(pod) not in self._assumed]
        ready = [pod for pod in waiting if self._turn_in(pod, now) <= 0]
        if ready:
            changes, snapshot = self._changes, self._snapshot()
            for pod in sorted(ready, key=_queue_order):
                await self._schedule_one(pod, snapshot, changes)
            now = self._clock.monotonic()
        turns = [self._turn_in(pod, now) for pod in waiting if uid_of(pod) not in self._assumed]
        return max(0.01, min(turns, default=_RETRY_ANYWAY_SECONDS))

    def _turn_in(self, pod: Object, now: float) -> float:
        tried = self._attempts.get(uid_of(pod))
        if tried is None:
            return 0.0
        due = tried.not_before if tried.seen_change < self._changes else tried.anyway_at
        return due - now

    def _snapshot(self) -> Snapshot:
        pods: list[Object] = [pod for pod in self._pods.values() if uid_of(pod) not in self._assumed]
        pods += [_on_node(assumed.pod, assumed.node) for assumed in self._assumed.values()]
        others = {kind: mirror.values() for kind, mirror in self._others.items()}
        claims = self._claims.values()
        return build_snapshot(self._nodes.values(), pods, claims, others=others, requests_of=self._requests_of)

    def _requests_of(self, pod: Mapping[str, Any]) -> Amounts:
        uid = uid_of(pod)
        if uid not in self._requests:
            self._requests[uid] = pod_requests(pod)
        return self._requests[uid]

    async def _schedule_one(self, pod: Object, snapshot: Snapshot, changes: int) -> None:
        """Bind one pod or report why not. `changes` is the count at the snapshot; a later change permits another try."""
        requests = self._requests_of(pod)
        decision = decide(pod, requests, snapshot)
        try:
            if decision.node and await choose_volumes(self._client, pod, decision.node, snapshot):
                self._wait_for_volumes(pod, changes)
            elif decision.node:
                await self._bind(pod, decision.node)
                snapshot.nodes[decision.node].place(pod, requests)
            else:
                self._remember_failure(pod, changes)
                for victim in decision.victims:
                    await self._end({**victim}, pod, decision.nominated or "")
                await self._report_unschedulable(pod, decision)
                if decision.nominated and decision.nominated != _nominated(pod):
                    snapshot.nominated.setdefault(decision.nominated, []).append(pod)
        except GridError as error:
            if isinstance(error, NotFound | Conflict):
                logger.debug("pod=%s is gone or was bound by another: %s", key_of(pod), error)
            else:
                logger.warning("pod=%s is tried again: %s", key_of(pod), error)
            self._remember_failure(pod, changes)

    def _remember_failure(self, pod: Object, changes: int) -> None:
        known = self._attempts.get(uid_of(pod))
        count = known.count + 1 if known else 1
        now = self._clock.monotonic()
        backoff = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** min(count - 1, 10))
        anyway_at = now + _RETRY_ANYWAY_SECONDS
        self._attempts[uid_of(pod)] = _Attempts(count, now + backoff, anyway_at, changes)

    def _wait_for_volumes(self, pod: Object, changes: int) -> None:
        """Try the pod again as soon as its claims are bound; the room that it needs is not kept meanwhile."""
        now = self._clock.monotonic()
        self._attempts[uid_of(pod)] = _Attempts(0, now, now + _RETRY_ANYWAY_SECONDS, changes)

    async def _bind(self, pod: Object, node: str) -> None:
        namespace, name = namespace_of(pod), name_of(pod)
        body: Object = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid_of(pod)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._client.create(PODS.path(namespace, name, "binding"), body)
        self._assumed[uid_of(pod)] = _Assumed(pod, node, self._clock.monotonic() + _ASSUMED_SECONDS)
        self._attempts.pop(uid_of(pod), None)
        await self._events.record(_reference(pod), "Scheduled", f"Successfully assigned {namespace}/{name} to {node}")

    async def _end(self, victim: Object, pod: Object, node: str) -> None:
        """End a pod that is in the way of a more important one, and say so on it. One that is gone already is no failure."""
        condition = {
            "type": DISRUPTED,
            "status": "True",
            "lastTransitionTime": format_time(self._clock.now()),
            "reason": BY_SCHEDULER,
            "message": f"{self.component}: preempting to accommodate a higher priority pod",
        }
        path = PODS.path(namespace_of(victim), name_of(victim))
        if is_terminating(victim):
            return
        with contextlib.suppress(NotFound):
            await self._client.patch(f"{path}/status", {"status": {"conditions": [condition]}}, kind="strategic")
            await self._client.delete(path, uid=uid_of(victim))
            await self._events.record(_reference(victim), "Preempted", f"Preempted by pod {uid_of(pod)} on node {node}")

    async def _report_unschedulable(self, pod: Object, decision: SchedulingDecision) -> None:
        message = decision.message
        await self._events.record(_reference(pod), "FailedScheduling", message, type="Warning")
        known = condition_of(pod, "PodScheduled")
        nominated = _nominated(pod) if decision.nominated is None else decision.nominated
        reported = known and (known.get("status"), known.get("reason"), known.get("message"))
        if reported == ("False", "Unschedulable", message) and nominated == _nominated(pod):
            return
        now = format_time(self._clock.now())
        changed = known is None or known.get("status") != "False"
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": now if changed or known is None else known.get("lastTransitionTime", now),
            "reason": "Unschedulable",
            "message": message,
        }
        status: Object = {"conditions": [condition]}
        if nominated != _nominated(pod):
            status["nominatedNodeName"] = nominated or None
        path = PODS.path(namespace_of(pod), name_of(pod), "status")
        await self._client.patch(path, {"status": status}, kind="strategic")

    def _forget_old_assumptions(self, now: float) -> None:
        for uid in [uid for uid, assumed in self._assumed.items() if assumed.until <= now]:
            logger.warning("pod=%s: its binding never showed up; it is decided again", key_of(self._assumed[uid].pod))
            del self._assumed[uid]

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        uid = uid_of(new or old or {})
        if new is None:
            self._requests.pop(uid, None)
            self._attempts.pop(uid, None)
            self._assumed.pop(uid, None)
            self._made_room()
            return
        if new["spec"].get("nodeName"):
            self._assumed.pop(uid, None)
            if is_finished(new) and not (old and is_finished(old)):
                self._made_room()
            return
        if old is None or old["spec"] != new["spec"]:
            self._requests.pop(uid, None)
            self._attempts.pop(uid, None)
            self._wake.set()

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        # Heartbeats change a node every few seconds without making any room.
        if new is not None and (old is None or _offer(old) != _offer(new)):
            self._made_room()

    def _storage_changed(self, old: Object | None, new: Object | None) -> None:
        del old
        if new is not None:
            self._made_room()

    def _made_room(self) -> None:
        self._changes += 1
        self._wake.set()


def _offer(node: Object) -> tuple[object, ...]:
    spec, status = node.get("spec", {}), node.get("status", {})
    return (
        spec.get("unschedulable"),
        spec.get("taints"),
        status.get("allocatable"),
        (condition_of(node, "Ready") or {}).get("status"),
        node["metadata"].get("labels"),
    )


def _queue_order(pod: Object) -> tuple[int, str, str]:
    return (-(pod["spec"].get("priority") or 0), pod["metadata"].get("creationTimestamp", ""), key_of(pod))


def _nominated(pod: Object) -> str:
    return str(pod.get("status", {}).get("nominatedNodeName") or "")


def _on_node(pod: Object, node: str) -> Object:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


def _reference(pod: Object) -> Object:
    return reference_to(pod, kind=PODS.kind, api_version=PODS.api_version)
