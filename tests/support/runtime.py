"""A runtime over the fake cluster, filled from it at once and with no task running."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from asgiref.sync import async_to_sync

from grid.controller.leader import LEASE
from grid.kube.objects import Autoscaler, ConfigMap, Event, Node, Pod
from grid.kube.resources import AUTOSCALERS, CONFIG_MAPS, EVENTS, LEASES, NODES, PODS, Resource
from grid.kube.store import HasMetadata, Store
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, _current, new_runtime
from tests.support.builders import MOMENT, NAMESPACE, decode
from tests.support.cluster import FakeCluster

T = TypeVar("T", bound=HasMetadata)


@contextmanager
def using_runtime(runtime: Runtime) -> Iterator[Runtime]:
    """Make `get_runtime` return this runtime."""
    _current.append(runtime)
    try:
        yield runtime
    finally:
        _current.remove(runtime)


def become(store: Store[T], objects: Iterable[T]) -> None:
    """Make the store hold exactly these objects, as after a list."""
    listed = {item.metadata.key: item for item in objects}
    for key in store.keys() - listed.keys():
        store.discard(key)
    for item in listed.values():
        store.apply(item)


def runtime_of(cluster: FakeCluster, *, now: datetime | None = None) -> Runtime:
    """`now` stops its clock."""
    runtime = new_runtime({LOCAL: cluster}, clock=lambda: now or datetime.now(UTC))
    fill(runtime, cluster)
    return runtime


def fill(runtime: Runtime, cluster: FakeCluster) -> None:
    """Copy the cluster into the stores, as the reflectors would, and publish what changed."""

    def copy(store: Store[T], resource: Resource, kind: type[T]) -> None:
        before = store.version
        become(store, (decode(obj, kind) for obj in cluster.objects(resource)))
        if store.version != before:
            runtime.hub.publish(store.name)
        store.mark_synced(runtime.monotonic())

    copy(runtime.pods, PODS, Pod)
    copy(runtime.nodes, NODES, Node)
    copy(runtime.events, EVENTS, Event)
    copy(runtime.config_maps, CONFIG_MAPS, ConfigMap)
    copy(runtime.autoscalers, AUTOSCALERS, Autoscaler)


def renew_lease(runtime: Runtime, cluster: FakeCluster, *, at: datetime = MOMENT) -> None:
    """A controller has just renewed its Lease, and the process of the pages has seen that."""
    spec = {"holderIdentity": "host-1", "renewTime": f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"}
    cluster.put(LEASES, {"metadata": {"name": LEASE, "namespace": NAMESPACE}, "spec": spec})
    ask_for_lease(runtime)


def ask_for_lease(runtime: Runtime) -> None:
    (plane,) = runtime.data_planes.values()
    async_to_sync(plane.controller.ask)()
