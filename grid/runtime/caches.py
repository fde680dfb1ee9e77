"""The caches that a web process keeps of one data plane: the client of its API server, the watch caches, and the loops that fill them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from django.conf import settings

from grid.core.labels import MANAGED_BY, MANAGER, Keys
from grid.diagnosis.held import is_unplaced
from grid.diagnosis.requests import has_ended, is_placeholder
from grid.diagnosis.room import NodeRoom
from grid.kube.api import KubeApi
from grid.kube.events import EventStore
from grid.kube.hub import Hub
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
from grid.kube.resources import AUTOSCALERS, CONFIG_MAPS, EVENTS, NODES, PODS
from grid.kube.store import Freshness, HasMetadata, Store, announce
from grid.metrics.poller import UsagePoller
from grid.metrics.sources import UsageSource
from grid.metrics.usage import UsageStore
from grid.runtime.contention import ContentionWatch
from grid.runtime.controllerlease import ControllerLease
from grid.runtime.namespacelimits import NamespaceLimitsReader
from grid.runtime.pooltemplates import PoolTemplates
from grid.runtime.roomchanges import RoomChanges
from grid.runtime.volumelists import VolumeLists

T = TypeVar("T", bound=HasMetadata)
Life = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class DataPlaneCaches:
    """The caches of one data plane; `new_caches` builds them empty."""

    api: KubeApi
    pods: Store[Pod]
    room: NodeRoom
    room_changes: RoomChanges
    volumes: VolumeLists
    nodes: Store[Node]
    events: EventStore
    config_maps: Store[ConfigMap]
    groups: NodeGroups
    autoscalers: Store[Autoscaler]
    usage: UsageStore
    contention: ContentionWatch
    controller: ControllerLease
    limits: NamespaceLimitsReader
    templates: PoolTemplates

    def freshness(self, now: float) -> dict[str, Freshness]:
        """Return the freshness of each watch cache, by its name."""
        stores = (self.pods, self.nodes, self.events, self.config_maps, self.autoscalers)
        return {store.name: store.freshness(now) for store in stores}


def awaited_pool(pod: Pod) -> str:
    """Return the pool that a pod without a node asks for; "" when it names none, waits no more, or is a placeholder."""
    return asked_pool(pod) if is_unplaced(pod) and not is_placeholder(pod) else ""


def warm_pool(pod: Pod) -> str:
    """Return the pool that a placeholder keeps warm; "" for other pods, and for one that has ended."""
    return asked_pool(pod) if is_placeholder(pod) and not has_ended(pod) else ""


def asked_pool(pod: Pod) -> str:
    """Return the pool that the pod names, "" for none."""
    return pod.spec.node_selector.get(settings.NODE_POOL_LABEL, "")


def pool_of(node: Node) -> str:
    """Return the node's pool, "" for none."""
    return node.metadata.labels.get(settings.NODE_POOL_LABEL, "")


def id_of(pod: Pod) -> str:
    """Return the execution's id from the pod's label, "" for another pod. Labels are trusted in the executions' namespace only: elsewhere
    others may write them."""
    if pod.metadata.namespace != settings.GRID_NAMESPACE:
        return ""
    return pod.metadata.labels.get(Keys.under(settings.LABEL_PREFIX).execution, "")


def share_unchanged(pod: Pod, known: Pod) -> None:
    """Let a changed pod have the spec and the labels of what it was before, if equal: by identity readers see that they stayed."""
    if pod.spec == known.spec:
        msgspec.structs.force_setattr(pod, "spec", known.spec)
    if pod.metadata.labels == known.metadata.labels:
        msgspec.structs.force_setattr(pod.metadata, "labels", known.metadata.labels)


def new_caches(api: KubeApi, hub: Hub, *, monotonic: Callable[[], float]) -> DataPlaneCaches:
    """Return empty stores around an API, which publish their changes to the hub; nothing runs yet."""
    execution = Keys.under(settings.LABEL_PREFIX).execution
    pods: Store[Pod] = Store(
        "pods",
        indexes={
            "node": lambda pod: pod.spec.node_name,
            "execution": lambda pod: pod.metadata.labels.get(execution, ""),
            "awaited_pool": awaited_pool,
            "warm_pool": warm_pool,
        },
        share=share_unchanged,
    )
    room = NodeRoom()
    pods.subscribe(room.pod_changed)  # before all others, so that whoever hears of a change reads its sums
    nodes: Store[Node] = Store(
        "nodes",
        indexes={"pool": pool_of, "node_group": lambda node: names_as_text(pool_of(node), node.metadata.labels)},
    )
    changes = RoomChanges(nodes, hub, pool_label=settings.NODE_POOL_LABEL)
    templates = PoolTemplates(hub)
    volumes = VolumeLists(api, settings.GRID_NAMESPACE, hub)
    pods.subscribe(changes.pod_changed)
    nodes.subscribe(changes.node_changed)
    pods.subscribe(volumes.pod_changed)
    usage = UsageStore(monotonic)
    events = EventStore()
    config_maps: Store[ConfigMap] = Store("config_maps")
    autoscalers: Store[Autoscaler] = Store(
        "autoscalers", indexes={"execution": lambda autoscaler: autoscaler.metadata.labels.get(execution, "")}
    )
    announce(pods, hub)
    announce(nodes, hub)
    announce(events, hub)
    announce(config_maps, hub)
    announce(autoscalers, hub)

    def heard() -> float | None:
        each = (store.heard_at for store in (pods, nodes, events, config_maps, autoscalers))
        return max((at for at in each if at is not None), default=None)

    controller = ControllerLease(api, settings.GRID_NAMESPACE, monotonic=monotonic, heard=heard)
    return DataPlaneCaches(
        api=api,
        pods=pods,
        room=room,
        room_changes=changes,
        volumes=volumes,
        nodes=nodes,
        events=events,
        config_maps=config_maps,
        groups=_node_groups(config_maps, nodes, pods, changes, templates),
        autoscalers=autoscalers,
        usage=usage,
        contention=ContentionWatch(pods, nodes, usage, hub.publish, execution_of=id_of),
        controller=controller,
        limits=NamespaceLimitsReader(api, settings.GRID_NAMESPACE, monotonic=monotonic),
        templates=templates,
    )


def _node_groups(
    config_maps: Store[ConfigMap], nodes: Store[Node], pods: Store[Pod], changes: RoomChanges, templates: PoolTemplates
) -> NodeGroups:
    """Return the groups by the pools that have nodes, had some, or are waited for."""

    def names() -> list[PoolName]:
        known = [name for text in nodes.values_of("node_group") for name in names_from_text(text)]
        for pool, node in templates.nodes.items():
            known += cloud_names(pool, node.metadata.labels, has_nodes=False)
        return known + [PoolName(pool, has_nodes=False) for pool in pods.values_of("awaited_pool")]

    def version() -> tuple[int, int, frozenset[str]]:
        return changes.nodes_version, templates.version, frozenset(pods.values_of("awaited_pool"))

    return NodeGroups(config_maps, names=names, version=version)


def followers(
    caches: DataPlaneCaches, usage: UsageSource, hub: Hub, *, monotonic: Callable[[], float]
) -> dict[str, Life]:
    """Return the loops that keep the caches up to date, by name."""

    def follow(feed: ListWatch[T], store: Store[T]) -> Life:
        return Reflector(caches.api, feed, store, hub, clock=monotonic).run

    def publish_usage(topic: str) -> None:
        caches.contention.measured()
        hub.publish(topic)

    status = ListWatch(
        CONFIG_MAPS, ConfigMap, AUTOSCALER_NAMESPACE, field_selector=f"metadata.name={AUTOSCALER_STATUS}"
    )
    scaling = ListWatch(AUTOSCALERS, Autoscaler, settings.GRID_NAMESPACE, f"{MANAGED_BY}={MANAGER}")
    return {
        "pods": follow(ListWatch(PODS, Pod), caches.pods),
        "nodes": follow(ListWatch(NODES, Node), caches.nodes),
        "events": follow(ListWatch(EVENTS, Event), caches.events),
        "config_maps": follow(status, caches.config_maps),
        "autoscalers": follow(scaling, caches.autoscalers),
        "controller lease": caches.controller.run,
        "volumes": caches.volumes.run,
        "contention": caches.contention.run,
        "usage": UsagePoller(usage, caches.usage, publish_usage).run,
    }
