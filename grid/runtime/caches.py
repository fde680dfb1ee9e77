"""The caches that a web process keeps of one data plane: the client of its API server, the watch caches, and the loops that fill them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from django.conf import settings

from grid.kube.api import KubeApi
from grid.kube.objects import Autoscaler, ConfigMap, Event, Node, Pod
from grid.kube.resources import AUTOSCALERS, CONFIG_MAPS, EVENTS, NODES, PODS
from grid.labels import MANAGED_BY, MANAGER, Keys
from grid.metrics.poller import UsagePoller
from grid.metrics.sources import UsageSource
from grid.metrics.usage import UsageStore
from grid.runtime.controllerlease import ControllerLease
from grid.watch.events import EventStore
from grid.watch.hub import Hub
from grid.watch.reflector import ListWatch, Reflector
from grid.watch.store import Freshness, HasMetadata, Store, announce

T = TypeVar("T", bound=HasMetadata)
Life = Callable[[], Awaitable[None]]
AUTOSCALER_NAMESPACE = "kube-system"
AUTOSCALER_STATUS = "cluster-autoscaler-status"


@dataclass(frozen=True, slots=True)
class DataPlaneCaches:
    """The caches of one data plane; `new_caches` builds them empty."""

    api: KubeApi
    pods: Store[Pod]
    nodes: Store[Node]
    events: EventStore
    config_maps: Store[ConfigMap]
    autoscalers: Store[Autoscaler]
    usage: UsageStore
    controller: ControllerLease

    def freshness(self, now: float) -> dict[str, Freshness]:
        """Return the freshness of each watch cache, by its name."""
        stores = (self.pods, self.nodes, self.events, self.config_maps, self.autoscalers)
        return {store.name: store.freshness(now) for store in stores}


def awaited_pool(pod: Pod) -> str:
    """Return the pool that a pod without a node asks for; "" when it names none, or waits no more."""
    if pod.spec.node_name or pod.status.phase != "Pending" or pod.metadata.deletion_timestamp is not None:
        return ""
    return pod.spec.node_selector.get(settings.NODE_POOL_LABEL, "")


def new_caches(api: KubeApi, hub: Hub, *, monotonic: Callable[[], float]) -> DataPlaneCaches:
    """Return empty stores around an API, which publish their changes to the hub; nothing runs yet."""
    execution = Keys.under(settings.LABEL_PREFIX).execution
    pods: Store[Pod] = Store(
        "pods",
        indexes={
            "node": lambda pod: pod.spec.node_name,
            "execution": lambda pod: pod.metadata.labels.get(execution, ""),
            "awaited_pool": awaited_pool,
        },
    )
    nodes: Store[Node] = Store(
        "nodes", indexes={"pool": lambda node: node.metadata.labels.get(settings.NODE_POOL_LABEL, "")}
    )
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
    return DataPlaneCaches(api, pods, nodes, events, config_maps, autoscalers, UsageStore(), controller)


def followers(
    caches: DataPlaneCaches, usage: UsageSource, hub: Hub, *, monotonic: Callable[[], float]
) -> dict[str, Life]:
    """Return the loops that keep the caches up to date, by name."""

    def follow(feed: ListWatch[T], store: Store[T]) -> Life:
        return Reflector(caches.api, feed, store, hub, clock=monotonic).run

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
        "usage": UsagePoller(usage, caches.usage, hub.publish).run,
    }
