"""The claims, volumes and storage classes of pods that wait for a node.

Where a volume lies matters only while a pod that uses it waits, which is seldom; so they are not watched but listed, while there is such a
pod. The volumes, of which a cluster has thousands, are listed only when such a pod has a claim that is bound to one that was not listed
yet; the storage classes, of which it has a few, whenever such a claim is not bound. Without the right to list them, or without an answer,
they are not known.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import NamedTuple

from grid.core.errors import GridError
from grid.diagnosis.held import is_unplaced
from grid.kube.api import KubeApi
from grid.kube.hub import Hub, Topic
from grid.kube.listing import read_claims, read_classes, read_volumes
from grid.kube.objects import Pod, StorageClass, Volume, VolumeClaim

logger = logging.getLogger(__name__)

TOPIC: Topic = "volumes"
FIRST_SECONDS = 5.0  # in which nearly every pod gets its node
AGAIN_SECONDS = 10.0


class KnownVolumes(NamedTuple):
    """The claims by `namespace/name`, the volumes by name, and the storage classes by name, None when they are not known."""

    claims: Mapping[str, VolumeClaim]
    volumes: Mapping[str, Volume]
    classes: Mapping[str, StorageClass] | None


class VolumeLists:
    """The last lists for `namespace`. `pod_changed` is a listener of the pods' store; `run` until cancelled."""

    def __init__(self, api: KubeApi, namespace: str, hub: Hub) -> None:
        self.version = 0
        self._api, self._namespace, self._hub = api, namespace, hub
        self._known: KnownVolumes | None = None
        self._waiting: dict[str, Pod] = {}  # by uid
        self._sought: frozenset[str] = frozenset()  # the names of the volumes that were asked for, found or not
        self._listed_for: frozenset[str] = frozenset()
        self._come = asyncio.Event()
        self._is_refused = False

    def known_for(self, pod: Pod) -> KnownVolumes | None:
        """Return what is known; None when it was not listed since the pod came: a claim that is not in an older list may exist."""
        return self._known if pod.metadata.uid in self._listed_for else None

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note a pod that begins or ends to wait for a node."""
        if old is not None:
            self._waiting.pop(old.metadata.uid, None)
        if new is None or not new.spec.volumes or new.metadata.namespace != self._namespace:
            return
        if is_unplaced(new):
            self._waiting[new.metadata.uid] = new
            self._come.set()

    async def run(self) -> None:
        while True:
            if not self._waiting:
                self._come.clear()
                self._sought = frozenset()
                await self._come.wait()
            await asyncio.sleep(FIRST_SECONDS)
            if self._waiting:
                await self.list_once()
                await asyncio.sleep(AGAIN_SECONDS)

    async def list_once(self) -> None:
        """List the claims, and the volumes if one is not known yet; publish the topic if anything differs from what was known."""
        before, waiting = (self._known, self._listed_for), frozenset(self._waiting)
        try:
            claims = await read_claims(self._api, self._namespace)
            keys = (
                f"{pod.metadata.namespace}/{volume.claim_of(pod.metadata.name)}"
                for pod in self._waiting.values()
                for volume in pod.spec.volumes
            )
            used = [claims[key] for key in keys if key in claims]
            sought = frozenset(claim.spec.volume_name for claim in used if claim.spec.volume_name)
            known = self._known or KnownVolumes({}, {}, None)
            volumes, classes = known.volumes, known.classes
            if not sought <= self._sought:
                volumes = await read_volumes(self._api)
            if any(not claim.spec.volume_name for claim in used):
                classes = await read_classes(self._api)
            self._known, self._sought = KnownVolumes(claims, volumes, classes), sought
            self._listed_for, self._is_refused = waiting, False
        except GridError as error:
            self._known, self._listed_for, self._sought = None, frozenset(), frozenset()
            if not self._is_refused:
                logger.info("the volumes of waiting pods are not known reason=%s", error)
            self._is_refused = True
        if before != (self._known, self._listed_for):
            self.version += 1
            self._hub.publish(TOPIC)
