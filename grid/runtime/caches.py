"""The caches that a web process keeps of one data plane: the client of its API server, the watch caches, and the loops that fill them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from django.conf import settings

from grid.core.errors import GridError
from grid.core.labels import KEYS, MANAGED_BY, MANAGER, NODE_POOL
from grid.core.workqueue import in_slices
from grid.database.periodic import PeriodicTask, RunsIn
from grid.database.threads import background
from grid.diagnosis.held import is_unplaced
from grid.diagnosis.nodeshapes import NodeTemplate, PoolShapes, ShapeTally
from grid.diagnosis.requests import has_ended, is_placeholder
from grid.diagnosis.resources import ResourceAmounts
from grid.diagnosis.room import NodeRoom
from grid.diagnosis.shortages import NamespaceLimits
from grid.kube.api import KubeApi
from grid.kube.events import EventStore
from grid.kube.hub import Hub, Topic
from grid.kube.limits import LimitRange, ResourceQuota
from grid.kube.listing import read_all
from grid.kube.objects import Autoscaler, ConfigMap, Event, Node, Pod
from grid.kube.pools import (
    AUTOSCALER_NAMESPACE,
    AUTOSCALER_STATUS,
    NodeGroups,
    PoolName,
    cloud_names,
    names_as_text,
    names_from_text,
)
from grid.kube.reflector import ListWatch, Reflector
from grid.kube.resources import AUTOSCALERS, CONFIG_MAPS, EVENTS, LIMIT_RANGES, NODES, PODS, RESOURCE_QUOTAS
from grid.kube.store import Freshness, HasMetadata, Store, announce
from grid.metrics.sources import UsagePoller, UsageSource
from grid.metrics.usage import UsageStore
from grid.runtime.contention import ContentionWatch
from grid.runtime.controllerlease import ControllerLease
from grid.runtime.roomchanges import RoomChanges
from grid.runtime.volumelists import VolumeLists
from grid.tiers.pooltemplates import Row, read, templates_of

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)
Life = Callable[[], Awaitable[None]]

TEMPLATES_TOPIC: Topic = "pool templates"
TEMPLATES_SECONDS = 60.0
REMEMBERED_SECONDS = 30.0  # the limits of the namespace
ANSWER_SECONDS = 3.0  # longer than that nobody waits for a form
NODES_AT_ONCE = 200  # whose shapes are counted, some 2 ms of the loop


class PoolTemplates:
    """What the database remembers of each pool's nodes (`grid.tiers.pooltemplates`), as last read; `version` rises with each change."""

    def __init__(self, hub: Hub) -> None:
        self.version = 0
        self.nodes: Mapping[str, Node] = {}
        self.own: Mapping[str, ResourceAmounts] = {}
        self._hub = hub
        self._templates: Mapping[str, NodeTemplate] = {}
        self._rows: list[Row] = []

    def get(self, pool: str) -> NodeTemplate | None:
        return self._templates.get(pool)

    def take(self, templates: Mapping[str, NodeTemplate]) -> None:
        """Know these from now on, and publish the topic if that is a change."""
        if templates == self._templates:
            return
        self._templates = dict(templates)
        self.nodes = {pool: template.node for pool, template in templates.items()}
        self.own = {pool: template.own for pool, template in templates.items()}
        self.version += 1
        self._hub.publish(TEMPLATES_TOPIC)

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("pool templates", TEMPLATES_SECONDS, self.run_once, RunsIn.EVERY_PROCESS)

    async def run_once(self) -> None:
        """Read what is stored. After a failure, what was known stays known."""
        rows = await background.run(read)
        if rows != self._rows:
            self.take(templates_of(rows))
            self._rows = rows


class NamespaceLimitsReader:
    """Reads the ResourceQuotas and LimitRanges of one namespace when somebody asks: both are so rare that a watch would cost more."""

    def __init__(self, api: KubeApi, namespace: str, *, monotonic: Callable[[], float]) -> None:
        self._api, self._namespace, self._monotonic = api, namespace, monotonic
        self._known: NamespaceLimits | None = None
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    async def get(self) -> NamespaceLimits | None:
        """Return the limits of at most half a minute ago; None when they cannot be read."""
        async with self._reading:  # many forms at once ask the cluster once
            now = self._monotonic()
            if self._read_at is None or now - self._read_at >= REMEMBERED_SECONDS:
                self._known, self._read_at = await self._read(), now
            return self._known

    async def _read(self) -> NamespaceLimits | None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                asked = (
                    read_all(self._api, RESOURCE_QUOTAS, ResourceQuota, namespace=self._namespace),
                    read_all(self._api, LIMIT_RANGES, LimitRange, namespace=self._namespace),
                )  # at once, since each answer may take seconds
                quotas, ranges = await asyncio.gather(*asked, return_exceptions=True)
            if isinstance(quotas, BaseException):
                raise quotas
            if isinstance(ranges, BaseException):
                raise ranges
            return NamespaceLimits(tuple(quotas), tuple(ranges))
        except (GridError, TimeoutError, msgspec.DecodeError) as error:
            logger.debug("limits of the namespace not read reason=%s", error)
            return None


def awaited_pool(pod: Pod) -> str:
    """Return the pool that a pod without a node asks for; "" when it names none, waits no more, or is a placeholder."""
    return asked_pool(pod) if is_unplaced(pod) and not is_placeholder(pod) else ""


def warm_pool(pod: Pod) -> str:
    """Return the pool that a placeholder keeps warm; "" for other pods, and for one that has ended."""
    return asked_pool(pod) if is_placeholder(pod) and not has_ended(pod) else ""


def asked_pool(pod: Pod) -> str:
    return pod.spec.node_selector.get(NODE_POOL, "")


def pool_of(node: Node) -> str:
    return node.metadata.labels.get(NODE_POOL, "")


def id_of(pod: Pod) -> str:
    """Return the execution's id, "" for another pod; outside the executions' namespace others may write such labels."""
    if pod.metadata.namespace != settings.GRID_NAMESPACE:
        return ""
    return pod.metadata.labels.get(KEYS.execution, "")


def share_unchanged(pod: Pod, known: Pod) -> None:
    """Let a changed pod have the spec and the labels of what it was before, if equal: by identity readers see that they stayed."""
    if pod.spec == known.spec:
        msgspec.structs.force_setattr(pod, "spec", known.spec)
    if pod.metadata.labels == known.metadata.labels:
        msgspec.structs.force_setattr(pod.metadata, "labels", known.metadata.labels)


class DataPlaneCaches:
    """The caches of one data plane: empty stores around its API, which publish their changes to the hub; nothing runs yet."""

    def __init__(self, api: KubeApi, hub: Hub, *, monotonic: Callable[[], float]) -> None:
        namespace = settings.GRID_NAMESPACE
        self.api, self._hub, self._monotonic = api, hub, monotonic
        self.pods: Store[Pod] = Store(
            "pods",
            indexes={
                "node": lambda pod: pod.spec.node_name,
                "execution": lambda pod: pod.metadata.labels.get(KEYS.execution, ""),
                "awaited_pool": awaited_pool,
                "warm_pool": warm_pool,
            },
            share=share_unchanged,
        )
        self.nodes: Store[Node] = Store(
            "nodes",
            has_heartbeats=True,
            indexes={"pool": pool_of, "node_group": lambda node: names_as_text(pool_of(node), node.metadata.labels)},
        )
        self.events = EventStore()
        self.config_maps: Store[ConfigMap] = Store("config_maps")
        self.autoscalers: Store[Autoscaler] = Store(
            "autoscalers", indexes={"execution": lambda autoscaler: autoscaler.metadata.labels.get(KEYS.execution, "")}
        )
        self.room, self.room_changes = NodeRoom(), RoomChanges(self.nodes, hub)
        self.templates, self.volumes = PoolTemplates(hub), VolumeLists(api, namespace, hub)
        # The room before all others, so that whoever hears of a change reads its sums.
        for listener in (self.room.pod_changed, self.room_changes.pod_changed, self.volumes.pod_changed):
            self.pods.subscribe(listener)
        self.nodes.subscribe(self.room_changes.node_changed)
        self._stores: tuple[Store[Any], ...] = (self.pods, self.nodes, self.events, self.config_maps, self.autoscalers)
        announce(self.pods, hub)
        announce(self.nodes, hub)
        announce(self.events, hub)
        announce(self.config_maps, hub)
        announce(self.autoscalers, hub)
        self.groups = NodeGroups(self.config_maps, names=self._group_names, version=self._groups_version)
        self.usage = UsageStore(monotonic)
        self.contention = ContentionWatch(self.pods, self.nodes, self.usage, hub.publish, execution_of=id_of)
        self.controller = ControllerLease(api, namespace, monotonic=monotonic, heard=self._heard)
        self.limits = NamespaceLimitsReader(api, namespace, monotonic=monotonic)

    def freshness(self, now: float) -> dict[str, Freshness]:
        return {store.name: store.freshness(now) for store in self._stores}

    def _heard(self) -> float | None:
        return max((store.heard_at for store in self._stores if store.heard_at is not None), default=None)

    def _group_names(self) -> list[PoolName]:
        """Return the names of the pools that have nodes, had some, or are waited for."""
        known = [name for text in self.nodes.values_of("node_group") for name in names_from_text(text)]
        for pool, node in self.templates.nodes.items():
            known += cloud_names(pool, node.metadata.labels, has_nodes=False)
        return known + [PoolName(pool, has_nodes=False) for pool in self.pods.values_of("awaited_pool")]

    def _groups_version(self) -> tuple[int, int, frozenset[str]]:
        awaited = frozenset(self.pods.values_of("awaited_pool"))
        return self.room_changes.nodes_version, self.templates.version, awaited

    def followers(self, usage: UsageSource) -> dict[str, Life]:
        """Return the loops that keep the caches up to date, by name."""

        def follow(feed: ListWatch[T], store: Store[T]) -> Life:
            return Reflector(self.api, feed, store, self._hub, clock=self._monotonic).run

        def publish_usage(topic: str) -> None:
            self.contention.measured()
            self._hub.publish(topic)

        named = f"metadata.name={AUTOSCALER_STATUS}"
        status = ListWatch(CONFIG_MAPS, ConfigMap, AUTOSCALER_NAMESPACE, field_selector=named)
        scaling = ListWatch(AUTOSCALERS, Autoscaler, settings.GRID_NAMESPACE, f"{MANAGED_BY}={MANAGER}")
        return {
            "pods": follow(ListWatch(PODS, Pod), self.pods),
            "nodes": follow(ListWatch(NODES, Node), self.nodes),
            "events": follow(ListWatch(EVENTS, Event), self.events),
            "config_maps": follow(status, self.config_maps),
            "autoscalers": follow(scaling, self.autoscalers),
            "controller lease": self.controller.run,
            "volumes": self.volumes.run,
            "contention": self.contention.run,
            "usage": UsagePoller(usage, self.usage, publish_usage).run,
        }


async def pool_shapes(caches: DataPlaneCaches, *, only: str | None = None) -> dict[str, PoolShapes]:
    """Return every pool that has nodes or may get some; with `only`, the nodes of that pool alone are counted."""
    groups = caches.groups.by_pool()
    tallies = {name: ShapeTally() for name in groups}
    for pool in list(caches.nodes.values_of("pool")):
        tally = tallies.setdefault(pool, ShapeTally())
        if only is not None and pool != only:
            continue
        async for node in in_slices(caches.nodes.by("pool", pool), NODES_AT_ONCE):
            tally.count(node, caches.room.own(node.metadata.name))
    pools = {}
    for name in sorted(tallies):
        maximum, template = groups[name].maximum if name in groups else 0, caches.templates.get(name)
        pools[name] = PoolShapes(name, tallies[name].shapes(), maximum)
        if template is not None:
            pools[name] = replace(pools[name], remembered=template.shape, seen=template.seen)
    return pools
