"""What is around the pods that have no node, for the message of an execution that gives up. It is needed so seldom that nothing is watched
for it: it is listed when the first one gives up, and kept for those that do so within the next seconds. What a new node of a pool looks
like is read from the database, which remembers it. Without the rights, or an answer in time, nothing is known of the nodes, and the
message has the scheduler's words instead. Of very many pods only the sums by node are kept, so a pod that has rules about other pods is
explained by the scheduler's words there, too."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from grid.core.decoding import prepared
from grid.core.errors import GridError
from grid.core.labels import NODE_POOL
from grid.core.translation import gettext as _
from grid.diagnosis.nodeshapes import NodeTemplate
from grid.diagnosis.placement import SchedulingContext
from grid.diagnosis.placement.obstacles import host_ports
from grid.diagnosis.room import NodeRoom
from grid.kube.api import KubeApi
from grid.kube.listing import read_all, read_chunks, read_claims, read_classes, read_volumes
from grid.kube.objects import ConfigMap, Event, Node, Pod, Volume, VolumeClaim
from grid.kube.pools import (
    AUTOSCALER_NAMESPACE,
    AUTOSCALER_STATUS,
    NodeGroup,
    PoolName,
    cloud_names,
    groups_by_pool,
    node_groups,
)
from grid.kube.resources import CONFIG_MAPS, NODES, PODS

logger = logging.getLogger(__name__)

KEPT_SECONDS = 30.0
LIST_SECONDS = 60.0  # 150,000 pods of 7.3 kB are 1.1 GB
PATIENCE_SECONDS = 10.0  # of a reconcile
MOST_PODS = 30_000  # that are kept, of the sums of all: more would take more memory than the controller has to spare
_ON_NODES = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class _Listed:
    """One list of everything; `scheduling` is None when it failed. `at` is by the clock of pods, `until` by the monotonic one."""

    at: datetime
    until: float
    scheduling: SchedulingContext | None

    def is_after(self, created: datetime | None) -> bool:
        return created is None or created <= self.at


class ClusterSnapshotLister:
    """The last list. Whoever asks meanwhile waits for the same one. `templates` reads what is remembered of the pools' nodes,
    `claim_events` returns what Kubernetes has said of a claim."""

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        *,
        templates: Callable[[], Awaitable[Mapping[str, NodeTemplate]]],
        claim_events: Callable[[VolumeClaim], Sequence[Event]],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._api, self._namespace = api, namespace
        self._templates, self._claim_events = templates, claim_events
        self._clock, self._monotonic = clock, monotonic
        self._last: _Listed | None = None
        self._reading: asyncio.Task[_Listed] | None = None
        self._awaited_until = 0.0
        self._keeps_pods = True

    async def of(self, pod: Pod) -> SchedulingContext | None:
        """Return what is around the pod, from a list that is younger than the pod; None when it is not known."""
        scheduling = await self.since(pod.metadata.creation_timestamp)
        return scheduling if self.can_judge(pod) else None

    async def since(self, created: datetime | None) -> SchedulingContext | None:
        """Return what is around all pods that were created until then; None when it is not known. All who ask wait for the same list, and
        only for its first seconds: they have others' executions to reconcile."""
        last = self._last
        if last is None or self._monotonic() >= last.until or not last.is_after(created):
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
                self._awaited_until = self._monotonic() + PATIENCE_SECONDS
            try:
                async with asyncio.timeout(max(0.0, self._awaited_until - self._monotonic())):
                    last = await asyncio.shield(self._reading)
            except TimeoutError:
                logger.info("nodes not listed for a message reason=not within %s s", PATIENCE_SECONDS)
                return None
        return last.scheduling

    def is_listed_after(self, pod: Pod) -> bool:
        """Return whether the last list was made after the pod."""
        return self._last is not None and self._last.is_after(pod.metadata.creation_timestamp)

    def can_judge(self, pod: Pod) -> bool:
        """Return whether the last list has all that may keep the pod off a node."""
        return self._keeps_pods or not _asks_for_pods(pod)

    @property
    def is_reading(self) -> bool:
        """Return whether a list is under way, which those who ask soon get."""
        return self._reading is not None and not self._reading.done()

    async def close(self) -> None:
        """End a list that is being read."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> _Listed:
        at = self._clock()
        scheduling = await self._listed()
        self._last = _Listed(at, self._monotonic() + KEPT_SECONDS, scheduling)
        return self._last

    async def _listed(self) -> SchedulingContext | None:
        try:
            async with asyncio.timeout(LIST_SECONDS):
                nodes = await read_all(self._api, NODES, Node)
                room, pods = await self._pods()
                self._keeps_pods = pods is not None
                claims, volumes = await self._volumes()
                by_node = dict[str, list[Pod]]()
                for pod in pods or ():
                    by_node.setdefault(pod.spec.node_name, []).append(pod)
                classes, groups = await read_classes(self._api), await self._groups()
                templates = await self._templates()
                remembered = [template.node for template in templates.values()]
                return SchedulingContext(
                    nodes=nodes,
                    pods=lambda: pods or (),
                    pods_on=lambda name: by_node.get(name, ()),
                    room=room,
                    groups=_by_pool(groups, nodes, remembered),
                    templates={pool: template.node for pool, template in templates.items()},
                    templates_own={pool: template.own for pool, template in templates.items()},
                    # Without words it is named, and the execution's owner reads this.
                    holder=lambda pod: _("another pod"),
                    claims=claims,
                    volumes=volumes,
                    classes=classes,
                    claim_events=self._claim_events,
                )
        except (GridError, TimeoutError, msgspec.MsgspecError) as error:
            logger.info("nodes not listed for a message reason=%s", str(error) or "no answer in time")
            return None

    async def _pods(self) -> tuple[NodeRoom, list[Pod] | None]:
        """Return what the pods request on each node, and the pods; None when there are too many."""
        room = NodeRoom()
        kept: list[Pod] | None = []
        async for chunk in read_chunks(self._api, PODS, Pod, field_selector=_ON_NODES):
            for pod in chunk:
                room.pod_changed(None, pod)
            if kept is not None:
                kept += chunk
                if len(kept) > MOST_PODS:
                    kept = None
        return room, kept

    async def _volumes(self) -> tuple[Mapping[str, VolumeClaim] | None, Mapping[str, Volume] | None]:
        try:
            return await read_claims(self._api, self._namespace), await read_volumes(self._api)
        except GridError as error:
            logger.info("volumes not listed for a message reason=%s", error)
            return None, None

    async def _groups(self) -> Mapping[str, NodeGroup] | None:
        """Return the autoscaler's groups; None when there is no autoscaler, or it cannot be read."""
        try:
            status = await self._api.get(CONFIG_MAPS, AUTOSCALER_STATUS, namespace=AUTOSCALER_NAMESPACE)
        except GridError:
            return None
        return node_groups([msgspec.convert(status, prepared(ConfigMap))]) or None


def _by_pool(
    groups: Mapping[str, NodeGroup] | None, nodes: Iterable[Node], remembered: Iterable[Node]
) -> Mapping[str, NodeGroup] | None:
    if groups is None:
        return None
    names = set[PoolName]()
    for each, has_nodes in ((nodes, True), (remembered, False)):
        for labels in (node.metadata.labels for node in each):
            if pool := labels.get(NODE_POOL):
                names.update(cloud_names(pool, labels, has_nodes=has_nodes))
    return groups_by_pool(groups, names)


def _asks_for_pods(pod: Pod) -> bool:
    """Return whether what keeps the pod off a node may be another pod, and not only the sum of what they request."""
    affinity = pod.spec.affinity
    of_pods = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    return of_pods or bool(pod.spec.topology_spread_constraints) or bool(host_ports(pod))
