"""Samples of the node pools, one a minute, kept for a day: what the charts show.

The web processes write them, because they follow the nodes, the pods and the usage anyway; the controller knows none of these. Each
comes at a random second of the minute, and the first writes for all: the others find the minute taken. So no process has to be there, a
minute is lacking only when none is, and two that come at once are kept apart by the database. Nothing else depends on the samples.

Who takes them also remembers what the nodes of each pool look like (`grid.tiers.pooltemplates`), since all nodes are looked at.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Min

from grid.core.labels import SIMULATED
from grid.database.periodic import PeriodicTask, RunsIn
from grid.database.threads import background
from grid.diagnosis.nodeshapes import NodeTemplate, TemplateTally
from grid.diagnosis.requests import Amounts, amounts
from grid.kube.objects import Node, is_ready
from grid.metrics.usage import Usage
from grid.models import Execution, PoolSample, State
from grid.models.pool import ALL_POOLS
from grid.nodes.nodemarks import is_platform
from grid.runtime.caches import DataPlaneCaches, pool_of
from grid.tiers.pooltemplates import remember

logger = logging.getLogger(__name__)

KEPT_MINUTES = 24 * 60
DELETED_AT_ONCE = 60  # minutes
MOST_BEHIND_SECONDS = 60.0  # of a cache that is sampled
LATEST_SECOND = 50.0  # of a minute in which a process comes
# Characters of a label's value, https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
MOST_NAME = 63
NODES_AT_ONCE = 100  # with their pods, 5 ms of the loop
_MEBIBYTE = 2**20
_NOTHING = Amounts()
_WAITING = (State.QUEUED, State.DEPLOYING, State.PREPARING)

ExecutionCounts = Mapping[tuple[str, str], int]  # by pool and state


@dataclass(slots=True)
class PoolTally:
    """The sums over the nodes of one pool; `used` is that of the nodes whose usage is known, which `measured` counts."""

    nodes: int = 0
    ready: int = 0
    requested: Amounts = _NOTHING
    allocatable: Amounts = _NOTHING
    used: Amounts = _NOTHING
    measured: int = 0
    pods_waiting: int = 0

    def count(self, node: Node, requested: Amounts, usage: Usage | None) -> None:
        self.nodes += 1
        self.ready += is_ready(node)
        self.requested += requested
        self.allocatable += amounts(node.status.allocatable)
        if usage is not None:
            self.measured += 1
            self.used += Amounts(usage.cpu_millicores, usage.memory_bytes)


def sample_of(pool: str, minute: int, tally: PoolTally, executions: ExecutionCounts) -> PoolSample:
    """Return the sample that is stored. Its use is unknown unless most nodes are measured: a part of them would look idle. Pure."""
    used = tally.used if 2 * tally.measured > tally.nodes else None
    return PoolSample(
        pool=pool,
        minute=minute,
        nodes=tally.nodes,
        nodes_ready=tally.ready,
        requested_millicores=tally.requested.cpu,
        allocatable_millicores=tally.allocatable.cpu,
        used_millicores=None if used is None else used.cpu,
        requested_mebibytes=tally.requested.memory // _MEBIBYTE,
        allocatable_mebibytes=tally.allocatable.memory // _MEBIBYTE,
        used_mebibytes=None if used is None else used.memory // _MEBIBYTE,
        requested_gpus=tally.requested.gpus,
        allocatable_gpus=tally.allocatable.gpus,
        pods_waiting=tally.pods_waiting,
        executions_running=executions.get((pool, State.RUNNING), 0),
        executions_waiting=sum(executions.get((pool, state), 0) for state in _WAITING),
    )


def store(minute: int, tallies: Mapping[str, PoolTally]) -> None:
    """Write the samples of a minute, `ALL_POOLS` among them, with the executions of now, and delete the oldest that are too old."""
    counted = Execution.objects.unsettled().filter(state__in=(State.RUNNING, *_WAITING)).order_by()
    executions: Counter[tuple[str, str]] = Counter()
    for pool, state, count in counted.values_list("node_pool", "state").annotate(Count("pk")):
        executions += Counter({(pool, state): count, (ALL_POOLS, state): count})
    with transaction.atomic():
        # Only a duplicate is ignored: `ignore_conflicts` would ignore every mistake on SQLite.
        samples = [sample_of(pool, minute, tally, executions) for pool, tally in tallies.items()]
        unique = ["pool", "minute"]
        PoolSample.objects.bulk_create(samples, update_conflicts=True, unique_fields=unique, update_fields=["minute"])
        oldest = PoolSample.objects.aggregate(Min("minute"))["minute__min"]
        if oldest is not None and oldest <= minute - KEPT_MINUTES:
            limit = min(minute - KEPT_MINUTES + 1, oldest + DELETED_AT_ONCE)
            PoolSample.objects.filter(minute__lt=limit).delete()


@dataclass(frozen=True, slots=True)
class PoolSampler:
    """Takes the samples of one data plane; `clock` returns the seconds since 1970."""

    caches: DataPlaneCaches
    clock: Callable[[], float]
    monotonic: Callable[[], float]

    def periodic(self) -> PeriodicTask:
        first_after = self._until_next_minute()
        return PeriodicTask("pool samples", 60.0, self.run_once, RunsIn.EVERY_PROCESS, first_after=first_after)

    def _until_next_minute(self) -> float:
        """Return the seconds until a moment early in the next minute; drawn, so that the first of the processes takes its samples."""
        return 60 - self.clock() % 60 + random.uniform(0, LATEST_SECOND)

    async def run_once(self) -> float:
        """Write this minute's samples, unless another process has or the caches are behind; return when the next minute comes."""
        minute = int(self.clock() // 60)
        both = [store.freshness(self.monotonic()) for store in (self.caches.nodes, self.caches.pods)]
        if not all(cache.synced and cache.behind_seconds <= MOST_BEHIND_SECONDS for cache in both):
            logger.debug("no sample of the pools: the cluster is not followed")
        elif not await background.run(PoolSample.objects.filter(minute=minute).exists):
            now = datetime.fromtimestamp(self.clock(), UTC)
            tallies, templates = await self._look(now)
            await background.run(store, minute, tallies)
            await background.run(remember, templates, now)
        return self._until_next_minute()

    async def _look(self, now: datetime) -> tuple[Mapping[str, PoolTally], Mapping[str, NodeTemplate]]:
        """Return the tally of each known pool and of all nodes for executions, and what the next node of each pool looks like."""
        caches = self.caches
        tallies = {name: PoolTally() for name in caches.groups.by_pool() if _may_be_a_pool(name)}
        whole = tallies[ALL_POOLS] = PoolTally()
        shapes: dict[str, TemplateTally] = {}
        for place, name in enumerate(list(caches.nodes.keys())):
            if place and place % NODES_AT_ONCE == 0:
                await asyncio.sleep(0)
            if (node := caches.nodes.get(name)) is None:
                continue
            pool = pool_of(node)
            requested, usage = caches.room.amounts(name), caches.usage.node(name)
            tallies.setdefault(pool, PoolTally()).count(node, requested, usage)
            if not is_platform(node, settings.NODE_POOL_LABEL):  # no execution may have its room
                whole.count(node, requested, usage)
            if pool and _may_be_a_pool(pool) and SIMULATED not in node.metadata.labels:
                shapes.setdefault(pool, TemplateTally()).count(node, caches.room.own(name))
        for pool, count in caches.pods.counts("awaited_pool").items():
            tallies.setdefault(pool, PoolTally()).pods_waiting = count
            whole.pods_waiting += count
        templates = {pool: shape.template(now) for pool, shape in shapes.items()}
        return tallies, {pool: template for pool, template in templates.items() if template is not None}


def _may_be_a_pool(name: str) -> bool:
    """Return whether a label could have this value: autoscalers may name groups otherwise, and PostgreSQL stores no zero byte."""
    return len(name) <= MOST_NAME and name.isprintable()
