"""The Deployment controller: rolls a change out through ReplicaSets, step by step, and reports its progress.

Every reconciliation of a Deployment reads the mirrors, makes at most one step of sizes (`rollout`) and writes the status
(`rolloutstatus`); the ReplicaSets' own changes enqueue it for the next step. Sets are written with the version that was
read, so a decision on an old copy is refused by the server and taken again.
"""

import contextlib
import copy
import logging
from collections.abc import Sequence

from grid.core.errors import Conflict, GridError, NotFound
from grid.sandbox.client import (
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    Object,
    annotations_of,
    answer_of,
    controller_of,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers import rollout, rolloutstatus
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.owned import PodsByOwner
from grid.sandbox.controllers.podresources import is_finished
from grid.sandbox.controllers.rollout import HASH_LABEL, REVISION, spec_replicas
from grid.sandbox.controllers.rolloutstatus import PROGRESSING, RolloutCondition
from grid.sandbox.controllers.selectors import matches_labels

logger = logging.getLogger(__name__)


class DeploymentController(QueueController):
    """The controller that rolls out each Deployment, one step at each reconciliation."""

    component = "deployment-controller"
    name = "deployment"

    def _begin(self) -> None:
        self._deployments = self._mirrors.of(DEPLOYMENTS)
        self._sets = self._mirrors.of(REPLICA_SETS)
        self._pods = PodsByOwner()
        self._deployments.subscribe(lambda old, new: self._queue.add(key_of(new or old or {})))
        self._sets.subscribe(self._set_changed)
        self._mirrors.of(PODS).subscribe(self._pod_changed)

    def _set_changed(self, old: Object | None, new: Object | None) -> None:
        for item in (old, new):
            owner = controller_of(item) if item else None
            if item and owner and owner.get("kind") == DEPLOYMENTS.kind:
                self._queue.add(f"{namespace_of(item)}/{owner['name']}")
        if new and controller_of(new) is None:
            for deployment in self._deployments.values():
                if _selects(deployment, new):
                    self._queue.add(key_of(deployment))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        """Enqueue the Deployment of a pod that is gone: Recreate waits until the last old pod is gone."""
        self._pods.changed(old, new)
        owner = controller_of(old) if old is not None and new is None else None
        if old is None or owner is None or owner.get("kind") != REPLICA_SETS.kind:
            return
        replica_set = self._sets.get(f"{namespace_of(old)}/{owner['name']}")
        if replica_set is not None:
            self._set_changed(None, replica_set)

    async def _reconcile(self, key: str) -> float | None:
        mirrored = self._deployments.get(key)
        if mirrored is None:
            return None
        # The steps below change these objects, so that later steps see it; the mirrors' objects are shared and must not change.
        deployment = copy.deepcopy(mirrored)
        sets = await self._claim(deployment)
        newest, old = rollout.split_sets(deployment, sets)
        if is_terminating(deployment):
            await self._write_basic_status(deployment, newest, sets)
            return None
        await self._note_pause(deployment)
        if deployment["spec"].get("paused") or rollout.is_scaling(deployment, sets):
            await self._scale(deployment, newest, old)
            return None
        if rollout.is_rolling(deployment):
            return await self._roll(deployment, newest, old)
        return await self._recreate(deployment, newest, old)

    async def _claim(self, deployment: Object) -> list[Object]:
        """Return copies of the Deployment's sets, after adopting ownerless ones that it selects and releasing those it does not."""
        sets: list[Object] = []
        for item in list(self._sets.values()):
            owner = controller_of(item)
            if owner is not None and owner["uid"] == uid_of(deployment):
                if _selects(deployment, item) or is_terminating(deployment):
                    sets.append(copy.deepcopy(item))
                else:
                    await self._set_owner(item, None)
            elif (
                owner is None
                and _selects(deployment, item)
                and not (is_terminating(deployment) or is_terminating(item))
            ):
                sets.append(await self._adopt(deployment, item))
        return sets

    async def _adopt(self, deployment: Object, item: Object) -> Object:
        """Own the set. Raise `Conflict` when the server has no such Deployment any more: the mirror may be behind."""
        known = await self._client.get(DEPLOYMENTS.path(namespace_of(deployment), name_of(deployment)))
        if uid_of(known) != uid_of(deployment) or is_terminating(known):
            raise Conflict(f"deployment {key_of(deployment)} is gone")
        return await self._set_owner(item, _owner_reference(deployment))

    async def _set_owner(self, item: Object, owner: Object | None) -> Object:
        references = [each for each in item["metadata"].get("ownerReferences") or () if not each.get("controller")]
        if owner is not None:
            references.append(owner)
        meta = {"uid": uid_of(item), "resourceVersion": item["metadata"].get("resourceVersion")}
        path = REPLICA_SETS.path(namespace_of(item), name_of(item))
        return await self._client.patch(path, {"metadata": {**meta, "ownerReferences": references}})

    async def _note_pause(self, deployment: Object) -> None:
        """Record a pause or a resumption: a pause stops the clock of the progress deadline, a resumption starts it anew."""
        if rolloutstatus.deadline_of(deployment) is None:
            return
        known = rolloutstatus.find((deployment.get("status") or {}).get("conditions") or [], PROGRESSING)
        if known is not None and known.get("reason") == "ProgressDeadlineExceeded":
            return
        paused = bool(deployment["spec"].get("paused"))
        was_paused = known is not None and known.get("reason") == "DeploymentPaused"
        if paused == was_paused:
            return
        word = "paused" if paused else "resumed"
        condition = RolloutCondition(PROGRESSING, "Unknown", f"Deployment{word.capitalize()}", f"Deployment is {word}")
        self._set_condition(deployment, condition)
        await self._put_status(deployment, deployment["status"])

    def _set_condition(self, deployment: Object, condition: RolloutCondition) -> None:
        status = deployment.setdefault("status", {})
        status["conditions"] = rolloutstatus.with_condition(
            status.get("conditions") or [], condition, self._clock.now()
        )

    async def _scale(self, deployment: Object, newest: Object | None, old: list[Object]) -> None:
        if newest is not None:
            newest = await self._refresh_newest(deployment, newest, old)
        for item, size in rollout.scaled_sizes(deployment, newest, old):
            await self._resize(deployment, item, size)
        if deployment["spec"].get("paused"):
            await self._clean_up(deployment, old)
        await self._write_basic_status(deployment, newest, [*old, *([newest] if newest else [])])

    async def _roll(self, deployment: Object, newest: Object | None, old: list[Object]) -> float | None:
        newest = await self._ensure_newest(deployment, newest, old)
        sets = [*old, newest]
        wanted = spec_replicas(deployment)
        present = spec_replicas(newest)
        size = wanted if present > wanted else rollout.new_set_size(deployment, newest, sets)
        if present != wanted and await self._resize(deployment, newest, size):
            return await self._write_status(deployment, newest, sets)
        shrunk = [
            await self._resize(deployment, item, count)
            for item, count in rollout.old_set_sizes(deployment, newest, old)
        ]
        if not any(shrunk) and rolloutstatus.is_complete(deployment, deployment.get("status") or {}):
            await self._clean_up(deployment, old)
        return await self._write_status(deployment, newest, sets)

    async def _recreate(self, deployment: Object, newest: Object | None, old: list[Object]) -> float | None:
        """Scale the old sets to zero and create the new pods only when the last old one is gone, so that they never run together."""
        if newest is not None:
            newest = await self._refresh_newest(deployment, newest, old)
        sets = [*old, *([newest] if newest else [])]
        shrunk = [await self._resize(deployment, item, 0) for item in old]
        if any(shrunk) or self._old_pods_left(old):
            return await self._write_status(deployment, newest, sets)
        newest = await self._ensure_newest(deployment, newest, old)
        await self._resize(deployment, newest, spec_replicas(deployment))
        if rolloutstatus.is_complete(deployment, deployment.get("status") or {}):
            await self._clean_up(deployment, old)
        return await self._write_status(deployment, newest, [*old, newest])

    def _old_pods_left(self, old: Sequence[Object]) -> bool:
        if any(rollout.status_number(item, "replicas") for item in old):
            return True
        return any(not is_finished(pod) for item in old for pod in self._pods.of(uid_of(item)))

    async def _ensure_newest(self, deployment: Object, newest: Object | None, old: list[Object]) -> Object:
        if newest is not None:
            return await self._refresh_newest(deployment, newest, old)
        return await self._create_newest(deployment, old)

    async def _refresh_newest(self, deployment: Object, newest: Object, old: Sequence[Object]) -> Object:
        """Bring annotations and minReadySeconds of the new set up to date, and the Deployment's revision."""
        wanted = rollout.set_annotations(deployment, newest, old)
        # The size annotations are written when the set is resized: they show a change of the wanted number.
        wanted |= {
            key: value for key, value in annotations_of(newest).items() if key in rollout.size_annotations(deployment)
        }
        ready_seconds = deployment["spec"].get("minReadySeconds") or 0
        if wanted != annotations_of(newest) or ready_seconds != (newest["spec"].get("minReadySeconds") or 0):
            newest["metadata"]["annotations"] = wanted
            newest["spec"]["minReadySeconds"] = ready_seconds
            await self._update_set(newest)
        _note_revision(deployment, wanted[REVISION])
        status = deployment.get("status") or {}
        if (
            rolloutstatus.deadline_of(deployment) is not None
            and rolloutstatus.find(status.get("conditions") or [], PROGRESSING) is None
        ):
            message = f'Found new replica set "{name_of(newest)}"'
            self._set_condition(deployment, RolloutCondition(PROGRESSING, "True", "FoundNewReplicaSet", message))
        return newest

    async def _create_newest(self, deployment: Object, old: list[Object]) -> Object:
        wanted = self._new_set(deployment, old)
        name = name_of(wanted)
        try:
            created = await self._client.create(REPLICA_SETS.path(namespace_of(deployment)), wanted)
        except Conflict:
            existing = await self._existing(deployment, wanted)
            if existing is None:
                raise
            return existing
        except GridError as error:
            await self._report_refused_set(deployment, name, error)
            raise
        size = spec_replicas(created)
        if size:
            await self._tell_scaled(deployment, name, 0, size)
        message = f'Created new replica set "{name}"'
        self._set_condition(deployment, RolloutCondition(PROGRESSING, "True", "NewReplicaSetCreated", message))
        _note_revision(deployment, annotations_of(created)[REVISION])
        return created

    def _new_set(self, deployment: Object, old: list[Object]) -> Object:
        spec = deployment["spec"]
        digest = rollout.template_hash(spec["template"], rollout.status_number(deployment, "collisionCount"))
        template = copy.deepcopy(spec["template"])
        labels = {**labels_of(template), HASH_LABEL: digest}
        template.setdefault("metadata", {})["labels"] = labels
        selector = copy.deepcopy(spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
        return {
            "apiVersion": REPLICA_SETS.api_version,
            "kind": REPLICA_SETS.kind,
            "metadata": {
                "name": f"{name_of(deployment)}-{digest}",
                "namespace": namespace_of(deployment),
                "labels": labels,
                "annotations": rollout.set_annotations(deployment, None, old),
                "ownerReferences": [_owner_reference(deployment)],
            },
            "spec": {
                "replicas": rollout.new_set_size(deployment, None, old),
                "minReadySeconds": spec.get("minReadySeconds") or 0,
                "selector": selector,
                "template": template,
            },
        }

    async def _existing(self, deployment: Object, wanted: Object) -> Object | None:
        """Return the set that already has the name if it is ours with the same template; else count a hash collision and return None."""
        existing = await self._client.get(REPLICA_SETS.path(namespace_of(deployment), name_of(wanted)))
        ours = (controller_of(existing) or {}).get("uid") == uid_of(deployment)
        if ours and rollout.same_template(existing["spec"]["template"], wanted["spec"]["template"]):
            return existing
        status = {**(deployment.get("status") or {})}
        status["collisionCount"] = rollout.status_number(deployment, "collisionCount") + 1
        await self._put_status(deployment, status)
        return None

    async def _report_refused_set(self, deployment: Object, name: str, error: GridError) -> None:
        message = f'Failed to create new replica set "{name}": {answer_of(error).message}'
        self._set_condition(deployment, RolloutCondition(PROGRESSING, "False", "ReplicaSetCreateError", message))
        await self._put_status(deployment, deployment["status"])
        await self._events.record(_reference(deployment), "ReplicaSetCreateError", message, type="Warning")

    async def _resize(self, deployment: Object, item: Object, size: int) -> bool:
        """Write the size and the numbers it was computed from; return True when the size itself changed."""
        before = spec_replicas(item)
        notes = rollout.size_annotations(deployment)
        if before == size and notes.items() <= annotations_of(item).items():
            return False
        item["spec"]["replicas"] = size
        item["metadata"]["annotations"] = {**annotations_of(item), **notes}
        await self._update_set(item)
        if before != size:
            await self._tell_scaled(deployment, name_of(item), before, size)
        return before != size

    async def _update_set(self, item: Object) -> None:
        body = {**item, "apiVersion": REPLICA_SETS.api_version, "kind": REPLICA_SETS.kind}
        answer = await self._client.update(REPLICA_SETS.path(namespace_of(item), name_of(item)), body)
        item.update(answer)

    async def _tell_scaled(self, deployment: Object, name: str, before: int, size: int) -> None:
        direction = "up" if size > before else "down"
        message = f"Scaled {direction} replica set {name} from {before} to {size}"
        await self._events.record(_reference(deployment), "ScalingReplicaSet", message)

    async def _clean_up(self, deployment: Object, old: Sequence[Object]) -> None:
        for item in rollout.surplus_history(deployment, old):
            if is_terminating(item):
                continue
            path = REPLICA_SETS.path(namespace_of(item), name_of(item))
            with contextlib.suppress(NotFound):
                await self._client.delete(path, uid=uid_of(item), propagation="Background")

    async def _write_basic_status(self, deployment: Object, newest: Object | None, sets: Sequence[Object]) -> None:
        await self._put_status(deployment, rolloutstatus.basic_status(deployment, newest, sets, self._clock.now()))

    async def _write_status(self, deployment: Object, newest: Object | None, sets: Sequence[Object]) -> float | None:
        now = self._clock.now()
        status = rolloutstatus.rollout_status(deployment, newest, sets, now)
        await self._put_status(deployment, status)
        return rolloutstatus.seconds_until_late(deployment, status, now)

    async def _put_status(self, deployment: Object, status: Object) -> None:
        """Write the status, and the revision with it: a write of the status does not count as a new generation."""
        known: Object = self._deployments.get(key_of(deployment)) or {}
        revision = annotations_of(deployment).get(REVISION, "")
        if known.get("status") == status and annotations_of(known).get(REVISION, "") == revision:
            return
        body = {**deployment, "apiVersion": DEPLOYMENTS.api_version, "kind": DEPLOYMENTS.kind, "status": status}
        path = DEPLOYMENTS.path(namespace_of(deployment), name_of(deployment))
        try:
            answer = await self._client.update(f"{path}/status", body)
            if annotations_of(answer).get(REVISION, "") != revision:
                # A server that keeps only the status of such a write needs another one for the annotation.
                answer = await self._client.patch(path, {"metadata": {"annotations": {REVISION: revision}}})
        except NotFound:
            pass
        else:
            deployment["metadata"]["resourceVersion"] = answer["metadata"]["resourceVersion"]


def _selects(deployment: Object, item: Object) -> bool:
    same = namespace_of(deployment) == namespace_of(item)
    return same and matches_labels(deployment["spec"].get("selector"), labels_of(item))


def _note_revision(deployment: Object, revision: str) -> None:
    """Set the revision in memory; it is written with the next status."""
    deployment["metadata"]["annotations"] = {**annotations_of(deployment), REVISION: revision}


def _owner_reference(deployment: Object) -> Object:
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "name": name_of(deployment),
        "uid": uid_of(deployment),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _reference(deployment: Object) -> Object:
    return reference_to(deployment, kind=DEPLOYMENTS.kind, api_version=DEPLOYMENTS.api_version)
