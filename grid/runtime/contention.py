"""Follows from one round of usage to the next which pods take CPU from others on their node, and tells the owners of who gets too little.

Each web process follows it for itself, in memory: it has the pods, the nodes and the usage anyway, and nothing is lost with it but a minute
of measurements. Owners are told through the database, which keeps two processes from telling the same.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.db import transaction

from grid.database.periodic import PeriodicTask, RunsIn
from grid.database.threads import background
from grid.diagnosis.requests import has_ended
from grid.diagnosis.resources import resource_amount
from grid.kube.hub import NAME, Topic
from grid.kube.objects import Node, Pod
from grid.kube.store import Store
from grid.metrics.usage import Measured, Usage, UsageStore
from grid.models import ContentionNotice, Execution, NotificationEvent, State
from grid.nodes import contention as rules
from grid.nodes.contention import CALM_PERCENT, Contention, NodeRounds, PodCpu, PodSample
from grid.notifications import outbox
from grid.runtime.executions import ActiveExecutions

logger = logging.getLogger(__name__)

TOPIC = "contention"
EXECUTION = "execution"  # name of the index by execution
NOTICE_SECONDS = 300.0  # of contention before its owner is told: what is over sooner needs nothing from anybody
LOOK_SECONDS = 30.0
TOLD_AT_ONCE = 100  # each in a transaction of its own; others are told with the next look
# Each takes about 5 ms of the loop.
NODES_AT_ONCE = 10  # busy ones with their pods
FOUND_AT_ONCE = 200  # contended ones
VICTIMS_AT_ONCE = 2000
Run = Callable[..., Awaitable[Any]]


@dataclass(eq=False)
class ContentionWatch:
    """The contended nodes of one data plane. `execution_of` returns the execution of a pod, "" for another pod."""

    pods: Store[Pod]
    nodes: Store[Node]
    usage: UsageStore
    publish: Callable[[Topic], None]
    execution_of: Callable[[Pod], str]

    def __post_init__(self) -> None:
        self._rounds: dict[str, NodeRounds] = {}
        self._contended: Mapping[str, Contention] = {}  # by node
        self._is_measured = asyncio.Event()
        self.worst: Sequence[Contention] = ()  # first
        self.victims: dict[str, tuple[Contention, PodCpu]] = {}  # by execution

    def measured(self) -> None:
        """Tell that there was a round of usage, or none; called by the poller."""
        self._is_measured.set()

    async def run(self) -> None:
        """Take in each round that `measured` tells of, until cancelled, with pauses for other work."""
        while True:
            await self._is_measured.wait()
            self._is_measured.clear()
            for _ in self.steps():
                await asyncio.sleep(0)

    def on_node(self, name: str) -> Contention | None:
        return self._contended.get(name)

    def steps(self) -> Iterator[None]:
        """Take the last round in, and pause again and again: nodes and pods may change meanwhile. One that repeats changes nothing."""
        measured = self.usage.measured
        if self.usage.unavailable and measured.pods:
            return  # the last numbers stand, on all pages
        rounds, by_node, looked_at = dict[str, NodeRounds](), dict[str, Contention](), 0
        for name in list(self.nodes.keys()):
            before, node, used = self._rounds.get(name), self.nodes.get(name), measured.nodes.get(name)
            if node is None:
                continue
            if before is None and (not measured.pods or (used and _is_calm(node, used))):
                continue  # most nodes, so a round costs little more than the busy ones
            samples = self._samples(name, measured)
            looked_at += 1
            if looked_at % NODES_AT_ONCE == 0:
                yield
            cores = self._cores_for_pods(node, samples, used)
            after = rules.advance(before or NodeRounds(), cores, samples)
            if not samples or (after.calm and not after.is_contended):
                continue
            rounds[name] = after
            contended = self._contended.get(name) if after is before else rules.contention(after, name, cores)
            if contended is not None:
                by_node[name] = contended
        self._rounds = rounds
        yield from self._become(by_node)

    def _become(self, by_node: Mapping[str, Contention]) -> Iterator[None]:
        """Show the contended nodes, and wake the pages for which they are news."""
        names = [name for name, contended in by_node.items() if self._contended.get(name) is not contended]
        names += [name for name in self._contended if name not in by_node]
        if not names:
            return
        scores, victims = dict[str, int](), dict[str, tuple[Contention, PodCpu]]()
        for place, contended in enumerate(by_node.values(), 1):
            scores[contended.node] = contended.score
            self._add_victims(victims, contended)
            if place % FOUND_AT_ONCE == 0:
                yield
        before, self._contended, self.victims = self.victims, by_node, victims
        self.worst = sorted(by_node.values(), key=lambda contended: (-scores[contended.node], contended.node))
        yield
        self.publish(TOPIC)
        for name in names:
            self.publish((TOPIC, NAME, name))
        for place, (id, victim) in enumerate(victims.items(), 1):
            if before.pop(id, None) is not victim:  # and so is let go: all at once would take long
                self.publish((TOPIC, EXECUTION, id))
            if place % VICTIMS_AT_ONCE == 0:
                yield
        for id in before:
            self.publish((TOPIC, EXECUTION, id))

    def _add_victims(self, victims: dict[str, tuple[Contention, PodCpu]], where: Contention) -> None:
        """Add by execution where it may be short of CPU; of several pods the one that gets least of what it may use."""
        for pod in where.victims:
            other, before = victims.get(pod.group), self.victims.get(pod.group)
            if other is None or _gets(pod) < _gets(other[1]):
                victims[pod.group] = before if before is not None and before[1] is pod else (where, pod)

    def _cores_for_pods(self, node: Node, samples: Sequence[PodSample], used: Usage | None) -> int:
        """Return what pods can use: more than is allocatable, where the node's own processes leave of what is reserved for them."""
        allocatable = _cores(node.status.allocatable)
        if used is None:
            return allocatable
        own = max(0, used.cpu_millicores - sum(sample.used for sample in samples))
        return max(allocatable, _cores(node.status.capacity) - own)

    def _samples(self, node: str, measured: Measured) -> list[PodSample]:
        samples = []
        for key, pod in self.pods.items_by("node", node):
            if (usage := measured.pods.get(key)) is not None and not has_ended(pod):
                at, group = measured.pods_at.get(key, 0.0), self.execution_of(pod) or key
                waiting = measured.waiting.get(key)
                samples.append(rules.pod_sample(pod, usage.cpu_millicores, at, group=group, waiting=waiting))
        return samples


def _is_calm(node: Node, used: Usage) -> bool:
    return used.cpu_millicores * 100 < CALM_PERCENT * _cores(node.status.allocatable)


def _cores(resources: Mapping[str, str]) -> int:
    return resource_amount("cpu", resources.get("cpu", ""))


def _gets(pod: PodCpu) -> tuple[float, str]:
    return pod.used / max(1, pod.could_use), pod.key


@dataclass(eq=False)
class ContentionNotices:
    """Tells the owners of executions that get too little CPU for some minutes."""

    watch: ContentionWatch
    executions: ActiveExecutions
    run: Run = background.run
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _told: set[str] = field(default_factory=set, init=False)

    def periodic(self) -> PeriodicTask:
        # Drawn, so that the processes, which all tell the same, do not do so at the same time.
        first = random.uniform(0, LOOK_SECONDS)
        return PeriodicTask("contention notices", LOOK_SECONDS, self.run_once, RunsIn.EVERY_PROCESS, first_after=first)

    async def run_once(self) -> None:
        self._told = {id for id in self._told if self.executions.get(id) is not None}
        if due := self._due():
            await self.run(tell_owners, due, now=self.clock())
            self._told |= due.keys()

    def _due(self) -> dict[str, str]:
        """Return the sentence for the owner of each running execution that was not told yet, by its id."""
        sentences = (
            (id, rules.for_owner(pod, row.kind))
            for id, (where, pod) in self.watch.victims.items()
            if (row := self.executions.get(id)) is not None and row.state == State.RUNNING
            if where.until - where.since >= NOTICE_SECONDS and id not in self._told
        )
        return dict(islice(sentences, TOLD_AT_ONCE))


def tell_owners(sentences: Mapping[str, str], *, now: datetime) -> int:
    """Tell the owner of each running execution its sentence, and return how many were told. Of several processes one tells."""
    return sum(_tell(id, sentence, now) for id, sentence in sentences.items())


@transaction.atomic
def _tell(execution_id: str, sentence: str, now: datetime) -> bool:
    if not Execution.objects.unsettled().filter(pk=execution_id, state=State.RUNNING).exists():
        return False
    _, is_new = ContentionNotice.objects.get_or_create(execution_id=execution_id, defaults={"at": now})
    if is_new:
        outbox.record_once_a_sweep(execution_id, NotificationEvent.CPU_CONTENTION, sentence, now=now)
    return is_new
