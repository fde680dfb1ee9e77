"""The volume binder: every claim gets its volume at once, because all volumes are directories of one machine.

There are no PersistentVolume objects and no storage classes in the embedded cluster: a claim is Bound to `pvc-<uid>`, and the
kubelets keep its directory. On another cluster this controller is not started.
"""

import random

from grid.sandbox.client import (
    VOLUME_CLAIMS,
    Api,
    ApiError,
    Clock,
    EventRecorder,
    Mirrors,
    Object,
    SystemClock,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.workqueue import WorkQueue, work_off


class VolumeBinder:
    """Bind each claim as soon as it is created."""

    def __init__(
        self,
        client: Api,
        *,
        clock: Clock | None = None,
        mirrors: Mirrors | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._mirrors = mirrors or Mirrors(client, clock=self._clock, rng=rng)
        self._claims = self._mirrors.of(VOLUME_CLAIMS)
        self._events = EventRecorder(client, "persistentvolume-controller", clock=self._clock)
        self._queue = WorkQueue(self._clock, rng)
        self._claims.subscribe(lambda old, new: self._queue.add(key_of(new or old or {})))

    async def run(self) -> None:
        """Until cancelled."""
        async with self._mirrors.running():
            await work_off(self._queue, self._bind, name="volumes", workers=1)

    async def _bind(self, key: str) -> float | None:
        claim = self._claims.get(key)
        if claim is None or is_terminating(claim) or claim.get("status", {}).get("phase") == "Bound":
            return None
        try:
            await self._write(claim, f"pvc-{uid_of(claim)}")
        except ApiError as error:
            if not error.not_found:
                raise
        return None

    async def _write(self, claim: Object, volume: str) -> None:
        """First the spec, then the status: a process killed between the two does the second at its next start."""
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
