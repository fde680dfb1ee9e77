"""The phases of an execution's start, from its times, its pod, the pod's events and its node; pure.

    request --queued--> slots --cluster wait, or creating--> pod --node wait--> room --scheduling--> bound
    bound --volumes--> image wanted --pulling--> there --set-up--> starting --> program started --answering--> ready

The phases follow one another without a gap, so their sum is the whole. Events get lost, come twice or late; Kubernetes' times are truncated
to seconds, and the clocks of nodes differ. So a moment that is missing, or contradicts those around it, is not guessed: the phases on its
two sides become one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from grid.diagnosis.startupevents import StartEvents
from grid.kube.objects import Node, Pod, true_condition

# Times of Kubernetes are truncated: one that lies this far beyond its neighbour is only rounded, one further is wrong.
TOLERANCE = timedelta(seconds=2)
# The scheduler binds a pod that fits in well under a second; longer without a reason known is a wait for room, or for the scheduler.
SCHEDULING_LIMIT = timedelta(seconds=5)


class Phase(StrEnum):
    """The phases in their order. The names are those of the columns of `grid.models.StartUp`."""

    QUEUED = "queued"
    CLUSTER_WAIT = "cluster_wait"
    CREATING = "creating"
    NODE_WAIT = "node_wait"
    SCHEDULING = "scheduling"
    VOLUMES = "volumes"
    PULLING = "pulling"
    SETUP = "setup"
    STARTING = "starting"
    ANSWERING = "answering"
    FIRST_WORKER = "first_worker"


@dataclass(frozen=True, slots=True)
class StartFacts:
    """What is known of a start. `until` is when it ran, or ended before, or now; `is_cluster` is True when `pod` is a cluster's head, and
    `has_cluster` when its objects are made only once a cluster of its own runs."""

    requested_at: datetime
    admitted_at: datetime | None
    until: datetime
    ran: bool
    pod: Pod | None = None
    events: StartEvents = field(default_factory=StartEvents)
    node: Node | None = None
    is_cluster: bool = False
    has_cluster: bool = False


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A time in a phase, or in several that cannot be told apart. `is_open`: the last of a start that has not ended or was cut off."""

    phases: tuple[Phase, ...]
    began_at: datetime
    ended_at: datetime
    is_open: bool = False

    @property
    def seconds(self) -> float:
        return (self.ended_at - self.began_at).total_seconds()


@dataclass(frozen=True, slots=True)
class NodeStart:
    """The start of the node that the pod runs on, in seconds of the phase NODE_WAIT; None for what is not known."""

    is_new: bool | None = None
    decision: float | None = None
    creation: float | None = None
    joining: float | None = None


@dataclass(frozen=True, slots=True)
class StartPhases:
    """The whole start: its spans in order, and what happened in them. `image_bytes` is what was pulled in the phase PULLING; None unless
    that time is the program's image's too, and no other pod's."""

    spans: tuple[PhaseSpan, ...]
    node: NodeStart = NodeStart()
    image_cached: bool | None = None
    image_bytes: int | None = None

    @property
    def total(self) -> float:
        return sum(span.seconds for span in self.spans)

    @property
    def seconds(self) -> Mapping[Phase, float]:
        """The seconds of each phase that is known by itself."""
        by_phase: dict[Phase, float] = {}
        for span in self.spans:
            if len(span.phases) == 1:
                by_phase[span.phases[0]] = by_phase.get(span.phases[0], 0.0) + span.seconds
        for phase in self.merged[0]:
            by_phase.pop(phase, None)
        return by_phase

    @property
    def merged(self) -> tuple[tuple[Phase, ...], float]:
        """The phases that could not be told apart, and their seconds together, 0.0 without any."""
        names = {phase for span in self.spans if len(span.phases) > 1 for phase in span.phases}
        seconds = sum(span.seconds for span in self.spans if not names.isdisjoint(span.phases))
        return tuple(phase for phase in Phase if phase in names), seconds


_Mark = tuple[Phase, datetime | None]
"""The end of a phase; None when it is not known, or has not come."""


def start_phases(facts: StartFacts) -> StartPhases:
    """Return the phases of a start. The last one is open when the start has not ended yet, or ended before it ran."""
    end = _end(facts)
    until_pod = Phase.CLUSTER_WAIT if facts.has_cluster else Phase.CREATING
    marks: list[_Mark] = [(Phase.QUEUED, facts.admitted_at), (until_pod, None)]
    node = NodeStart()
    if facts.pod is not None:
        node, waiting = _until_bound(facts, facts.pod)
        marks[1:] = [(until_pod, facts.pod.metadata.creation_timestamp), *waiting, *_on_node(facts, facts.pod)]
    if facts.ran:
        marks[-1] = marks[-1][0], end
    images = facts.events.images
    is_cached = all(image.was_present for image in images) if images else None
    spans = tuple(_spans(marks, facts.requested_at, end, is_over=facts.ran))
    return StartPhases(spans, node=node, image_cached=is_cached, image_bytes=_pulled_bytes(facts))


def _pulled_bytes(facts: StartFacts) -> int | None:
    """Return the bytes that the pulls of this start took their time for; None when they are not known, or not the only reason for it: an
    image is still pulled, waited for others' pulls, or is not the program's, whose size this is taken for."""
    images, pulled = facts.events.images, [image for image in facts.events.images if not image.was_present]
    if not images or facts.events.pulls or any(image.has_waited or image.size is None for image in pulled):
        return None
    program = facts.pod.spec.containers[0].name if facts.pod is not None and facts.pod.spec.containers else ""
    asked = pulled or (images if program else ())
    if asked and not any(image.container in (program, "") for image in asked):
        return None
    return sum(image.size or 0 for image in pulled)


def _end(facts: StartFacts) -> datetime:
    """Return the end of the whole: a program that was seen late, because nobody looked, was ready before."""
    end = max(facts.until, facts.requested_at)
    if not facts.ran or facts.pod is None or facts.is_cluster:
        return end
    ready, bound = _ready_at(facts, facts.pod), _bound_at(facts, facts.pod)
    if ready is None or bound is None or ready < bound - TOLERANCE or end - ready <= TOLERANCE:
        return end
    return max(ready, facts.requested_at)


def _ready_at(facts: StartFacts, pod: Pod) -> datetime | None:
    """Return when the program answered; a program that nothing probes counts as ready with its start."""
    if not _is_probed(pod) and (started := _started_at(facts, pod)) is not None:
        return started
    return facts.events.corrected(true_since(pod, "Ready"))


def _is_probed(pod: Pod) -> bool:
    return any(container.readiness_probe or container.startup_probe for container in pod.spec.containers)


def _until_bound(facts: StartFacts, pod: Pod) -> tuple[NodeStart, list[_Mark]]:
    created, bound = pod.metadata.creation_timestamp, _bound_at(facts, pod)
    asked = facts.events.scale_up_at
    had_to_wait = facts.events.no_room_at is not None or asked is not None
    if bound is None or created is None:
        # Not bound yet: it waits for room as soon as the scheduler has said so once.
        return NodeStart(), [(Phase.NODE_WAIT, None if had_to_wait else created), (Phase.SCHEDULING, None)]
    joined = facts.node.metadata.creation_timestamp if facts.node is not None else None
    if joined is not None and created <= joined <= bound + TOLERANCE:
        ready = facts.events.corrected(true_since(facts.node, "Ready"))
        room = ready if ready is not None and joined <= ready <= bound + TOLERANCE else None
        return _node_start(created, asked, joined, room), [(Phase.NODE_WAIT, room), (Phase.SCHEDULING, bound)]
    is_new = False if joined is not None or (not had_to_wait and bound - created <= TOLERANCE) else None
    is_quick = bound - created <= SCHEDULING_LIMIT
    room = bound if had_to_wait else created if is_quick else None
    return NodeStart(is_new), [(Phase.NODE_WAIT, room), (Phase.SCHEDULING, bound)]


def _node_start(created: datetime, asked: datetime | None, joined: datetime, ready: datetime | None) -> NodeStart:
    asked_before = asked if asked is not None and created <= asked <= joined else None
    return NodeStart(
        is_new=True,
        decision=(asked_before - created).total_seconds() if asked_before else None,
        creation=(joined - asked_before).total_seconds() if asked_before else None,
        joining=(ready - joined).total_seconds() if ready else None,
    )


def _on_node(facts: StartFacts, pod: Pod) -> Iterable[_Mark]:
    events = facts.events
    inits = {status.name: status for status in pod.status.init_container_statuses}
    images = {image.container: image for image in events.images}
    first = next(iter(events.images), None)
    yield Phase.VOLUMES, first.wanted_at if first else events.pulling_at
    for container in pod.spec.init_containers:
        image = images.get(container.name)
        yield Phase.PULLING, image.there_at if image else None
        status = inits.get(container.name)
        ended = status.state.terminated if status else None
        runs = status.state.running if status else None
        is_sidecar = container.restart_policy == "Always"
        at = runs.started_at if runs and is_sidecar else ended.finished_at if ended else None
        yield Phase.SETUP, events.corrected(at)
    names = {container.name for container in pod.spec.containers}
    mains = [image for image in events.images if image.container in names or not image.container]
    there = max((image.there_at for image in mains), default=None) if len(mains) >= len(names) else None
    yield Phase.PULLING, there
    yield Phase.STARTING, _started_at(facts, pod)
    if _is_probed(pod):
        yield Phase.ANSWERING, _ready_at(facts, pod)
    if facts.is_cluster:
        yield Phase.FIRST_WORKER, None


def _spans(marks: Sequence[_Mark], begin: datetime, end: datetime, *, is_over: bool) -> Iterable[PhaseSpan]:
    """Yield the spans between the marks that are known and in order, and the open one after the last."""
    at, pending = begin, list[Phase]()
    for phase, marked_at in marks:
        if phase not in pending:
            pending.append(phase)
        if marked_at is not None and at - TOLERANCE <= marked_at <= end + TOLERANCE:
            ended = min(max(marked_at, at), end)
            yield PhaseSpan(tuple(pending), at, ended)
            at, pending = ended, []
    if pending and not is_over:
        yield PhaseSpan(tuple(pending[:1]), at, end, is_open=True)


def _bound_at(facts: StartFacts, pod: Pod) -> datetime | None:
    return (true_since(pod, "PodScheduled") or facts.events.scheduled_at) if pod.spec.node_name else None


def _started_at(facts: StartFacts, pod: Pod) -> datetime | None:
    """Return when the last of its containers first started; None while one has not, or when the first start is no longer known."""
    starts: list[datetime] = []
    known = {status.name: status for status in pod.status.container_statuses}
    for container in pod.spec.containers:
        status = known.get(container.name)
        state = (status.state.running or status.state.terminated) if status else None
        last = status.last_state.terminated if status else None
        exact = state.started_at if state else None
        if status is not None and status.restart_count:
            exact = last.started_at if last and status.restart_count == 1 else None
        known_by_event = facts.events.started.get(container.name) or facts.events.started.get("")
        if (start := facts.events.corrected(exact) or known_by_event) is None:
            return None
        starts.append(start)
    return max(starts, default=None)


def true_since(thing: Pod | Node | None, kind: str) -> datetime | None:
    """Return since when the condition is true; None while it is not, or its time is not known."""
    condition = true_condition(thing, kind) if thing is not None else None
    return condition.last_transition_time if condition is not None else None
