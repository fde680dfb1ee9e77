"""The running population: it fills the API server's store, makes changes at a given rate, and simulates failures on demand.

It writes into the store directly, because posting 150,000 pods over HTTP would take a quarter of an hour. Pods that clients delete
through the API it removes, as a kubelet would, and it launches replacements for missing ones.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from grid.core.labels import HEAD, WORKER
from grid.sandbox.apiserver.kinds import Object, stored_kinds
from grid.sandbox.apiserver.registry import Registry, timestamp
from grid.sandbox.apiserver.status import Failure
from grid.sandbox.apiserver.store import StoreEvent
from grid.sandbox.client import Clock, SystemClock
from grid.sandbox.population import happenings, objects, stories
from grid.sandbox.population.plan import PODS_OF_A_NODE, POOLS, PopulationPlan, SimulatedExecution, Size, pools_of
from grid.sandbox.population.rooms import NodeSpace, Rooms
from grid.sandbox.population.stories import EVENTS, NODES, PODS
from grid.sandbox.population.telling import Story, Teller

log = logging.getLogger(__name__)

_TICK_SECONDS = 0.05
_SLICE_SECONDS = 0.02  # for how long the event loop is blocked while the cluster is filled
_OPEN_SECONDS = 5.0  # about how long a story takes at any rate of changes
_STEPS_WITHOUT_CHANGE = 20  # a story whose pod is gone makes no change
_ASKED_AT_A_TICK = 10
_OPEN_SHARE = 0.05  # the largest share of the pods with an open story
_MOST_BEHIND_SECONDS = 1.0
_HEARTBEAT_SECONDS = 300.0
_MEAN_AGE_SECONDS = 2 * 3600.0  # of the executions at the start
_FEW = 200  # up to this number, missing pods are launched one after the other; more are added at once


class Population:
    """The population, an implementation of `stories.World`.

    `run` fills the store and keeps it changing until cancelled; all other methods may be called at any time.
    """

    def __init__(self, registry: Registry, size: Size, *, namespace: str, clock: Clock | None = None) -> None:
        self.plan = PopulationPlan(size)
        self.rooms = Rooms()
        self._size = size
        self._nodes_at_start = size.nodes
        self._registry = registry
        self._store = registry.store
        self._namespace = namespace
        self._clock = clock or SystemClock()
        self._numbers = itertools.count()
        self._usual = Teller(self._clock.monotonic)  # spontaneous stories, at the given rate
        self._asked = Teller(self._clock.monotonic)  # requested stories, at once
        self._out_of_stock: dict[str, float] = {}
        self._changes = 0
        self._stands = asyncio.Event()
        self._coming = 0
        self._is_ours = False
        self._is_resized = False  # since the last fill
        self._store.listen(PODS, self._noticed)
        self._store.listen(NODES, self._noticed_node)

    # Size

    @property
    def size(self) -> Size:
        return self._size

    def resize(self, *, pods: int | None = None, churn: float | None = None) -> None:
        """Set the number of pods and the rate. Nodes grow with the pods; empty ones go again, down to the number at the start."""
        pods = self._size.pods if pods is None else pods
        nodes = max(self._nodes_at_start, -(-pods // PODS_OF_A_NODE))
        self._size = replace(self._size, nodes=nodes, pods=pods, churn=self._size.churn if churn is None else churn)
        self._is_resized = True

    def state(self) -> Object:
        """Return the present state for the control API."""
        return {
            "nodes": len(self.rooms.nodes),
            "pods": len(self.rooms),
            "wanted": {"nodes": self._size.nodes, "pods": self._size.pods, "churn": self._size.churn},
            "changes": self._changes,
            "pools": sorted(self.rooms.pools),
            "outOfStock": sorted(pool for pool in self._out_of_stock if not self.has_stock(pool)),
        }

    async def stands(self) -> None:
        """Return once everything that was asked for at the start exists."""
        await self._stands.wait()

    # Failures on demand

    # The failures of workers return the number of affected pods.

    def stock_out(self, pool: str, count: int) -> int:
        """Give the pool no capacity for two minutes and replace `count` of its pods, which then wait."""
        replaced = self._with_workers(count, lambda key: stories.is_replaced(self, key), pool=pool)
        if replaced:
            self._out_of_stock[pool] = self._clock.monotonic() + stories.STOCK_OUT_SECONDS
        return replaced

    def bad_image(self, count: int) -> int:
        return self._with_workers(count, lambda key: stories.is_replaced(self, key, image=happenings.MISSING_IMAGE))

    def out_of_memory(self, count: int) -> int:
        return self._with_workers(count, lambda key: stories.crashes(self, key, 137, "OOMKilled"))

    def crash_loop(self, count: int) -> int:
        return self._with_workers(count, lambda key: stories.crashes(self, key, 1, "Error", times=5))

    def lose_node(self) -> str:
        return self._with_node(stories.node_is_lost)

    def taint_node(self) -> str:
        return self._with_node(stories.node_is_tainted)

    def _with_workers(self, count: int, story: Callable[[str], Story], *, pool: str = "") -> int:
        keys = tuple(self.rooms.draw(self.plan.rng, count, part=f"-{WORKER}-", pool=pool))
        for key in keys:
            self._asked.add(story(key))
        return len(keys)

    def _with_node(self, story: Callable[[stories.World, str], Story]) -> str:
        """Start a story on a random open node; return the node's name, or "" when there is none."""
        names = [name for name, room in self.rooms.nodes.items() if room.is_open]
        if not names:
            return ""
        name = self.plan.rng.choice(names)
        self._asked.add(story(self, name))
        return name

    # Life

    async def run(self) -> None:
        """Fill the cluster and keep it changing, until cancelled."""
        self._prepare()
        began = self._clock.monotonic()
        while True:
            await self._fill()
            if not self._stands.is_set() and len(self.rooms.nodes):
                took = self._clock.monotonic() - began
                log.info(
                    "population stands nodes=%d pods=%d seconds=%.1f", len(self.rooms.nodes), len(self.rooms), took
                )
            self._stands.set()
            await self._churn()

    async def _fill(self) -> None:
        """Create and remove nodes and pods until their numbers are right, in slices."""
        self._is_resized = False
        slice_ends = time.monotonic() + _SLICE_SECONDS
        for _ in self._missing():
            if time.monotonic() >= slice_ends:
                await asyncio.sleep(0)
                slice_ends = time.monotonic() + _SLICE_SECONDS

    def _missing(self) -> Iterator[None]:
        while pools := self.rooms.lacking(pools_of(self._size.nodes)):
            for pool in pools:
                self.add_node(pool)
                yield
        while (lacking := self._size.pods - len(self.rooms)) > 0:
            when = timestamp(
                self._registry.clock() - timedelta(seconds=self.plan.rng.expovariate(1 / _MEAN_AGE_SECONDS))
            )
            for pod in self._launch(self.plan.execution(lacking), when):
                self._was_there(pod, when)
                yield
        while (excess := len(self.rooms) - self._size.pods) > 0:
            self._withdraw(excess)
            yield
        for name in self.rooms.spare(pools_of(self._size.nodes)):
            self.remove(NODES, name)
            yield

    def _withdraw(self, most: int) -> None:
        """Remove an execution with all its objects; if it has more than `most` pods, only `most` of them, workers first."""
        drawn = self.rooms.draw_any(self.plan.rng)
        anchor = "-".join(drawn.rpartition("/")[2].split("-")[:2])
        prefix = f"{self._namespace}/{anchor}"
        keys = [record.key for record in self._store.records(PODS, prefix=prefix) if record.key in self.rooms]
        for key in sorted(keys, key=lambda key: f"-{HEAD}-" in key)[:most]:
            self.remove(PODS, key)
        if len(keys) <= most:
            for record in tuple(self._store.records("replicasets.apps", prefix=prefix)):
                self.remove("replicasets.apps", record.key)
            self.remove("configmaps", prefix)
        if drawn in self.rooms and self._store.get(PODS, drawn) is None:
            self.rooms.remove_pod(drawn)  # it could not be written

    async def _churn(self) -> None:
        """Make changes at the given rate, and return when the number of pods or nodes is far from what is asked for.

        It runs for at least one tick, so that other tasks get their turn.
        """
        budget, at, beats = 0.0, self._clock.monotonic(), 0.0
        is_first = True
        while is_first or self._is_about_right():
            is_first = False
            await self._clock.sleep(_TICK_SECONDS)
            now = self._clock.monotonic()
            passed, at = min(now - at, _MOST_BEHIND_SECONDS), now
            budget += passed * self._size.churn
            beats += passed * len(self.rooms.nodes) / _HEARTBEAT_SECONDS
            budget = min(budget, max(1.0, self._size.churn * _MOST_BEHIND_SECONDS))
            slice_ends = time.monotonic() + _SLICE_SECONDS
            for _ in range(_ASKED_AT_A_TICK):
                if not self._asked.tell():
                    break
            while budget >= 1.0 and time.monotonic() < slice_ends and self._step():
                budget -= 1.0
            while beats >= 1.0:
                beats -= 1.0
                self._beat()

    def _is_about_right(self) -> bool:
        """Return True when the spontaneous stories can make up the difference; False after a resize, which is filled at once."""
        if self._is_resized:
            return False
        unfinished = _FEW + self._coming + self._size.churn * _OPEN_SECONDS
        return abs(self._size.pods - len(self.rooms)) <= unfinished and len(self.rooms.nodes) >= self._size.nodes - _FEW

    def _step(self) -> bool:
        """Make the next spontaneous change. Return False when there is nothing to change."""
        before = self._changes
        for _ in range(_STEPS_WITHOUT_CHANGE):
            if self._usual.open < max(1.0, min(self._size.churn * _OPEN_SECONDS, len(self.rooms) * _OPEN_SHARE)):
                story = self._next_story()
                if story is not None:
                    self._usual.add(story)
            if not self._usual.tell():
                return False
            if self._changes > before:
                return True
        return False

    def _next_story(self) -> Story | None:
        """Return a spontaneous story: mostly a replaced worker, sometimes a failure, an execution that ends or a launch."""
        if len(self.rooms) + self._coming < self._size.pods:
            return self._arrives(self.plan.execution(self._size.pods - len(self.rooms) - self._coming))
        rng = self.plan.rng
        kind = rng.choices(("worker", "memory", "error", "job", "workspace"), weights=(60, 6, 6, 16, 12))[0]
        part = {"job": "/job-", "workspace": "/workspace-"}.get(kind, f"-{WORKER}-")
        key = next(self.rooms.draw(rng, 1, part=part), None)
        if key is None:
            return None
        if kind == "worker":
            return stories.is_replaced(self, key)
        if kind == "job":
            return stories.finishes(self, key, code=0 if rng.random() < 0.85 else 1)
        if kind == "workspace":  # shut down from within
            return stories.finishes(self, key)
        return stories.crashes(self, key, *((137, "OOMKilled") if kind == "memory" else (1, "Error")))

    def _arrives(self, execution: SimulatedExecution) -> Story:
        """Return the story of a launch, whose pods come up one after the other."""
        self._coming += execution.pods

        def story() -> Story:
            left = execution.pods
            try:
                launching = self._launch(execution, self.now())
                while len(self.rooms) < self._size.pods and (pod := next(launching, None)) is not None:
                    left -= 1
                    self._coming -= 1
                    yield 0.0
                    yield from stories.comes_up(self, self.add_pod(pod))
            finally:
                self._coming -= left

        return story()

    # World

    def now(self) -> str:
        return timestamp(self._registry.clock())

    def read(self, resource: str, key: str) -> Object | None:
        record = self._store.get(resource, key)
        return None if record is None else record.fresh()

    def write(self, resource: str, key: str, obj: Object) -> None:
        self._changes += 1
        self._is_ours = True
        try:
            self._store.put(resource, key, obj, is_kept=False)
        finally:
            self._is_ours = False

    def remove(self, resource: str, key: str) -> None:
        if self._store.get(resource, key) is None:
            return
        self._changes += 1
        self._store.remove(resource, key)

    def add_pod(self, obj: Object) -> str:
        key = self._take_in(obj)
        self.write(PODS, key, obj)
        return key

    def add_node(self, pool: str) -> None:
        if len(self.rooms.nodes) >= self._size.nodes:
            return
        template = next(template for template, _, _ in POOLS if template.name == pool)
        name, number = self.plan.node_name(pool), next(self._numbers)
        self.write(NODES, name, objects.node(name, self.plan.uid(), template, number, self.now()))
        self.rooms.add_node(NodeSpace.of(name, template))

    def has_stock(self, pool: str) -> bool:
        return self._out_of_stock.get(pool, 0.0) <= self._clock.monotonic()

    def tell(self, about: Object, kind: str, reason: str, message: str, source: str) -> None:
        event = objects.event(about, self.plan.uid(), kind, reason, message, source, self.now())
        key = f"{event['metadata']['namespace']}/{event['metadata']['name']}"
        self._store.put(EVENTS, key, event, is_kept=False)

    # Objects

    def _prepare(self) -> None:
        body = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": self._namespace}}
        with suppress(Failure):  # it exists already
            self._registry.create(stored_kinds()["namespaces"], "", body)

    def _launch(self, execution: SimulatedExecution, when: str) -> Iterator[Object]:
        """Create the objects of an execution; yield its pods for the caller to add."""
        plan, namespace = self.plan, self._namespace
        self._store.put(
            "configmaps", f"{namespace}/{execution.name}", objects.anchor(execution, namespace, when), is_kept=False
        )
        if not execution.workers:
            yield objects.pod(execution, execution.name, plan.uid(), namespace, when)
            return
        for component, count in ((HEAD, 1), (WORKER, execution.workers)):
            owner, name = plan.uid(), objects.set_name(execution, component)
            made = objects.replica_set(execution, component, owner, namespace, when)
            self._store.put("replicasets.apps", f"{namespace}/{name}", made, is_kept=False)
            for _ in range(count):
                pod = f"{name}-{plan.suffix(5)}"
                yield objects.pod(execution, pod, plan.uid(), namespace, when, component=component, owner=owner)

    def _take_in(self, pod: Object) -> str:
        key = f"{self._namespace}/{pod['metadata']['name']}"
        self.rooms.add_pod(key, objects.need_of(pod))
        return key

    def _was_there(self, pod: Object, when: str) -> None:
        """Add a pod as one that came up some time ago; a pod without a node waits."""
        key = self._take_in(pod)
        room = self.rooms.place(key)
        if room is None:
            self.write(PODS, key, pod)
            self._asked.add(stories.comes_up(self, key), after=1.0)
            return
        happenings.scheduled(pod, room.name, when)
        happenings.running(pod, stories.address(self.plan.rng), when)
        happenings.ready(pod, when)
        self.write(PODS, key, pod)

    def _beat(self) -> None:
        if not self.rooms.nodes:
            return
        name = self.plan.rng.choice(list(self.rooms.nodes))
        node = self.read(NODES, name)
        if node is not None and self.rooms.nodes[name].is_open:
            objects.beat(node, self.now())
            self._store.put(NODES, name, node, is_kept=False)

    def _noticed(self, change: StoreEvent) -> None:
        """React to other clients' changes of our pods: a deleted pod is removed and frees its node's capacity."""
        if change.key not in self.rooms:
            return
        if change.now is None:
            self.rooms.remove_pod(change.key)
        elif not self._is_ours and "deletionTimestamp" in change.now.obj["metadata"] and not _was_going(change):
            self._asked.add(stories.goes(self, change.key), after=2.0)

    def _noticed_node(self, change: StoreEvent) -> None:
        """React to a removed node: replace its pods, and after a while the node."""
        if change.now is None and change.key in self.rooms.nodes:
            pool, keys = self.rooms.nodes[change.key].pool, self.rooms.pods_on(change.key)
            self.rooms.remove_node(change.key)
            for key in keys:
                self._asked.add(stories.is_replaced(self, key))
            self._asked.add(stories.node_comes(self, pool), after=stories.NODE_SECONDS)


def _was_going(change: StoreEvent) -> bool:
    return change.before is not None and "deletionTimestamp" in change.before.obj["metadata"]
