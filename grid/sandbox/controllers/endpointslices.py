"""The controller of EndpointSlices: writes for each Service with a selector where its pods are.

A pod's change wakes the Services that select it and no others. A look reads the Service's own slices from the server, so that nothing
is made twice while a mirror is behind. Slices go with their Service, which owns them.
"""

import contextlib

from grid.core.errors import NotFound
from grid.sandbox.client import (
    ENDPOINT_SLICES,
    PODS,
    SERVICES,
    Object,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.endpointrules import MANAGED_BY, SERVICE_NAME, SLICE_MANAGER, facts, match, slices
from grid.sandbox.serviceproxy.endpoints import selects
from grid.sandbox.serviceproxy.index import PodIndex, ServiceIndex

# Pods that become ready together are written together.
_BATCH_SECONDS = 0.1


class EndpointsController(QueueController):
    """The controller that keeps EndpointSlices as the pods are."""

    component = "endpoint-slice-controller"
    name = "endpoints"

    def _begin(self) -> None:
        self._services = self._mirrors.of(SERVICES)
        self._by_selector = ServiceIndex()
        self._pods = PodIndex()
        self._services.subscribe(self._service_changed)
        self._mirrors.of(PODS).subscribe(self._pod_changed)
        self._mirrors.of(ENDPOINT_SLICES).subscribe(self._slice_changed)

    def _service_changed(self, old: Object | None, new: Object | None) -> None:
        self._by_selector.changed(old, new)
        self._queue.add(key_of(new or old or {}))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        self._pods.changed(old, new)
        if facts(old) == facts(new):
            return
        for pod in (old, new):
            for service in self._by_selector.candidates(pod) if pod is not None else ():
                if selects(service, pod or {}):
                    self._queue.add_later(key_of(service), _BATCH_SECONDS)

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None and labels_of(old).get(MANAGED_BY) == SLICE_MANAGER:
            self._queue.add(f"{namespace_of(old)}/{labels_of(old).get(SERVICE_NAME, '')}")

    async def _reconcile(self, key: str) -> float | None:
        service = self._services.get(key)
        if service and service["spec"].get("selector") and service["spec"].get("type") != "ExternalName":
            await self._write_slices(service, [pod for pod in self._pods.candidates(service) if selects(service, pod)])
        return None

    async def _write_slices(self, service: Object, pods: list[Object]) -> None:
        path = ENDPOINT_SLICES.path(namespace_of(service))
        selector = f"{SERVICE_NAME}={name_of(service)},{MANAGED_BY}={SLICE_MANAGER}"
        existing = await self._client.list(path, label_selector=selector)
        changed, new, left = match(slices(service, pods), existing)
        owner = {"apiVersion": "v1", "kind": "Service", "name": name_of(service), "uid": uid_of(service)}
        for created in new:
            created["metadata"] |= {
                "generateName": f"{name_of(service)}-",
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            }
            await self._client.create(path, created)
        for before, after in changed:
            metadata = {**before["metadata"], "labels": after["metadata"]["labels"]}
            body = {**before, **after, "metadata": metadata}
            await self._client.update(ENDPOINT_SLICES.path(namespace_of(service), name_of(before)), body)
        for unused in left:
            with contextlib.suppress(NotFound):
                await self._client.delete(ENDPOINT_SLICES.path(namespace_of(service), name_of(unused)))
