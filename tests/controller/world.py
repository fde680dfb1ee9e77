"""A controller, a cluster in memory with a kubelet that does its work when told to, and a clock that a test moves.

`step` is one round of everything: caches as fresh as the watch would make them, one poll, all the work. Nothing runs by itself.
"""

import functools
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ParamSpec, cast

import pytest
from django.db import connections

from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import FrameworkAdapter
from grid.controller.controller import Controller
from grid.controller.downtime import Downtime
from grid.core.labels import APP_COMPONENT, HEAD, KEYS, WORKER
from grid.database.seam import Databases
from grid.executions.context import LaunchTarget
from grid.kube.api import KubeApi
from grid.kube.objects import Autoscaler, Event, Pod, RawObject
from grid.kube.resources import AUTOSCALERS, DEPLOYMENTS, EVENTS, PODS
from grid.models import Execution, LifecycleEntry
from grid.models.dataplane import LOCAL
from tests.clusters.deployments import Deployments
from tests.support.builders import NAMESPACE, condition, container_status, decode, event, stamp
from tests.support.cluster import FakeCluster
from tests.support.runtime import become
from tests.support.shop import NOW, Shop
from tests.support.virtual import virtual_time

P = ParamSpec("P")


def in_world(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """An async test in virtual time whose queries run on the test's own connection, in its transaction and thread."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        connection = connections["default"]

        @virtual_time
        async def inside() -> None:
            connections["default"] = connection  # in a running loop each task has connections of its own
            await test(*args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
            inside()

    return run


class Killed(BaseException):
    """The process is gone; no `except Exception` hears of it."""


@dataclass
class Fault:
    """Kills at the n-th call, before it has its effect or after."""

    at: int = 0  # 0: never
    after: bool = False
    calls: int = 0

    async def run(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self.calls += 1
        kill = self.calls == self.at
        if kill and not self.after:
            raise Killed
        result = await call()
        if kill:
            raise Killed
        return result


class FaultyApi:
    """The cluster as seen by a process that may be killed in any call."""

    def __init__(self, cluster: FakeCluster, fault: Fault) -> None:
        self._cluster = cluster
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cluster, name)
        if name in ("watch", "logs"):
            return method
        return lambda *args, **kwargs: self._fault.run(lambda: method(*args, **kwargs))


@dataclass
class World:
    """`behave` plays scheduler and kubelet; a test may also change `cluster` by hand."""

    now: datetime = NOW
    cluster: FakeCluster = field(init=False)
    deployments: Deployments = field(init=False)
    fault: Fault = field(default_factory=Fault)
    most_pods: int = 0
    wanted: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster = FakeCluster(clock=lambda: self.now)
        self.deployments = Deployments(self.cluster)

    def controller(
        self,
        fault: Fault | None = None,
        *,
        monotonic: Callable[[], float] = lambda: 0.0,
        framework_of: Callable[[str], FrameworkAdapter] = framework,
        away: Downtime | None = None,
        data_plane: str = LOCAL,
    ) -> Controller:
        fault = fault or Fault()

        async def inline(work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            async def call() -> Any:
                return work(*args, **kwargs)

            return await fault.run(call)

        api = cast(KubeApi, FaultyApi(self.cluster, fault))
        target = LaunchTarget(data_plane, NAMESPACE, lambda id: f"token-of-{id}", front_key=str)
        return Controller(
            api,
            target,
            databases=Databases.shared(inline),
            clock=lambda: self.now,
            monotonic=monotonic,
            framework_of=framework_of,
            away=away,
            rng=random.Random(1),
        )

    async def step(self, controller: Controller, *, fresh: bool = True) -> None:
        """With stale caches (`fresh` False) the controller works on what it saw last."""
        if fresh:
            self.refresh(controller)
        await controller.poll()
        if controller.runs._jobs:
            while controller.runs._jobs:
                await controller.runs.move_some()
            await controller.poll()  # admits what was launched
        await controller.waits.write()
        while not controller.idle:
            await controller.work()
        self.most_pods = max(self.most_pods, len(self.pods()))

    def refresh(self, controller: Controller) -> None:
        become(controller.pods, (decode(obj, Pod) for obj in self.pods()))
        become(controller.events, (decode(obj, Event) for obj in self.cluster.objects(EVENTS)))
        become(controller.autoscalers, (decode(obj, Autoscaler) for obj in self.cluster.objects(AUTOSCALERS)))
        for store in (controller.pods, controller.events, controller.autoscalers):
            store.mark_synced(0.0)

    async def rounds(self, controller: Controller, number: int) -> None:
        for _ in range(number):
            await self.step(controller)
            self.behave()

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    # --- The cluster's side ---

    def pods(self) -> list[RawObject]:
        return self.cluster.objects(PODS)

    def pod_of(self, execution: Execution) -> RawObject:
        (pod,) = [pod for pod in self.pods() if pod["metadata"]["labels"].get(KEYS.execution) == execution.pk]
        return pod

    def members(self, execution: Execution, component: str) -> list[RawObject]:
        """The cluster's head or workers that live."""
        return [
            pod
            for pod in self.pods()
            if pod["metadata"]["labels"].get(KEYS.execution) == execution.pk
            and pod["metadata"]["labels"].get(APP_COMPONENT) == component
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def head_of(self, execution: Execution) -> RawObject:
        (head,) = self.members(execution, HEAD)
        return head

    def workers_of(self, execution: Execution) -> list[RawObject]:
        return self.members(execution, WORKER)

    def behave(self) -> None:
        """Each pod one step on: a node, ready; a job's pod then succeeds; one that was asked to end is gone. Then the Deployments'
        and autoscalers' controllers do theirs, so that pods which they make begin in the next round."""
        self._walk()
        self.autoscale()
        self.deployments.round()

    def autoscale(self) -> None:
        """An autoscaler keeps within its bounds, and wants what a test has written into `wanted`."""
        for autoscaler in self.cluster.objects(AUTOSCALERS):
            spec, name = autoscaler["spec"], autoscaler["spec"]["scaleTargetRef"]["name"]
            for deployment in self.cluster.objects(DEPLOYMENTS):
                if deployment["metadata"]["name"] == name:
                    asked = self.wanted.get(name, deployment["spec"]["replicas"])
                    deployment["spec"]["replicas"] = min(max(asked, spec["minReplicas"]), spec["maxReplicas"])
                    self.cluster.put(DEPLOYMENTS, deployment)

    def _walk(self) -> None:
        for pod in self.pods():
            if "deletionTimestamp" in pod["metadata"]:
                self.cluster.remove(PODS, pod["metadata"]["name"], namespace=NAMESPACE)
            elif "nodeName" not in pod["spec"]:
                self.schedule(pod)
            elif pod.get("status", {}).get("phase") != "Running":
                self.start(pod)
            elif pod["spec"]["restartPolicy"] == "Never":
                self.finish(pod, 0)

    def schedule(self, pod: RawObject, node: str = "node-1") -> None:
        pod["spec"]["nodeName"] = node
        pod["status"] = {"phase": "Pending", "conditions": [condition("PodScheduled", "True", at=self.now)]}
        self.cluster.put(PODS, pod)

    def start(self, pod: RawObject) -> None:
        conditions = pod.get("status", {}).get("conditions", ())
        bound = [known for known in conditions if known["type"] == "PodScheduled"]
        pod["status"] = {
            "phase": "Running",
            "conditions": [*bound, condition("Ready", "True")],
            "containerStatuses": [container_status(ready=True, state={"running": {"startedAt": stamp(self.now)}})],
        }
        self.cluster.put(PODS, pod)

    def finish(self, pod: RawObject, exit_code: int, reason: str = "") -> None:
        ended = {"exitCode": exit_code, "reason": reason or ("Error" if exit_code else "Completed")}
        pod["status"] = {
            "phase": "Failed" if exit_code else "Succeeded",
            "containerStatuses": [container_status(state={"terminated": ended})],
        }
        self.cluster.put(PODS, pod)

    def says(
        self, pod: RawObject, reason: str, message: str, *, count: int = 1, kind: str = "Normal", about: str = "Pod"
    ) -> None:
        """An event about the pod, or about another object of the kind `about`."""
        concerned = {**pod, "kind": about}
        name = f"{pod['metadata']['name']}.{reason.lower()}"
        self.cluster.put(EVENTS, event(name, about=concerned, reason=reason, message=message, count=count, kind=kind))


def states_of(execution: Execution) -> list[str]:
    """The states in the order of entering."""
    entries = LifecycleEntry.objects.filter(execution=execution, source="state").order_by("id")
    return [entry.to_state for entry in entries]


def fresh(execution: Execution) -> Execution:
    execution.refresh_from_db()
    return execution


async def to_running(world: World, controller: Controller) -> None:
    """One pod, from the queue, with a kubelet that keeps up; a cluster takes more rounds."""
    await world.rounds(controller, 2)
    await world.step(controller)


def launched(shop: Shop, **changes: Any) -> tuple[World, Controller, Execution]:
    """A world, its controller, and an execution that is queued."""
    world, execution = World(), shop.launch(**changes)
    return world, world.controller(), execution


async def running(shop: Shop, **changes: Any) -> tuple[World, Controller, Execution]:
    """A world, its controller, and an execution in it that runs."""
    world, controller, execution = launched(shop, **changes)
    await to_running(world, controller)
    return world, controller, execution
