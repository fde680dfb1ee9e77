"""The ephemeral volume controller: makes the claim `<pod>-<volume>` for each volume that a pod describes by a claim's template.

The pod owns the claim, so both are deleted together. A claim of that name with another owner is left alone and the pod waits, with
an event that says so. The controller is level-triggered.
"""

from collections.abc import Mapping
from typing import Any

from grid.core.errors import GridError
from grid.sandbox.client import (
    PODS,
    VOLUME_CLAIMS,
    Object,
    answer_of,
    controller_of,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.workoff import AlreadyReported


class EphemeralVolumeController(QueueController):
    """The controller that creates the claims of pods' ephemeral volumes."""

    component = "ephemeral_volume"
    name = "ephemeral volumes"

    def _begin(self) -> None:
        self._pods = self._mirrors.of(PODS)
        self._claims = self._mirrors.of(VOLUME_CLAIMS)
        self._pods.subscribe(self._pod_changed)
        self._claims.subscribe(self._claim_changed)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        # Volumes never change, so a pod is enqueued once.
        if old is None and new is not None and ephemeral_volumes(new):
            self._queue.add(key_of(new))

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None or old is None:
            return
        owner = controller_of(old)
        if owner is not None and owner["kind"] == PODS.kind:
            self._queue.add(f"{namespace_of(old)}/{owner['name']}")

    async def _reconcile(self, key: str) -> float | None:
        pod = self._pods.get(key)
        if pod is None or is_terminating(pod):
            return None
        for volume in ephemeral_volumes(pod):
            claim = claim_of(pod, volume)
            problem = await self._provide(pod, claim)
            if problem:
                about = reference_to(pod, kind=PODS.kind, api_version=PODS.api_version)
                message = f"ephemeral volume {volume['name']}: {problem}"
                await self._events.record(about, "FailedBinding", message, type="Warning")
                raise AlreadyReported(message)
        return None

    async def _provide(self, pod: Object, claim: Object) -> str:
        """Create the claim if it is missing. Return why the pod has none, or ""."""
        existing = self._claims.get(f"{namespace_of(pod)}/{name_of(claim)}")
        if existing is not None:
            return ownership_problem(pod, existing)
        try:
            await self._client.create(VOLUME_CLAIMS.path(namespace_of(pod)), claim)
        except GridError as error:
            return f"create PVC {name_of(claim)}: {answer_of(error).message}"
        return ""


def ephemeral_volumes(pod: Mapping[str, Any]) -> list[Object]:
    return [volume for volume in pod["spec"].get("volumes") or () if volume.get("ephemeral")]


def claim_name(pod: Mapping[str, Any], volume: Mapping[str, Any]) -> str:
    return f"{name_of(pod)}-{volume['name']}"


def claim_of(pod: Object, volume: Object) -> Object:
    """Return the claim as the pod describes it, owned by the pod."""
    template = volume["ephemeral"].get("volumeClaimTemplate") or {}
    described = template.get("metadata") or {}
    owner = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": name_of(pod),
        "uid": uid_of(pod),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: Object = {"name": claim_name(pod, volume), "ownerReferences": [owner]}
    metadata |= {key: described[key] for key in ("labels", "annotations") if described.get(key)}
    return {
        "apiVersion": VOLUME_CLAIMS.api_version,
        "kind": VOLUME_CLAIMS.kind,
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }


def ownership_problem(pod: Mapping[str, Any], claim: Mapping[str, Any]) -> str:
    """Return why the pod may not use a claim of this name, or "". Another owner's claim may hold data, so it is never taken."""
    owner = controller_of(claim)
    if owner is not None and owner["uid"] == uid_of(pod):
        return ""
    namespace = namespace_of(pod)
    return f"PVC {namespace}/{name_of(claim)} was not created for pod {namespace}/{name_of(pod)} (pod is not owner)"
