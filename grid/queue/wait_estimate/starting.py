"""How long what has its slots still takes to run: the wait for room on nodes, the pull of its image, and the rest of its start; pure. Each
part is drawn from what was seen of it. What is not known of a part is taken from whole starts alike, and what is not known of those either
is not claimed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from operator import add

from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _, ngettext
from grid.diagnosis.resources import ResourceAmounts
from grid.queue.wait_estimate import inputs
from grid.queue.wait_estimate.capacity import RoomSeeker, fits, room_waits
from grid.queue.wait_estimate.inputs import SurvivalCurve, WaitEstimate, WaitFacts, Work, chance, curve_of, in_words
from grid.queue.wait_estimate.observing import OnNode

# By whether their nodes had to be created first, as far as that is known.
USUAL_START = {
    None: _("Launches like this one usually start within {time}."),
    True: _("Launches like this one that need a new node usually start within {time}."),
    False: _("Launches like this one that find a node usually start within {time}."),
}
_TOO_FEW = _("Not known yet: too few launches like this one have started.")
_TOO_LONG = _("Not known: starting takes longer than nearly all launches like this one took.")
_FOREIGN = _("Not known: the pods on the nodes that it may use are no executions, and nothing tells when they end.")
_MOST_RUNS, _FEWEST_RUNS, _STEPS = 40, 5, 40_000


def start_curve(facts: WaitFacts, work: Work, age: float = 0.0) -> tuple[SurvivalCurve | None, bool | None]:
    """Return the curve of the starts alike, by preference those that needed a node as it does, and whether these needed one."""
    needs = facts.observed.new_nodes.get(work.id)
    if needs is not None:
        alike = curve_of(facts.starts, [inputs.with_node(key, needs) for key in work.start_keys], age)
        if alike is not None:
            return alike, needs
    return curve_of(facts.starts, work.start_keys, age), None


def queued_curve(facts: WaitFacts, work: Work) -> SurvivalCurve | None:
    """Return the curve of the starts alike, by preference those that waited for slots: where these are short, so is room on the nodes."""
    keys = [(*key, inputs.QUEUED) for key in work.start_keys]
    return curve_of(facts.starts, keys) or curve_of(facts.starts, work.start_keys)


def start_estimate(facts: WaitFacts, work: Work, room: "RoomRuns") -> WaitEstimate:
    """Return the estimate of an execution that has its slots and does not run yet."""
    if work.id in room.ids:
        return after_room(facts, work, room)
    seen = facts.observed.on_node.get(work.id)
    if seen is not None and (estimate := _on_node(facts, work, seen)) is not None:
        return estimate
    curve, needs = start_curve(facts, work, work.age)
    if curve is None:
        return WaitEstimate(None, why=_TOO_FEW if curve_of(facts.starts, work.start_keys) is None else _TOO_LONG)
    return _of_curve(curve, work.age, USUAL_START[needs])


def _of_curve(curve: SurvivalCurve, age: float, why: str) -> WaitEstimate:
    shares = [curve.remaining(share, age) for share in (0.5, inputs.LOW, inputs.HIGH)]
    return inputs.of_shares(shares, why.format(time=in_words(curve.remaining(0.5))), _TOO_LONG)


def _of_samples(samples: Sequence[float], why: str) -> WaitEstimate:
    ordered = sorted(samples)
    shares = [inputs.at_share(ordered, share) for share in (0.5, inputs.LOW, inputs.HIGH)]
    return inputs.of_shares(shares, why, _TOO_LONG)


@dataclass(frozen=True, slots=True)
class Pull:
    """The pull of an image of so many bytes, at the pace of its pool; `curve` is of the seconds for each byte."""

    size: int
    curve: SurvivalCurve

    def covers(self, seconds: float) -> bool:
        return self.curve.covers(seconds / self.size)

    def remaining(self, share: float, seconds: float = 0.0) -> float:
        return self.size * self.curve.remaining(share, seconds / self.size)


def pull_of(facts: WaitFacts, pool: str, image: str, size: int | None) -> Pull | None:
    """Return the pull of an image onto a node of the pool; None when its size or the pool's pace is not known."""
    bytes_known, pace = size or facts.image_sizes.get(image), facts.paces.get(pool)
    return Pull(bytes_known, pace) if bytes_known and pace is not None and pace.covers(0.0) else None


def _on_node(facts: WaitFacts, work: Work, seen: OnNode) -> WaitEstimate | None:
    """Return the estimate of a pod on its node, by whether its image is there; None when too little is known of starts on nodes."""
    pull = None if seen.has_image else pull_of(facts, work.pool, seen.image, seen.size)
    if not seen.has_image and (seen.has_image is None or pull is None):
        why = _("Launches like this one that have a node usually start within {time}.")
        return _placed(facts, work, seen.seconds, with_pull=True, why=why)
    if pull is None:
        why = _("Launches that have their image usually start within {time}.")
        return _placed(facts, work, seen.seconds - seen.pulling, with_pull=False, why=why)
    if not pull.covers(seen.pulling):
        return WaitEstimate(None, why=_("Not known: pulling its image takes longer than nearly all pulls here took."))
    age = max(0.0, seen.seconds - seen.pulling)
    keys = [inputs.placed(key, with_pull=False) for key in work.start_keys]
    rest = curve_of(facts.starts, keys, age)
    if rest is None:
        return None if curve_of(facts.starts, keys) is None else WaitEstimate(None, why=_TOO_LONG)
    pulls = [pull.remaining(chance(f"pull {work.id}", number), seen.pulling) for number in range(_MOST_RUNS)]
    rests = [rest.remaining(chance(f"start {work.id}", number), age) for number in range(_MOST_RUNS)]
    why = _(
        "Its image of {size} is pulled, usually in about {pull} here; launches like this one then start within {time}."
    )
    usual_pull, usual_rest = in_words(pull.remaining(0.5)), in_words(rest.remaining(0.5))
    why = why.format(size=format_bytes(pull.size), pull=usual_pull, time=usual_rest)
    return _of_samples(list(map(add, pulls, rests)), why)


def _placed(facts: WaitFacts, work: Work, age: float, *, with_pull: bool, why: str) -> WaitEstimate | None:
    age, keys = max(0.0, age), [inputs.placed(key, with_pull=with_pull) for key in work.start_keys]
    curve = curve_of(facts.starts, keys, age)
    if curve is None:
        return None if curve_of(facts.starts, keys) is None else WaitEstimate(None, why=_TOO_LONG)
    return _of_curve(curve, age, why)


class RoomRuns:
    """The wait for room played forward many times, with lifetimes drawn from the history; `curves` are those of the present executions at
    their age, by id. `ids` are the executions that wait for room."""

    def __init__(self, facts: WaitFacts, curves: Mapping[str, SurvivalCurve | None]) -> None:
        self._facts, self._curves = facts, curves
        self._room = facts.observed.room
        self._seekers: dict[str, RoomSeeker] = {}
        for seeker in sorted(self._room.seekers, key=lambda seeker: seeker.rank, reverse=True):
            if seeker.part:
                self._seekers[seeker.execution] = seeker  # the first of its pods in line
        self.ids = self._seekers.keys()

    @cached_property
    def runs(self) -> Sequence[Mapping[str, float]]:
        steps = len(self._room.seekers) + len(self._room.occupants) + 1
        return [self._run(number) for number in range(max(_FEWEST_RUNS, min(_MOST_RUNS, _STEPS // steps)))]

    def before(self, id: str) -> int:
        """Return how many pods that may use its nodes are before it in the scheduler's line."""
        own = self._seekers[id]
        others = (seeker for seeker in self._room.seekers if seeker.execution != id and seeker.rank < own.rank)
        return sum(not seeker.nodes.isdisjoint(own.nodes) for seeker in others)

    def why_unknown(self, id: str) -> str:
        own, ended = self._seekers[id], self._ended
        if not any(fits(own.requests, ended[node]) for node in own.nodes & ended.keys()):
            return _FOREIGN
        if not own.nodes.isdisjoint(self._of_unknown_length):
            return _("Not known yet: too few executions like those that hold the nodes have ended.")
        return _("Not known: what holds the nodes runs longer than nearly all executions like it did.")

    @cached_property
    def _ended(self) -> Mapping[str, ResourceAmounts]:
        return self._room.when_ended()

    @cached_property
    def _of_unknown_length(self) -> frozenset[str]:
        """The nodes with executions of which nobody knows how long such take."""
        works, lives = self._facts.works, self._facts.lives
        there = ((occupant.node, works.get(occupant.execution)) for occupant in self._room.occupants)
        return frozenset([node for node, work in there if work is not None and curve_of(lives, work.life_keys) is None])

    def _run(self, number: int) -> Mapping[str, float]:
        rest, holds = dict[str, float](), dict[str, float]()
        for id in {occupant.execution for occupant in self._room.occupants}:
            if (work := self._facts.works.get(id)) is not None:
                rest[id] = work.rest(self._curves[id], chance(id, number))
        for id in {seeker.execution for seeker in self._room.seekers}:
            work = self._facts.works.get(id)
            life = curve_of(self._facts.lives, work.life_keys) if work is not None else None
            if life is not None:
                holds[id] = life.remaining(chance(id, number))
        return room_waits(self._room, rest, holds)


def after_room(facts: WaitFacts, work: Work, room: RoomRuns) -> WaitEstimate:
    """Return the estimate of an execution whose pods wait for room: that wait, and then a start on a node that is there."""
    keys = work.start_keys
    curve = curve_of(facts.starts, [inputs.placed(key, with_pull=True) for key in keys]) or curve_of(
        facts.starts, [*(inputs.with_node(key, False) for key in keys), *keys]
    )
    waits = [run.get(work.id, inf) for run in room.runs]
    usual = inputs.at_share(sorted(waits), 0.5)
    if usual == inf:
        return WaitEstimate(None, why=room.why_unknown(work.id))
    if curve is None:
        return WaitEstimate(None, why=_TOO_FEW)
    samples = [seconds + curve.remaining(chance(f"start {work.id}", number)) for number, seconds in enumerate(waits)]
    before = room.before(work.id)
    why = _("Room for it is usually free after another {usual}; launches like this one then start within {time}.")
    why = why.format(usual=in_words(usual), time=in_words(curve.remaining(0.5)))
    if before:
        why = f"{ngettext('{count:,} pod before it.', '{count:,} pods before it.', before)} {why}"
    return _of_samples(samples, why)
