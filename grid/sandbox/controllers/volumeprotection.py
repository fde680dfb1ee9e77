"""The volume protection controller: keeps a PersistentVolume that is being deleted until it is bound no more.

The API server gives each volume the finalizer; this controller takes it away at the end.
"""

import contextlib

from grid.core.errors import NotFound
from grid.sandbox.client import VOLUMES, Object, is_terminating, name_of
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.storage import VOLUME_PROTECTION


class VolumeProtection(QueueController):
    """The controller that lets go of volumes."""

    component = "pv-protection-controller"
    name = "volume protection"
    workers = 1

    def _begin(self) -> None:
        self._volumes = self._mirrors.of(VOLUMES)
        self._volumes.subscribe(lambda old, new: self._queue.add(name_of(new)) if new and _may_go(new) else None)

    async def _reconcile(self, key: str) -> float | None:
        volume = self._volumes.get(key)
        if volume is not None and _may_go(volume):
            left = [item for item in volume["metadata"]["finalizers"] if item != VOLUME_PROTECTION]
            meta = {"resourceVersion": volume["metadata"]["resourceVersion"], "finalizers": left or None}
            with contextlib.suppress(NotFound):
                await self._client.patch(VOLUMES.path(name=key), {"metadata": meta})
        return None


def _may_go(volume: Object) -> bool:
    is_protected = VOLUME_PROTECTION in (volume["metadata"].get("finalizers") or ())
    return is_protected and is_terminating(volume) and (volume.get("status") or {}).get("phase") != "Bound"
