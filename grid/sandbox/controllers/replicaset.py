"""The ReplicaSet controller: creates and deletes pods until there are as many as wanted, and reports the status.

Pods are created in batches that double (1, 2, 4 ...), so that a quota or a bad template costs one refused request and not a
thousand; a refusal is reported as an event and in the condition ReplicaFailure, and retried with back-off. Surplus pods are
deleted least useful first (`replicas.deletion_order`). Orphans that match the selector are adopted, pods that no longer
match it are released.
"""

import asyncio
import contextlib
import copy
import logging

from grid.core.errors import Conflict, GridError, NotFound
from grid.sandbox.client import (
    PODS,
    REPLICA_SETS,
    Object,
    answer_of,
    controller_of,
    format_time,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.owned import Expectations, PodsByOwner, namespace_is_ending
from grid.sandbox.controllers.replicas import deletion_order, is_active, status_of, tally
from grid.sandbox.controllers.selectors import matches_labels
from grid.sandbox.controllers.workoff import AlreadyReported

logger = logging.getLogger(__name__)

_BURST = 500
_EXPECTATION_CHECK_SECONDS = 5.0


class ReplicaSetController(QueueController):
    """The controller that creates and deletes pods until each ReplicaSet has as many as its spec asks for."""

    component = "replicaset-controller"
    name = "replicaset"

    def _begin(self) -> None:
        self._sets = self._mirrors.of(REPLICA_SETS)
        self._pods = PodsByOwner()
        self._expectations = Expectations(self._clock)
        self._sets.subscribe(self._set_changed)
        self._mirrors.of(PODS).subscribe(self._pod_changed)

    def _set_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._expectations.forget(uid_of(old or {}))
        self._queue.add(key_of(new or old or {}))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        self._pods.changed(old, new)
        if old is not None and (new is None or controller_of(new) != controller_of(old)):
            self._expectations.left(uid_of(old))
        for pod in (old, new):
            if pod is None:
                continue
            owner = controller_of(pod)
            if owner is None:
                self._wake_adopters(pod)
            elif owner.get("kind") == REPLICA_SETS.kind:
                self._queue.add(f"{namespace_of(pod)}/{owner['name']}")

    def _wake_adopters(self, pod: Object) -> None:
        for item in self._sets.values():
            if namespace_of(item) == namespace_of(pod) and matches_labels(item["spec"].get("selector"), labels_of(pod)):
                self._queue.add(key_of(item))

    async def _reconcile(self, key: str) -> float | None:
        replica_set = self._sets.get(key)
        if replica_set is None:
            return None
        owned = await self._claim(replica_set)
        problem: GridError | None = None
        reason = ""
        again: float | None = None
        if not self._expectations.settle(uid_of(replica_set), owned):
            # Every pod change enqueues the set anyway; the delay only ends a wait for an expectation that never shows.
            again = _EXPECTATION_CHECK_SECONDS
        elif not is_terminating(replica_set):
            active = [pod for pod in owned if is_active(pod)]
            difference = len(active) - int(replica_set["spec"].get("replicas", 1))
            reason = "FailedCreate" if difference < 0 else "FailedDelete"
            problem = await self._correct(replica_set, active, difference)
        counts = tally(
            owned,
            labels_of(replica_set["spec"]["template"]),
            int(replica_set["spec"].get("minReadySeconds") or 0),
            self._clock.now(),
        )
        conditions = self._conditions(replica_set, problem, reason, settled=again is None)
        await self._write_status(
            replica_set, status_of(counts, replica_set["metadata"].get("generation", 0), conditions)
        )
        if problem is not None:
            raise AlreadyReported(answer_of(problem).message) from problem
        waits = [wait for wait in (again, counts.check_again) if wait is not None]
        return min(waits, default=None)

    async def _claim(self, replica_set: Object) -> list[Object]:
        """Return the pods of this set, after adopting orphans that match and releasing pods that do not."""
        selector = replica_set["spec"].get("selector")
        owned = []
        for pod in self._pods.of(uid_of(replica_set)):
            if matches_labels(selector, labels_of(pod)) or is_terminating(replica_set):
                owned.append(pod)
            elif not is_terminating(pod):
                await self._set_owner(pod, None)
        if is_terminating(replica_set):
            return owned
        for pod in self._pods.orphans(namespace_of(replica_set)):
            if is_active(pod) and matches_labels(selector, labels_of(pod)):
                await self._set_owner(pod, _owner_reference(replica_set))
                owned.append(pod)
        return owned

    async def _set_owner(self, pod: Object, owner: Object | None) -> None:
        references = [item for item in pod["metadata"].get("ownerReferences") or () if not item.get("controller")]
        if owner is not None:
            references.append(owner)
        meta = {"uid": uid_of(pod), "resourceVersion": pod["metadata"].get("resourceVersion")}
        body = {"metadata": {**meta, "ownerReferences": references}}
        with contextlib.suppress(NotFound):
            await self._client.patch(PODS.path(namespace_of(pod), name_of(pod)), body)

    async def _correct(self, replica_set: Object, active: list[Object], difference: int) -> GridError | None:
        """Create missing pods or delete surplus ones; return the first refusal, or None."""
        if difference < 0:
            return await self._create_slowly(replica_set, min(-difference, _BURST))
        if difference > 0:
            victims = deletion_order(active, self._related(replica_set), self._clock.now())[: min(difference, _BURST)]
            problems = await asyncio.gather(*(self._delete_one(replica_set, pod) for pod in victims))
            return next((problem for problem in problems if problem is not None), None)
        return None

    def _related(self, replica_set: Object) -> list[Object]:
        """Return the pods of all sets of the same Deployment."""
        owner = controller_of(replica_set)
        if owner is None:
            return self._pods.of(uid_of(replica_set))
        siblings = [item for item in self._sets.values() if (controller_of(item) or {}).get("uid") == owner["uid"]]
        return [pod for item in siblings for pod in self._pods.of(uid_of(item))]

    async def _create_slowly(self, replica_set: Object, missing: int) -> GridError | None:
        batch = 1
        while missing > 0:
            batch = min(batch, missing)
            problems = await asyncio.gather(*(self._create_one(replica_set) for _ in range(batch)))
            refused = [problem for problem in problems if problem is not None]
            if refused:
                return refused[0]
            missing -= batch
            batch *= 2
        return None

    async def _create_one(self, replica_set: Object) -> GridError | None:
        template = replica_set["spec"]["template"]
        meta = template.get("metadata") or {}
        namespace = namespace_of(replica_set)
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **{key: copy.deepcopy(meta[key]) for key in ("labels", "annotations", "finalizers") if meta.get(key)},
                "generateName": f"{name_of(replica_set)}-",
                "namespace": namespace,
                "ownerReferences": [_owner_reference(replica_set)],
            },
            "spec": template["spec"],
        }
        about = _reference(replica_set)
        try:
            created = await self._client.create(PODS.path(namespace), pod)
        except GridError as error:
            if not namespace_is_ending(error):
                await self._events.record(
                    about, "FailedCreate", f"Error creating: {answer_of(error).message}", type="Warning"
                )
            return error
        self._expectations.created(uid_of(replica_set), uid_of(created))
        await self._events.record(about, "SuccessfulCreate", f"Created pod: {name_of(created)}")
        return None

    async def _delete_one(self, replica_set: Object, pod: Object) -> GridError | None:
        about = _reference(replica_set)
        try:
            await self._client.delete(PODS.path(namespace_of(pod), name_of(pod)), uid=uid_of(pod))
        except (NotFound, Conflict):
            return None
        except GridError as error:
            await self._events.record(
                about, "FailedDelete", f"Error deleting: {answer_of(error).message}", type="Warning"
            )
            return error
        self._expectations.deleted(uid_of(replica_set), uid_of(pod))
        await self._events.record(about, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")
        return None

    def _conditions(
        self, replica_set: Object, problem: GridError | None, reason: str, *, settled: bool
    ) -> list[Object]:
        known: list[Object] = replica_set.get("status", {}).get("conditions") or []
        failure = next((item for item in known if item["type"] == "ReplicaFailure"), None)
        if problem is None:
            # While the mirror is behind, nothing was tried, so the failure may persist.
            return [item for item in known if item is not failure] if settled else known
        if failure is not None:
            return known
        condition = {
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": format_time(self._clock.now()),
            "reason": reason,
            "message": answer_of(problem).message,
        }
        return [*known, condition]

    async def _write_status(self, replica_set: Object, status: Object) -> None:
        if replica_set.get("status") == status:
            return
        body = {**replica_set, "apiVersion": REPLICA_SETS.api_version, "kind": REPLICA_SETS.kind, "status": status}
        with contextlib.suppress(NotFound):
            await self._client.update(
                REPLICA_SETS.path(namespace_of(replica_set), name_of(replica_set), "status"), body
            )


def _owner_reference(replica_set: Object) -> Object:
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "name": name_of(replica_set),
        "uid": uid_of(replica_set),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _reference(replica_set: Object) -> Object:
    return reference_to(replica_set, kind=REPLICA_SETS.kind, api_version=REPLICA_SETS.api_version)
