"""Everything of a web process that lives as long as the process: the client and the watch caches of each data plane, and the hub.

`start_runtime` is called once by the server's lifespan and returns at once, whether the cluster answers or not; the caches then fill, and
report their freshness. Views and pages call `get_runtime()`.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Generic, NoReturn, TypeVar

from django.conf import settings

from grid.core.errors import GridError, NotAllowed, NotFound
from grid.database import threads as database
from grid.database.changefeed import ChangeFeed, feed_of
from grid.database.periodic import PeriodicRunner
from grid.database.trouble import TroubleLog
from grid.dataplanes import api_of, data_planes
from grid.kube.api import KubeApi
from grid.kube.hub import Hub
from grid.kube.objects import ConfigMap
from grid.kube.reflector import ListWatch, Reflector
from grid.kube.resources import CONFIG_MAPS
from grid.kube.store import Freshness, Store
from grid.metrics.external import Authority, ServiceReference
from grid.metrics.sources import MetricsApi, Prometheus, UsageSource, WithFallback
from grid.models.dataplane import LOCAL
from grid.runtime.caches import DataPlaneCaches, Life
from grid.runtime.controllerlease import ControllerAway
from grid.runtime.demand import FRONT_PROXY_NAME, FRONT_PROXY_NAMESPACE, DemandServer, front_proxy_of
from grid.runtime.executions import ActiveExecutions
from grid.runtime.explaining import PodExplainer
from grid.runtime.garbage import set_aside
from grid.runtime.metrics import CacheCollector, MetricsEndpoint
from grid.runtime.periodictasks import periodic_tasks

PUBLIC = (
    "caches", "contention", "controllerlease", "executionrows", "executions", "garbage", "metrics", "periodictasks", "roomchanges",
    "starts", "written",
)  # fmt: skip

logger = logging.getLogger(__name__)

RESTART_SECONDS = 5.0
T = TypeVar("T")
_now = partial(datetime.now, UTC)


class _Local(Generic[T]):
    """An attribute of a runtime that is a part of its only data plane's caches."""

    def __init__(self, part: Callable[[DataPlaneCaches], T]) -> None:
        self._part = part

    def __get__(self, runtime: "Runtime", owner: type) -> T:
        return self._part(runtime.data_planes[LOCAL])

    def __set__(self, runtime: "Runtime", value: T) -> NoReturn:
        raise AttributeError("change the data plane's caches")  # an attribute of its own would differ from theirs


@dataclass
class Runtime:
    """The state that pages read, built by `new_runtime`; tests put objects into its stores themselves. Its stores and its client are those
    of the only data plane."""

    data_planes: Mapping[str, DataPlaneCaches]
    executions: ActiveExecutions
    hub: Hub
    periodic: PeriodicRunner
    clock: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = time.monotonic
    has_sandbox: bool = False  # True once the embedded cluster itself has answered

    @cached_property
    def explainer(self) -> PodExplainer:
        return PodExplainer(self._local, self.executions)

    _local = _Local(lambda caches: caches)
    api = _Local(lambda caches: caches.api)
    pods = _Local(lambda caches: caches.pods)
    room = _Local(lambda caches: caches.room)
    room_changes = _Local(lambda caches: caches.room_changes)
    nodes = _Local(lambda caches: caches.nodes)
    events = _Local(lambda caches: caches.events)
    config_maps = _Local(lambda caches: caches.config_maps)
    groups = _Local(lambda caches: caches.groups)
    autoscalers = _Local(lambda caches: caches.autoscalers)
    usage = _Local(lambda caches: caches.usage)
    contention = _Local(lambda caches: caches.contention)
    templates = _Local(lambda caches: caches.templates)
    # To be called and awaited: the quotas and limit ranges of the executions' namespace; None when they cannot be read.
    limits = _Local(lambda caches: caches.limits.get)

    def caches(self) -> dict[str, Freshness]:
        return self._local.freshness(self.monotonic())

    def controller_away(self) -> ControllerAway | None:
        return self._local.controller.away(self.monotonic())

    def controller_state(self) -> tuple[ControllerAway | None, bool, str]:
        """Return what `controller_away` does, whether it can tell, and why its Lease cannot be read."""
        return self.controller_away(), self._local.controller.is_known, self._local.controller.unreadable

    def freshness(self) -> Freshness:
        """Return the worst freshness of the caches: unsynced if any is, and the longest time since a failure began. When the API server
        hangs, its silence is known before the watches end; silence counts more than what it refused before."""
        each = [*self.caches().values(), self._local.controller.freshness(self.monotonic())]
        worst = max(each, key=lambda cache: cache.weight)
        behind = max(cache.behind_seconds for cache in each)
        return replace(worst, synced=all(cache.synced for cache in each), behind_seconds=behind)


def new_runtime(
    apis: Mapping[str, KubeApi],
    *,
    clock: Callable[[], datetime] = _now,
    monotonic: Callable[[], float] = time.monotonic,
    feed: ChangeFeed | None = None,
) -> Runtime:
    """Return empty stores around the API of each data plane, given by its id; nothing runs yet."""
    hub = Hub()
    return Runtime(
        data_planes={id: DataPlaneCaches(api, hub, monotonic=monotonic) for id, api in apis.items()},
        executions=ActiveExecutions(hub, clock=clock, feed=feed),
        hub=hub,
        periodic=PeriodicRunner(TroubleLog(monotonic), clock=clock, rng=random.Random()),
        clock=clock,
        monotonic=monotonic,
    )


_current: list[Runtime] = []
_running: list["StartedRuntime"] = []


def get_runtime() -> Runtime:
    """Return the process's runtime. Raise RuntimeError before it is started."""
    if not _current:
        raise RuntimeError("The runtime is not started; the ASGI server's lifespan does that.")
    return _current[-1]


def has_sandbox() -> bool:
    """Return True when the cluster is known to be the embedded one; False before the runtime is started."""
    return bool(_current) and _current[-1].has_sandbox


async def start_runtime(of_pages: Mapping[str, Callable[[Runtime], Awaitable[None]]] = {}) -> Runtime:
    """Build the runtime from the settings, start filling its caches and return it; return the running one if there is one. `of_pages` are
    loops that run with it, by name. Never fails because of an unreachable cluster: the stores then say what is wrong, and fill once it
    answers. Raise UnsupportedDataPlanes."""
    if _running:
        return _running[-1].runtime
    runtime = new_runtime({id: api_of(id) for id in await database.background.run(data_planes)}, feed=feed_of())
    servers: list[DemandServer | MetricsEndpoint] = []
    lives = lives_of(runtime, usage_source_of)
    lives["periodic tasks"] = partial(runtime.periodic.run, periodic_tasks(runtime))
    lives |= {name: partial(life, runtime) for name, life in of_pages.items()}
    lives["garbage"] = partial(set_aside, lambda: runtime.freshness().synced)
    if settings.DEMAND_PORT:
        demand, demand_lives = _demand_of(runtime)
        await demand.start(settings.DEMAND_HOST, settings.DEMAND_PORT)
        servers.append(demand)
        lives |= demand_lives
    if settings.METRICS_PORT:
        metrics = MetricsEndpoint(CacheCollector(runtime.caches))
        lives["loop"] = metrics.loop_watch.run
        await metrics.start(settings.METRICS_HOST, settings.METRICS_PORT)
        servers.append(metrics)
    _running.append(StartedRuntime(runtime, started(lives), servers))
    _current.append(runtime)
    return runtime


def usage_source_of(api: KubeApi) -> WithFallback | MetricsApi:
    of_cluster = MetricsApi(api)
    return WithFallback(Prometheus(settings.PROMETHEUS_URL), of_cluster) if settings.PROMETHEUS_URL else of_cluster


def _demand_of(runtime: Runtime) -> tuple[DemandServer, dict[str, Life]]:
    """Return the server of the external metrics, and the loops that keep it up to date."""
    config: Store[ConfigMap] = Store("front_proxy")
    named = f"metadata.name={FRONT_PROXY_NAME}"
    feed = ListWatch(CONFIG_MAPS, ConfigMap, FRONT_PROXY_NAMESPACE, field_selector=named)
    server = DemandServer(
        runtime.autoscalers,
        lambda: front_proxy_of(config.get(f"{FRONT_PROXY_NAMESPACE}/{FRONT_PROXY_NAME}")),
        namespace=settings.GRID_NAMESPACE,
        authority=Authority(settings.SECRET_KEY),
        host=ServiceReference.parse(settings.DEMAND_SERVICE).host,
        clock=runtime.clock,
    )
    follow = Reflector(runtime.api, feed, config, runtime.hub, clock=runtime.monotonic)
    return server, {"front_proxy": follow.run, "demand": server.run}


async def stop_runtime() -> None:
    """End all tasks and close the client; do nothing when the runtime was not started."""
    while _running:
        running = _running.pop()
        _current.remove(running.runtime)
        await running.stop()


@dataclass
class StartedRuntime:
    """A running runtime with the tasks that keep it up to date."""

    runtime: Runtime
    tasks: list["asyncio.Task[None]"]
    servers: Sequence[DemandServer | MetricsEndpoint] = ()

    async def stop(self) -> None:
        for server in self.servers:
            await server.stop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for caches in self.runtime.data_planes.values():
            await caches.api.close()


def lives_of(runtime: Runtime, usage_source: Callable[[KubeApi], UsageSource]) -> dict[str, Life]:
    """Return the loops that keep the runtime up to date, by name."""
    lives: dict[str, Life] = {"executions": runtime.executions.run}
    for id, caches in runtime.data_planes.items():
        followers = caches.followers(usage_source(caches.api))
        lives |= {f"{name} of {id}": life for name, life in followers.items()}
    if settings.DEMO:
        lives["sandbox"] = partial(look_for_sandbox, runtime)
    return lives


async def look_for_sandbox(runtime: Runtime, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Ask until the cluster answers whether it is the embedded one; the answer holds as long as the process lives."""
    while True:
        try:
            await runtime.api.ask_sandbox("GET", "population")
            runtime.has_sandbox = True
            break
        except (NotFound, NotAllowed):
            break
        except GridError:
            await sleep(RESTART_SECONDS)
    await asyncio.Event().wait()


def started(lives: Mapping[str, Life]) -> list["asyncio.Task[None]"]:
    return [asyncio.create_task(supervised(name, life), name=f"runtime {name}") for name, life in lives.items()]


async def supervised(name: str, life: Life) -> None:
    """Run the loop again when it ends. Loops retry by themselves, so an end is a bug: it is logged as critical, but the process goes on."""
    while True:
        try:
            await life()
            logger.critical("a loop of the runtime returned, starting it again name=%s", name)
        except Exception:
            logger.critical("a loop of the runtime failed, starting it again name=%s", name, exc_info=True)
        await asyncio.sleep(RESTART_SECONDS)
