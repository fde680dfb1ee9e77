"""Volumes for claims on an API server that is not the embedded one: directories of this machine, as PersistentVolumes.

A real control plane binds claims to PersistentVolumes only. For each claim without a storage class this module creates one that is
reserved for the claim; the server's own controller then binds the two. The directory is the one that the kubelets use for the
claim, and stays when the claim is deleted; the PersistentVolume is deleted with the claim.
"""

import asyncio
import contextlib
import logging
from pathlib import Path

from grid.core.errors import GridError, NotFound
from grid.sandbox.client import (
    VOLUME_CLAIMS,
    VOLUMES,
    Api,
    Clock,
    Mirror,
    Object,
    SystemClock,
    is_terminating,
    name_of,
    namespace_of,
    uid_of,
)
from grid.sandbox.kubelet.volumes import claim_directory

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_LABEL = "app.kubernetes.io/managed-by"
_MANAGER = "compute-grid-kubelet"


class LocalVolumes:
    """The controller that creates a PersistentVolume for each claim. A change of any claim reconciles all of them."""

    def __init__(self, api: Api, claims: Path, *, clock: Clock | None = None) -> None:
        self._api = api
        self._claims = claims
        self._clock = clock or SystemClock()
        self._mirror = Mirror(api, VOLUME_CLAIMS, clock=self._clock)
        self._dirty = asyncio.Event()
        self._mirror.subscribe(lambda *_: self._dirty.set())

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._mirror.run())
            group.create_task(self._work())

    async def _work(self) -> None:
        await self._mirror.synced()
        while True:
            self._dirty.clear()
            try:
                await self._look()
            except GridError as error:
                logger.warning("volumes wait: %s", error)
                await self._clock.sleep(max(_RETRY_SECONDS, error.retry_after))
                continue
            except Exception:
                logger.exception("volumes failed and are tried again")
                await self._clock.sleep(_RETRY_SECONDS)
                continue
            await self._dirty.wait()

    async def _look(self) -> None:
        existing = await self._api.list(VOLUMES.path(), label_selector=f"{_LABEL}={_MANAGER}")
        volumes = {name_of(volume) for volume in existing}
        wanted = {f"pvc-{uid_of(claim)}": claim for claim in list(self._mirror.values()) if _is_ours(claim)}
        for name in volumes - wanted.keys():
            await self._ignore_missing(name)
        for name, claim in wanted.items():
            if name not in volumes and not is_terminating(claim):
                place = claim_directory(self._claims, namespace_of(claim), name_of(claim))
                await self._api.create(VOLUMES.path(), persistent_volume(name, claim, place))

    async def _ignore_missing(self, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self._api.delete(VOLUMES.path(name=name))


def _is_ours(claim: Object) -> bool:
    """Return True for a claim without a storage class that is not bound to another volume."""
    spec = claim["spec"]
    bound_to = spec.get("volumeName") or ""
    return not spec.get("storageClassName") and bound_to in ("", f"pvc-{uid_of(claim)}")


def persistent_volume(name: str, claim: Object, place: Path) -> Object:
    spec = claim["spec"]
    requests = (spec.get("resources") or {}).get("requests") or {}
    return {
        "apiVersion": VOLUMES.api_version,
        "kind": VOLUMES.kind,
        "metadata": {"name": name, "labels": {_LABEL: _MANAGER}},
        "spec": {
            "capacity": {"storage": requests.get("storage", "1Gi")},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "hostPath": {"path": str(place), "type": "DirectoryOrCreate"},
            "claimRef": {
                "apiVersion": VOLUME_CLAIMS.api_version,
                "kind": VOLUME_CLAIMS.kind,
                "namespace": namespace_of(claim),
                "name": name_of(claim),
                "uid": uid_of(claim),
            },
        },
    }
