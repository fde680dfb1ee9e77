"""The volume binder: binds claims to PersistentVolumes, and says why a claim has none. The rules are `volumebinding`.

Volumes are made, and deleted, by the provisioner that the claim's class names. On another cluster this controller is not started.
"""

import contextlib

from grid.core.errors import NotFound
from grid.sandbox.client import (
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Object,
    annotations_of,
    format_time,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.volumebinding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    ClaimStep,
    step_of_claim,
    step_of_volume,
)
from grid.sandbox.storage import PROVISIONER_WANTED, default_class

_CLAIM, _VOLUME = "claim:", "volume:"


class VolumeBinder(QueueController):
    """The controller that binds claims and volumes. It has one worker, so that it never gives one volume to two claims."""

    component = "persistentvolume-controller"
    name = "volumes"
    workers = 1

    def _begin(self) -> None:
        self._claims = self._mirrors.of(VOLUME_CLAIMS)
        self._volumes = self._mirrors.of(VOLUMES)
        self._classes = self._mirrors.of(STORAGE_CLASSES)
        self._claims.subscribe(self._claim_changed)
        self._volumes.subscribe(self._volume_changed)
        self._classes.subscribe(lambda old, new: self._look_at_waiting())

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        claim = new or old or {}
        self._queue.add(_CLAIM + key_of(claim))
        if new is None or not new["spec"].get("volumeName"):
            for volume in self._volumes.values():
                if _owner_key(volume) == key_of(claim):
                    self._queue.add(_VOLUME + name_of(volume))
        else:
            self._queue.add(_VOLUME + str(new["spec"]["volumeName"]))

    def _volume_changed(self, old: Object | None, new: Object | None) -> None:
        self._queue.add(_VOLUME + name_of(new or old or {}))
        for volume in (old, new):
            if volume is not None and volume["spec"].get("claimRef"):
                self._queue.add(_CLAIM + _owner_key(volume))
        if new is not None and not new["spec"].get("claimRef"):
            self._look_at_waiting()

    def _look_at_waiting(self) -> None:
        for claim in self._claims.values():
            if BIND_COMPLETED not in annotations_of(claim):
                self._queue.add(_CLAIM + key_of(claim))

    async def _reconcile(self, key: str) -> float | None:
        # What is gone meanwhile needs nothing any more: its own change comes as another key.
        with contextlib.suppress(NotFound):
            if key.startswith(_CLAIM):
                claim = self._claims.get(key.removeprefix(_CLAIM))
                if claim is not None and not is_terminating(claim):
                    await self._sync_claim(claim)
            else:
                volume = self._volumes.get(key.removeprefix(_VOLUME))
                if volume is not None:
                    await self._sync_volume(volume)
        return None

    # Claims

    async def _sync_claim(self, claim: Object) -> None:
        volumes = {name_of(volume): volume for volume in self._volumes.values()}
        classes = {name_of(storage_class): storage_class for storage_class in self._classes.values()}
        default = default_class(classes)
        if default and not {"storageClassName", "volumeName"} & claim["spec"].keys():  # the class came after the claim
            await self._patch_claim(claim, {"spec": {"storageClassName": default}})
            return
        step = step_of_claim(claim, volumes, classes)
        if step.volume:
            await self._bind(claim, volumes[step.volume])
            return
        if step.provisioner and PROVISIONER_WANTED not in annotations_of(claim):
            claim = await self._patch_claim(
                claim, {"metadata": {"annotations": {PROVISIONER_WANTED: step.provisioner}}}
            )
        if step.phase and (claim.get("status") or {}).get("phase") != step.phase:
            await self._patch_claim(claim, {"status": {"phase": step.phase}}, "status")
        await self._tell(claim, step)

    async def _tell(self, claim: Object, step: ClaimStep) -> None:
        if step.reason:
            about = reference_to(claim, kind=VOLUME_CLAIMS.kind, api_version=VOLUME_CLAIMS.api_version)
            await self._events.record(about, step.reason, step.message, type=step.type)

    async def _bind(self, claim: Object, volume: Object) -> None:
        """Write what is missing, the volume first: a process killed in between does the rest at its next start."""
        owner = volume["spec"].get("claimRef") or {}
        if not owner.get("uid"):
            reference = reference_to(claim, kind=VOLUME_CLAIMS.kind, api_version=VOLUME_CLAIMS.api_version)
            notes = {} if owner else {"metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}}}
            volume = await self._patch_volume(volume, {"spec": {"claimRef": reference}, **notes})
        await self._set_phase(volume, "Bound")
        annotations = {} if claim["spec"].get("volumeName") else {BOUND_BY_CONTROLLER: "yes"}
        if BIND_COMPLETED not in annotations_of(claim):
            annotations[BIND_COMPLETED] = "yes"
            body = {"metadata": {"annotations": annotations}, "spec": {"volumeName": name_of(volume)}}
            claim = await self._patch_claim(claim, body)
        if (claim.get("status") or {}).get("phase") != "Bound":
            spec = volume["spec"]
            status = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": spec["capacity"]}
            await self._patch_claim(claim, {"status": status}, "status")

    # Volumes

    async def _sync_volume(self, volume: Object) -> None:
        step = step_of_volume(volume, await self._claim_of(volume))
        if step.gives_up == "claim":
            marks = {"annotations": {BOUND_BY_CONTROLLER: None}}
            volume = await self._patch_volume(volume, {"metadata": marks, "spec": {"claimRef": None}})
        elif step.gives_up == "uid":
            volume = await self._patch_volume(volume, {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}})
        if step.gives_up or step.phase:
            await self._set_phase(volume, step.phase or "Available", step.reason, step.message)

    async def _claim_of(self, volume: Object) -> Object | None:
        """Return the claim in the volume's `claimRef`. Released volumes are deleted, so the server is asked when the mirror has none."""
        owner = volume["spec"].get("claimRef") or {}
        if not owner.get("uid"):
            return None
        claim: Object | None = self._claims.get(_owner_key(volume))
        if claim is None or uid_of(claim) != owner["uid"]:
            with contextlib.suppress(NotFound):
                return await self._client.get(VOLUME_CLAIMS.path(owner["namespace"], owner["name"]))
        return claim

    async def _set_phase(self, volume: Object, phase: str, reason: str = "", message: str = "") -> None:
        status = volume.get("status") or {}
        if (status.get("phase"), status.get("reason", "")) == (phase, reason):
            return
        now = format_time(self._clock.now())
        body = {"phase": phase, "reason": reason or None, "message": message or None, "lastPhaseTransitionTime": now}
        await self._patch_volume(volume, {"status": body}, "status")
        if reason:
            about = reference_to(volume, kind=VOLUMES.kind, api_version=VOLUMES.api_version)
            await self._events.record(about, reason, message, type="Warning")

    # Writing

    async def _patch_claim(self, claim: Object, body: Object, subresource: str = "") -> Object:
        path = VOLUME_CLAIMS.path(namespace_of(claim), name_of(claim), subresource)
        return await self._client.patch(path, _of_version(claim, body))

    async def _patch_volume(self, volume: Object, body: Object, subresource: str = "") -> Object:
        path = VOLUMES.path(name=name_of(volume), subresource=subresource)
        return await self._client.patch(path, _of_version(volume, body))


def _of_version(obj: Object, body: Object) -> Object:
    """Return the patch with the version that was read, so that the server refuses a decision on an old copy."""
    metadata = {**(body.get("metadata") or {}), "resourceVersion": obj["metadata"]["resourceVersion"]}
    return {**body, "metadata": metadata}


def _owner_key(volume: Object) -> str:
    owner = volume["spec"].get("claimRef") or {}
    return f"{owner.get('namespace', '')}/{owner.get('name', '')}"
