"""Has the expected waits stored, with what the controller's caches show of the executions that start. The controller has no cache of
nodes. They are listed for pods that wait for room, when one of them was not there the last time, and at most once a minute. So a wait for
room is measured from that moment."""

from collections.abc import Collection, Sequence
from datetime import timedelta

from grid.core.labels import APP_COMPONENT, WORKER
from grid.core.workqueue import in_slices
from grid.database.periodic import PeriodicTask
from grid.diagnosis.diagnosis import since
from grid.diagnosis.held import is_unplaced
from grid.diagnosis.placement import SchedulingContext, outlook_of
from grid.executions.caches import execution_of
from grid.executions.context import Context
from grid.kube.objects import Event, Pod, is_refused
from grid.queue.wait_estimate import observing
from grid.queue.wait_estimate.capacity import RoomFacts, RoomSeeker
from grid.queue.wait_estimate.observing import Observed, OnNode
from grid.queue.wait_estimate.outcomes import keep_predictions, start_waits

KEEP_SECONDS = 10.0
LIST_SECONDS = 60.0  # between two lists of the nodes
JUDGED_AT_ONCE = 5  # pods, each of which is held against all nodes: some 10 ms of the loop with 1,000
_SETTLED = timedelta(seconds=10)  # the autoscaler looks every 10 s by default: until then it may still start a node


class WaitKeeper:
    """Part of one term of leadership."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._judged: Collection[str] = ()
        self._lists_from = 0.0

    def periodic(self) -> PeriodicTask:
        plane = self._context.target.data_plane
        return PeriodicTask(
            "expected waits", KEEP_SECONDS, self.run_once, first_after=KEEP_SECONDS, work=lambda now: start_waits(plane)
        )

    async def run_once(self) -> None:
        """Store what is expected now of those of whom nothing is stored yet, and what came of the others."""
        context = self._context
        plane, observed = context.target.data_plane, await self.observed()
        await context.due_work(keep_predictions, plane, observed, now=context.clock())

    async def observed(self) -> Observed:
        """Return what is known of the executions that start; of those that no node takes, only right after the nodes were listed."""
        context, now = self._context, self._context.clock()
        new_nodes, on_node = dict[str, bool](), dict[str, OnNode]()
        for pod in context.pods.starting():
            if pod.spec.node_name:
                id = execution_of(pod)
                new_nodes[id] = False
                # Without a list of nodes, only the history knows sizes.
                if (seen := observing.on_node(pod, self._events(pod), None, lambda image: None, now=now)) is not None:
                    on_node[id] = seen
        crowded = [pod for pod in context.pods.values() if is_unplaced(pod) and is_refused(pod)]
        scheduling = await self._scheduling(crowded)
        if scheduling is None:
            return Observed(new_nodes, on_node)
        nodes = context.nodes  # later pods are judged by the next list
        crowded = [pod for pod in crowded if nodes.is_listed_after(pod) and nodes.can_judge(pod)]
        seekers = list[RoomSeeker]()
        async for pod in in_slices(sorted(crowded, key=observing.rank_of)[: observing.MOST_SEEKERS], JUDGED_AT_ONCE):
            outlook = outlook_of(pod, self._events(pod), scheduling, now=now)
            if outlook.needs_node and not _is_worker(pod):
                new_nodes[execution_of(pod)] = True
            elif outlook.nodes:
                seekers.append(observing.seeker(pod, outlook.nodes, execution_of(pod), is_needed=self._is_needed(pod)))
        return Observed(new_nodes, on_node, await self._room(seekers, scheduling))

    async def _scheduling(self, crowded: Sequence[Pod]) -> SchedulingContext | None:
        """Return the nodes and what is requested of them if one of the pods was not judged yet, it is time, and they can be read."""
        context, now = self._context, self._context.clock()
        settled = [pod for pod in crowded if since(pod.metadata.creation_timestamp, now) >= _SETTLED]
        fresh = [pod for pod in settled if execution_of(pod) not in self._judged]
        if not fresh or context.monotonic() < self._lists_from:
            return None
        self._lists_from = context.monotonic() + LIST_SECONDS
        # A list that is younger than all of them: in an older one the claims of the later ones are missing.
        created = [at for pod in fresh if (at := pod.metadata.creation_timestamp) is not None]
        scheduling = await context.nodes.since(max(created, default=None))
        if scheduling is not None:
            self._judged = {execution_of(pod) for pod in crowded if context.nodes.is_listed_after(pod)}
        elif context.nodes.is_reading:
            # Of a large cluster the list comes later, and is kept only for a short time.
            self._lists_from = context.monotonic()
        return scheduling

    async def _room(self, seekers: Sequence[RoomSeeker], scheduling: SchedulingContext) -> RoomFacts:
        """Return what the seekers find on the nodes. The pods of executions are the only ones there whose end can be told."""
        on = dict[str, list[Pod]]()
        for pod in self._context.pods.values():
            on.setdefault(pod.spec.node_name, []).append(pod)
        wanted = frozenset[str]().union(*(seeker.nodes for seeker in seekers))
        tally = observing.OccupantTally(execution_of, self._context.clock())
        nodes = [node for node in scheduling.nodes if node.metadata.name in wanted]
        async for node in in_slices(nodes[: observing.MOST_NODES], observing.NODES_AT_ONCE):
            name = node.metadata.name
            tally.count(node, scheduling.room.requested(name), on.get(name, ()))
        return tally.room(seekers)

    def _is_needed(self, pod: Pod) -> bool:
        """Return whether the execution does not start without this pod: of a cluster's workers it needs only one."""
        others = self._context.pods.by("execution", execution_of(pod))
        return not (_is_worker(pod) and any(_is_worker(other) and other.spec.node_name for other in others))

    def _events(self, pod: Pod) -> list[Event]:
        events = self._context.events.of(execution_of(pod))
        return [event for event in events if event.involved_object.name == pod.metadata.name]


def _is_worker(pod: Pod) -> bool:
    return pod.metadata.labels.get(APP_COMPONENT) == WORKER
