"""When each waiting or starting execution is expected to run: the queue played forward many times, with lifetimes and start-ups drawn from
those of the grid's own history; pure. What the history does not tell is not known, with the reason in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from grid.announcements.maintenance import MAINTENANCE
from grid.core.translation import gettext as _, ngettext
from grid.queue import quota
from grid.queue.gate import HELD, TAKEN_OVER, held_words, words_of
from grid.queue.quota import QueuedUnit
from grid.queue.wait_estimate import inputs, starting
from grid.queue.wait_estimate.inputs import SurvivalCurve, WaitEstimate, WaitFacts, Work, chance, curve_of, in_words
from grid.queue.wait_estimate.simulation import Simulation, Taken
from grid.queue.wait_estimate.starting import USUAL_START, RoomRuns
from grid.usage.budgets.rules import CLOSED

# A queue spreads further than its runs: who comes later, and takes a turn before it, is in none of them.
QUEUE_LOW, QUEUE_HIGH = 0.03, 0.97
_MOST_RUNS, _FEWEST_RUNS, _STEPS = 40, 5, 8_000
# By whether their nodes had to be created first, as far as that is known.
_SOON = {
    None: _("It has a slot in a moment; launches like this one usually start within {time}."),
    True: _("It has a slot in a moment; launches like this one that need a new node usually start within {time}."),
    False: _("It has a slot in a moment; launches like this one that find a node usually start within {time}."),
}
_OWNERS_END = _(
    "Its owner's executions usually end after another {rest}; launches like this one usually start within {time}."
)
_TIERS_END = _(
    "Executions on its tier usually end after another {rest}; launches like this one usually start within {time}."
)

_CLOSED = {
    HELD: _("Not known: it starts only after an operator releases it."),
    MAINTENANCE: _("Not known: it starts only when maintenance ends."),
    TAKEN_OVER: _("Not known: an operator decides what starts."),
    CLOSED: _("Not known: it starts only when its project may spend again."),
}
_DEPARTED = _("Not known: it starts only when its owner may launch in its project again.")


def estimates(facts: WaitFacts) -> dict[str, WaitEstimate]:
    queued = {part.execution_id for unit in facts.snapshot.waiting for part in unit.parts}
    holders = [work for work in facts.works.values() if work.id not in queued]
    curves = {work.id: curve_of(facts.lives, work.life_keys, work.age) for work in facts.works.values()}
    room = RoomRuns(facts, curves)
    expected = {work.id: starting.start_estimate(facts, work, room) for work in holders if work.is_starting}
    if not facts.snapshot.waiting:
        return expected
    decisions = quota.admit(facts.snapshot)
    positions = {id: place for place, id in enumerate(quota.order(facts.snapshot), 1)}
    most = _STEPS // (len(facts.snapshot.waiting) + len(holders) + 1)
    taken = Taken(facts.snapshot, (work.holder for work in holders))
    ending = [work for work in holders if curves[work.id] is not None or work.ends_within < inf]
    runs = [_run(facts, taken, ending, curves, number) for number in range(max(_FEWEST_RUNS, min(_MOST_RUNS, most)))]
    left = _UsualRest(holders, curves)
    for unit in facts.snapshot.waiting:
        refused = decisions.refused.get(unit.execution_id)
        estimate = _of_unit(facts, unit, refused, runs, left, positions.get(unit.execution_id, 0))
        if refused is None and unit.execution_id in room.ids:  # a launch that is only asked about
            estimate = starting.after_room(facts, facts.works[unit.execution_id], room)
        expected.update({part.execution_id: estimate for part in unit.parts})
    return expected


def estimate_of(facts: WaitFacts, id: str) -> WaitEstimate | None:
    """Return the estimate of one waiting unit without those that it never meets: who shares neither its owner nor, through others perhaps,
    a tier that may become full. Its position is among the rest."""
    return estimates(_met_by(facts, id)).get(id)


def _met_by(facts: WaitFacts, id: str) -> WaitFacts:
    waiting, maxima = facts.snapshot.waiting, facts.snapshot.tier_maximum
    if any(unit.rank is not None or unit.back_at is not None for unit in waiting):
        return facts  # what was moved stands where it does because of all others
    users, count = {unit.user for unit in waiting if unit.execution_id == id}, 0
    tiers = set[str]()
    while count < len(users) + len(tiers):
        count = len(users) + len(tiers)
        tiers |= {tier for unit in waiting if unit.user in users for tier in unit.tiers if tier in maxima}
        users |= {unit.user for unit in waiting if not tiers.isdisjoint(unit.tiers)}
    room = facts.observed.room
    there = {occupant.execution for occupant in room.occupants} | {seeker.execution for seeker in room.seekers}
    works = {
        work.id: work
        for work in facts.works.values()
        if work.holder.user in users or not tiers.isdisjoint(work.holder.tiers) or work.id in there
    }
    near = tuple(unit for unit in waiting if unit.user in users)
    return replace(facts, snapshot=replace(facts.snapshot, waiting=near), works=works)


def _run(
    facts: WaitFacts, taken: Taken, ending: Sequence[Work], curves: Mapping[str, SurvivalCurve | None], number: int
) -> Mapping[str, float]:
    def life(work: Work) -> float:
        drawn, curve = (work.id, work.age, number), curves[work.id]
        if curve is None:
            return work.ends_within
        if drawn not in facts.drawn:
            facts.drawn[drawn] = work.rest(curve, chance(work.id, number))
        return facts.drawn[drawn]

    def holds(unit: QueuedUnit) -> float:
        return max(life(facts.works[part.execution_id]) for part in unit.parts)

    ends = [(seconds, work.holder) for work in ending if (seconds := life(work)) < inf]
    return Simulation(facts.snapshot, taken, ends, holds).starts()


class _UsualRest:
    """How long what holds slots usually goes on, of a user or of tiers; each is worked out once."""

    def __init__(self, holders: Sequence[Work], curves: Mapping[str, SurvivalCurve | None]) -> None:
        self.holders = holders
        self._curves = curves
        self._known: dict[int | frozenset[str], float | None] = {}

    def of(self, whose: int | frozenset[str]) -> float | None:
        """Return the median in seconds; None when it is not known."""
        if whose not in self._known:  # `functools.cache` of a method would keep this alive in a cycle
            self._known[whose] = self._median(whose)
        return self._known[whose]

    def _median(self, whose: int | frozenset[str]) -> float | None:
        rests = sorted(
            work.rest(self._curves[work.id], 0.5)
            for work in self.holders
            if (work.holder.user == whose if isinstance(whose, int) else whose.intersection(work.holder.tiers))
            and (self._curves[work.id] is not None or work.ends_within < inf)
        )
        median = rests[len(rests) // 2] if rests else inf
        return median if median < inf else None


def _of_unit(
    facts: WaitFacts,
    unit: QueuedUnit,
    refused: quota.Deferred | None,
    runs: Sequence[Mapping[str, float]],
    left: _UsualRest,
    position: int,
) -> WaitEstimate:
    if unit.closed is not None:
        why = held_words(unit.closed.values) if unit.closed.code == HELD else words_of(unit.closed)
        return WaitEstimate(None, why=f"{_CLOSED.get(unit.closed.code, _DEPARTED)} {why}")
    maxima, taken = facts.snapshot.tier_maximum, Counter(unit.tiers)
    is_beyond_tier = any(count > maxima.get(tier, count) for tier, count in taken.items())
    if refused is not None and (unit.slots > facts.snapshot.slots_per_user or is_beyond_tier):
        return WaitEstimate(None, position=position, refusal=refused.reason)
    if refused is not None and all(unit.execution_id not in run for run in runs):
        return WaitEstimate(None, why=_why_not(facts, left.holders), position=position)
    first = facts.works[unit.execution_id]
    curve, needs = starting.queued_curve(facts, first), None
    if refused is None:
        curve, needs = starting.start_curve(facts, first)
    if curve is None:
        why = _("Not known yet: too few launches like this one have started.")
        return WaitEstimate(None, why=why, position=position)
    waits, id = [run.get(unit.execution_id, inf) for run in runs], unit.execution_id
    samples = sorted(at + curve.remaining(chance(f"start {id}", number)) for number, at in enumerate(waits))
    shares = (0.5, inputs.LOW, inputs.HIGH) if refused is None else (0.5, QUEUE_LOW, QUEUE_HIGH)
    usual = in_words(curve.remaining(0.5))
    why = _SOON[needs].format(time=usual) if refused is None else _why(facts, unit, refused, left, usual)
    at_shares = [inputs.at_share(samples, share) for share in shares]
    return inputs.of_shares(at_shares, why, _why_not(facts, left.holders), position)


def _why_not(facts: WaitFacts, holders: Sequence[Work]) -> str:
    if any(curve_of(facts.lives, work.life_keys) is None for work in holders):
        return _("Not known yet: too few executions like those that hold the slots have ended.")
    return _("Not known: what it waits for runs longer than nearly all executions like it did.")


def _why(facts: WaitFacts, unit: QueuedUnit, refused: quota.Deferred, left: _UsualRest, usual: str) -> str:
    if refused.code == "over_user_slots":
        sentence, rest = _OWNERS_END, left.of(unit.user)
    else:
        tiers = frozenset(tier for tier in unit.tiers if tier in facts.snapshot.tier_maximum)
        sentence, rest = _TIERS_END, left.of(tiers)
    if rest is None:
        sentence, rest = USUAL_START[None], 0.0
    sentence = sentence.format(rest=in_words(rest), time=usual)
    if refused.position < 2:
        return sentence
    before = ngettext("{count:,} execution before it.", "{count:,} executions before it.", refused.position - 1)
    return f"{before} {sentence}"
