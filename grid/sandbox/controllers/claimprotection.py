"""The claim protection controller: keeps a volume claim that is being deleted until no pod uses it.

The API server gives each new claim the finalizer; this controller gives it to older ones and takes it away at the end. As on a real
cluster, any pod on a node that names the claim uses it, a finished one too, until the pod is deleted.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from grid.core.errors import NotFound
from grid.core.labels import SIMULATED
from grid.sandbox.client import PODS, VOLUME_CLAIMS, Object, is_terminating, key_of, name_of, namespace_of
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.ephemeral import claim_name, ownership_problem

PROTECTION = "kubernetes.io/pvc-protection"


class ClaimProtection(QueueController):
    """The controller that keeps the finalizer of each claim in order."""

    component = "pvc-protection-controller"
    name = "claim protection"
    workers = 1

    def _begin(self) -> None:
        self._claims = self._mirrors.of(VOLUME_CLAIMS)
        self._pods = self._mirrors.of(PODS)
        self._claims.subscribe(self._claim_changed)
        self._pods.subscribe(self._pod_changed)

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and is_terminating(new) == (PROTECTION in _finalizers(new)):
            self._queue.add(key_of(new))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        """Enqueue the claims of a pod that is gone or about to be."""
        if old is None or (new is not None and not _is_shut_down(new)):
            return
        for volume in old["spec"].get("volumes") or ():
            key = f"{namespace_of(old)}/{_claim_of(old, volume)}"
            claim = self._claims.get(key)
            if claim is not None and is_terminating(claim):
                self._queue.add(key)

    async def _reconcile(self, key: str) -> float | None:
        claim = self._claims.get(key)
        if claim is None or is_terminating(claim) != (PROTECTION in _finalizers(claim)):
            return None
        if not is_terminating(claim):
            await self._write(claim, [*_finalizers(claim), PROTECTION])
        elif not await self._is_used(claim):
            await self._write(claim, [item for item in _finalizers(claim) if item != PROTECTION])
        return None

    async def _is_used(self, claim: Object) -> bool:
        if any(uses(pod, claim) for pod in self._pods.values()):
            return True
        # The mirror may be behind, and the files of a claim that goes too early are lost.
        pods = await self._client.list(PODS.path(namespace_of(claim)), label_selector=f"!{SIMULATED}")
        return any(uses(pod, claim) for pod in pods)

    async def _write(self, claim: Object, finalizers: list[str]) -> None:
        meta = {"resourceVersion": claim["metadata"]["resourceVersion"], "finalizers": finalizers or None}
        with contextlib.suppress(NotFound):
            await self._client.patch(VOLUME_CLAIMS.path(namespace_of(claim), name_of(claim)), {"metadata": meta})


def uses(pod: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    """Return True when a pod on a node has a volume of the claim; an ephemeral one counts until its kubelet is done."""
    if not pod["spec"].get("nodeName") or namespace_of(pod) != namespace_of(claim):
        return False
    for volume in pod["spec"].get("volumes") or ():
        if _claim_of(pod, volume) != name_of(claim):
            continue
        if "ephemeral" not in volume or (not _is_shut_down(pod) and not ownership_problem(pod, claim)):
            return True
    return False


def _claim_of(pod: Mapping[str, Any], volume: Mapping[str, Any]) -> str:
    """Return the name of the volume's claim, or ""."""
    if volume.get("persistentVolumeClaim"):
        return str(volume["persistentVolumeClaim"]["claimName"])
    return claim_name(pod, volume) if volume.get("ephemeral") else ""


def _is_shut_down(pod: Mapping[str, Any]) -> bool:
    """Return True when the pod is being deleted and nothing of it runs any more; only a finalizer can keep such a pod."""
    return is_terminating(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0


def _finalizers(claim: Mapping[str, Any]) -> list[str]:
    return claim["metadata"].get("finalizers") or []
