"""Everything of one web process that lives as long as the process: the cluster's client, the watch caches, the hub.

`start_runtime` is called once by the server's lifespan and returns at once, whether the cluster answers or not; the caches
then fill, and say how fresh they are. Views and consumers ask `get_runtime()`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from grid.kube.api import KubeApi
from grid.kube.objects import ConfigMap, Node, Pod
from grid.labels import KEYS
from grid.metrics.usage import UsageStore
from grid.runtime.executions import ActiveExecutions
from grid.watch.events import EventStore
from grid.watch.hub import Hub
from grid.watch.store import Freshness, Store


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Runtime:
    """What pages read. Built whole by `new_runtime`; tests put objects into its stores themselves."""

    api: KubeApi
    pods: Store[Pod]
    nodes: Store[Node]
    events: EventStore
    config_maps: Store[ConfigMap]
    usage: UsageStore
    executions: ActiveExecutions
    hub: Hub
    clock: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = field(default=time.monotonic)

    def freshness(self) -> Freshness:
        """The worst of the stores: not synced if one is not, as far behind as the one furthest behind."""
        now = self.monotonic()
        each = [store.freshness(now) for store in (self.pods, self.nodes, self.events, self.config_maps)]
        worst = max(each, key=lambda one: (not one.synced, one.behind_seconds, bool(one.error)))
        return Freshness(all(one.synced for one in each), worst.behind_seconds, worst.error)


def new_runtime(
    api: KubeApi, *, clock: Callable[[], datetime] = _now, monotonic: Callable[[], float] = time.monotonic
) -> Runtime:
    """Empty stores around an API; nothing runs yet."""
    hub = Hub()
    return Runtime(
        api=api,
        pods=Store(
            "pods",
            indexes={
                "node": lambda pod: pod.spec.node_name,
                "execution": lambda pod: pod.metadata.labels.get(KEYS.execution, ""),
            },
        ),
        nodes=Store("nodes"),
        events=EventStore(),
        config_maps=Store("config_maps"),
        usage=UsageStore(),
        executions=ActiveExecutions(hub, clock=clock),
        hub=hub,
        clock=clock,
        monotonic=monotonic,
    )


_current: list[Runtime] = []


def get_runtime() -> Runtime:
    """The process's runtime. Raises RuntimeError before it is started."""
    if not _current:
        raise RuntimeError("The runtime is not started; the ASGI server's lifespan does that.")
    return _current[-1]


@contextmanager
def using_runtime(runtime: Runtime) -> Iterator[Runtime]:
    """Make it the one that `get_runtime` returns, for a test."""
    _current.append(runtime)
    try:
        yield runtime
    finally:
        _current.remove(runtime)


async def start_runtime() -> Runtime:
    """Build the runtime from the settings and start filling its caches. Never fails for want of a cluster."""
    raise NotImplementedError


async def stop_runtime() -> None:
    """End all tasks and close the client; nothing happens when it was not started."""
    raise NotImplementedError
