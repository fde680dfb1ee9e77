"""The volume binder: every claim is bound at once, because all volumes are directories of one machine.

There are no PersistentVolume objects and no storage classes in the embedded cluster: a claim is Bound to `pvc-<uid>`, and the
kubelets keep its directory. On another cluster this controller is not started.
"""

import contextlib

from grid.errors import NotFound
from grid.sandbox.client import (
    VOLUME_CLAIMS,
    Object,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController


class VolumeBinder(QueueController):
    """The controller that binds each claim as soon as it is created."""

    component = "persistentvolume-controller"
    name = "volumes"
    workers = 1

    def _begin(self) -> None:
        self._claims = self._mirrors.of(VOLUME_CLAIMS)
        self._claims.subscribe(lambda old, new: self._queue.add(key_of(new or old or {})))

    async def _reconcile(self, key: str) -> float | None:
        claim = self._claims.get(key)
        if claim is None or is_terminating(claim) or claim.get("status", {}).get("phase") == "Bound":
            return None
        with contextlib.suppress(NotFound):
            await self._write(claim, f"pvc-{uid_of(claim)}")
        return None

    async def _write(self, claim: Object, volume: str) -> None:
        """Write the spec, then the status: a process killed between the two does the second at its next start."""
        namespace, name = namespace_of(claim), name_of(claim)
        if not claim["spec"].get("volumeName"):
            claim = await self._client.patch(VOLUME_CLAIMS.path(namespace, name), {"spec": {"volumeName": volume}})
        spec = claim["spec"]
        status = {
            "phase": "Bound",
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "capacity": {"storage": (spec.get("resources") or {}).get("requests", {}).get("storage", "1Gi")},
        }
        await self._client.patch(VOLUME_CLAIMS.path(namespace, name, "status"), {"status": status})
        about = reference_to(claim, kind=VOLUME_CLAIMS.kind, api_version=VOLUME_CLAIMS.api_version)
        message = f"Successfully provisioned volume {spec['volumeName']}"
        await self._events.record(about, "ProvisioningSucceeded", message)
