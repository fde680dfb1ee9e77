"""The provisioner of the embedded cluster: makes a directory of this machine, and its PersistentVolume, for each claim that asks for one.

A volume whose claim is gone is removed with its files, unless it is to be retained. Claims that were bound before this cluster had
PersistentVolumes get theirs, with the directory that they had; their files are retained, as they were then.
"""

import asyncio
import contextlib
import logging
import random
import zlib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from grid.core.errors import Conflict, NotFound
from grid.sandbox.client import (
    NODES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Api,
    Clock,
    Object,
    annotations_of,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.volumebinding import BIND_COMPLETED, is_from_before, size_of
from grid.sandbox.kubelet.volumes import claim_directory, provisioned_directory, remove
from grid.sandbox.storage import (
    PROVISIONED_BY,
    PROVISIONER,
    PROVISIONER_WANTED,
    SELECTED_NODE,
    class_of,
    requested_storage,
)

logger = logging.getLogger(__name__)

FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
_CLAIM, _VOLUME = "claim:", "volume:"


class DirectoryProvisioner(QueueController):
    """The provisioner of the directories below `directory`."""

    component = PROVISIONER
    name = "volume provisioner"
    workers = 2

    def __init__(
        self, client: Api, *, directory: Path, clock: Clock | None = None, rng: random.Random | None = None
    ) -> None:
        self._directory = directory
        super().__init__(client, clock=clock, rng=rng)

    def _begin(self) -> None:
        self._claims = self._mirrors.of(VOLUME_CLAIMS)
        self._volumes = self._mirrors.of(VOLUMES)
        self._classes = self._mirrors.of(STORAGE_CLASSES)
        self._claims.subscribe(lambda old, new: self._queue.add(_CLAIM + key_of(new)) if new else None)
        self._volumes.subscribe(lambda old, new: self._queue.add(_VOLUME + name_of(new)) if new else None)

    async def _reconcile(self, key: str) -> float | None:
        with contextlib.suppress(NotFound):
            if key.startswith(_VOLUME):
                volume = self._volumes.get(key.removeprefix(_VOLUME))
                if volume is not None and annotations_of(volume).get(PROVISIONED_BY) == PROVISIONER:
                    await self._sync_volume(volume)
                return None
            claim = self._claims.get(key.removeprefix(_CLAIM))
            if claim is None or is_terminating(claim):
                return None
            if is_from_before(claim):
                await self._adopt(claim)
            elif BIND_COMPLETED in annotations_of(claim):
                await self._grow(claim)
            elif annotations_of(claim).get(PROVISIONER_WANTED) == PROVISIONER and not claim["spec"].get("volumeName"):
                await self._provision(claim)
        return None

    # Claims

    async def _adopt(self, claim: Object) -> None:
        name = str(claim["spec"]["volumeName"])
        if self._volumes.get(name) is None:
            place = claim_directory(self._directory, namespace_of(claim), name_of(claim))
            body = persistent_volume(name, claim, place, policy="Retain")
            body["spec"]["capacity"] = {"storage": claim["status"].get("capacity", {}).get("storage", "1Gi")}
            with contextlib.suppress(Conflict):
                await self._client.create(VOLUMES.path(), body)

    async def _provision(self, claim: Object) -> None:
        name, storage_class = f"pvc-{uid_of(claim)}", self._classes.get(class_of(claim))
        if storage_class is None or storage_class["provisioner"] != PROVISIONER or self._volumes.get(name) is not None:
            return
        selected = annotations_of(claim).get(SELECTED_NODE)
        if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" and not selected:
            return
        about = reference_to(claim, kind=VOLUME_CLAIMS.kind, api_version=VOLUME_CLAIMS.api_version)
        if claim["spec"].get("selector") is not None:
            text = f'failed to provision volume with StorageClass "{name_of(storage_class)}": claim Selector is not supported'
            await self._events.record(about, "ProvisioningFailed", text, type="Warning")
            return
        text = f'External provisioner is provisioning volume for claim "{key_of(claim)}"'
        await self._events.record(about, "Provisioning", text)
        node = await self._client.get(NODES.path(name=selected)) if selected else None
        place = self._directory / name
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        body = persistent_volume(name, claim, place, policy=str(storage_class["reclaimPolicy"]))
        topology = chosen_topology(storage_class, name_of(claim), node)
        if topology:
            expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in topology.items()]
            body["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
        with contextlib.suppress(Conflict):
            await self._client.create(VOLUMES.path(), body)
            await self._events.record(about, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    async def _grow(self, claim: Object) -> None:
        """Report a grown claim's new size at once: a directory needs no growing."""
        volume = self._volumes.get(claim["spec"]["volumeName"])
        wanted = requested_storage(claim["spec"])
        if volume is None or annotations_of(volume).get(PROVISIONED_BY) != PROVISIONER or wanted <= size_of(volume):
            return
        capacity = {"storage": claim["spec"]["resources"]["requests"]["storage"]}
        path = VOLUME_CLAIMS.path(namespace_of(claim), name_of(claim), "status")
        await self._client.patch(path, {"status": {"capacity": capacity}})
        await self._client.patch(VOLUMES.path(name=name_of(volume)), {"spec": {"capacity": capacity}})
        about = reference_to(claim, kind=VOLUME_CLAIMS.kind, api_version=VOLUME_CLAIMS.api_version)
        await self._events.record(about, "VolumeResizeSuccessful", "Resize volume succeeded")

    # Volumes

    async def _sync_volume(self, volume: Object) -> None:
        deletes = volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        is_released = (volume.get("status") or {}).get("phase") == "Released"
        if deletes and is_released:
            place = provisioned_directory(self._directory, volume)
            if place is not None and place.is_dir() and not place.is_symlink():
                await asyncio.to_thread(remove, place)
            if not is_terminating(volume):
                await self._client.delete(VOLUMES.path(name=name_of(volume)), uid=uid_of(volume))
        finalizers = volume["metadata"].get("finalizers") or []
        wanted = [item for item in finalizers if item != FINALIZER]
        if deletes and not is_released:
            wanted = wanted if is_terminating(volume) and FINALIZER not in finalizers else [*wanted, FINALIZER]
        if sorted(wanted) != sorted(finalizers):
            await self._client.patch(VOLUMES.path(name=name_of(volume)), {"metadata": {"finalizers": wanted or None}})


def chosen_topology(storage_class: Mapping[str, Any], claim: str, node: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Return the labels of the nodes that shall reach a new volume: the selected node's, or one of the class's choices by the claim's name.

    It is empty for a class that allows all nodes.
    """
    terms = [term.get("matchLabelExpressions") or () for term in storage_class.get("allowedTopologies") or ()]
    if node is not None:
        labels = labels_of(node)
        for term in terms:
            if all(labels.get(item["key"]) in item["values"] for item in term):
                return {item["key"]: labels[item["key"]] for item in term}
    choices = [
        dict(zip((item["key"] for item in term), values, strict=True))
        for term in terms
        for values in product(*(item["values"] for item in term))
    ]
    return choices[zlib.crc32(claim.encode()) % len(choices)] if choices else {}


def persistent_volume(name: str, claim: Mapping[str, Any], place: Path, *, policy: str) -> Object:
    """Return the PersistentVolume for a claim, reserved for it."""
    spec = claim["spec"]
    requests = (spec.get("resources") or {}).get("requests") or {}
    finalizers = {"finalizers": [FINALIZER]} if policy == "Delete" else {}
    return {
        "apiVersion": VOLUMES.api_version,
        "kind": VOLUMES.kind,
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}, **finalizers},
        "spec": {
            "capacity": {"storage": requests.get("storage", "1Gi")},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": class_of(claim),
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "hostPath": {"path": str(place.resolve()), "type": "DirectoryOrCreate"},
            "claimRef": {
                "apiVersion": VOLUME_CLAIMS.api_version,
                "kind": VOLUME_CLAIMS.kind,
                "namespace": namespace_of(claim),
                "name": name_of(claim),
                "uid": uid_of(claim),
            },
        },
    }
