"""When each waiting or starting execution is expected to run: the queue played forward many times, with lifetimes and start-ups drawn from
those of the grid's own history; pure. What the history does not tell is not known, with the reason in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from grid.announcements.rules import MAINTENANCE
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.queue import quota
from grid.queue.gate import HELD, TAKEN_OVER, held_words, words_of
from grid.queue.queue import QueuedUnit
from grid.queue.wait_estimate.inputs import (
    HIGH,
    LOW,
    WaitEstimate,
    WaitFacts,
    Work,
    at_share,
    chance,
    curve_of,
    in_words,
)
from grid.queue.wait_estimate.simulation import Simulation
from grid.queue.wait_estimate.starting import (
    USUAL_START,
    RoomRuns,
    after_room,
    queued_curve,
    start_curve,
    start_estimate,
)
from grid.queue.wait_estimate.survival import SurvivalCurve
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
    """Return the estimate of every execution that waits or starts, by id."""
    queued = {part.execution_id for one in facts.snapshot.waiting for part in one.parts}
    holders = [work for work in facts.works.values() if work.id not in queued]
    curves = {work.id: curve_of(facts.lives, work.life_keys, work.age) for work in facts.works.values()}
    room = RoomRuns(facts, curves)
    found = {work.id: start_estimate(facts, work, room) for work in holders if work.is_starting}
    if not facts.snapshot.waiting:
        return found
    decisions = quota.admit(facts.snapshot)
    positions = {id: place for place, id in enumerate(quota.order(facts.snapshot), 1)}
    runs = [_run(facts, holders, curves, number) for number in range(_runs(facts, holders))]
    left = _UsualRest(holders, curves)
    for one in facts.snapshot.waiting:
        refused = decisions.refused.get(one.execution_id)
        estimate = _of_unit(facts, one, refused, runs, left, positions.get(one.execution_id, 0))
        if refused is None and one.execution_id in room.ids:  # a launch that is only asked about
            estimate = after_room(facts, facts.works[one.execution_id], room)
        found.update({part.execution_id: estimate for part in one.parts})
    return found


def _runs(facts: WaitFacts, holders: Sequence[Work]) -> int:
    return max(_FEWEST_RUNS, min(_MOST_RUNS, _STEPS // (len(facts.snapshot.waiting) + len(holders) + 1)))


def _run(
    facts: WaitFacts, holders: Sequence[Work], curves: Mapping[str, SurvivalCurve | None], number: int
) -> Mapping[str, float]:
    def life(work: Work) -> float:
        return work.rest(curves[work.id], chance(work.id, number))

    def holds(one: QueuedUnit) -> float:
        return max(life(facts.works[part.execution_id]) for part in one.parts)

    return Simulation(facts.snapshot, [(life(work), work.holder) for work in holders], holds).starts()


class _UsualRest:
    """How long what holds slots usually goes on, of a user or of tiers; each is worked out once."""

    def __init__(self, holders: Sequence[Work], curves: Mapping[str, SurvivalCurve | None]) -> None:
        self.holders = holders
        self._curves = curves
        self._known: dict[int | frozenset[str], float | None] = {}

    def of(self, whose: int | frozenset[str]) -> float | None:
        """Return the median in seconds; None when it is not known."""
        if whose not in self._known:
            rests = sorted(
                work.rest(curve, 0.5)
                for work, curve in ((one, self._curves[one.id]) for one in self.holders)
                if (work.holder.user == whose if isinstance(whose, int) else whose.intersection(work.holder.tiers))
                and (curve is not None or work.ends_within < inf)
            )
            median = rests[len(rests) // 2] if rests else inf
            self._known[whose] = median if median < inf else None
        return self._known[whose]


def _of_unit(
    facts: WaitFacts,
    one: QueuedUnit,
    refused: quota.Deferred | None,
    runs: Sequence[Mapping[str, float]],
    left: _UsualRest,
    position: int,
) -> WaitEstimate:
    if one.closed is not None:
        why = held_words(one.closed.values) if one.closed.code == HELD else words_of(one.closed)
        return WaitEstimate(None, why=f"{_CLOSED.get(one.closed.code, _DEPARTED)} {why}")
    if refused is not None and _never_starts(facts.snapshot, one):
        return WaitEstimate(None, position=position, refusal=refused.reason)
    if refused is not None and all(one.execution_id not in run for run in runs):
        return WaitEstimate(None, why=_why_not(facts, left.holders), position=position)
    first = facts.works[one.execution_id]
    curve, needs = start_curve(facts, first) if refused is None else (queued_curve(facts, first), None)
    if curve is None:
        why = _("Not known yet: too few launches like this one have started.")
        return WaitEstimate(None, why=why, position=position)
    samples = sorted(
        run.get(one.execution_id, inf) + curve.remaining(chance(f"start {one.execution_id}", number))
        for number, run in enumerate(runs)
    )
    shares = (0.5, LOW, HIGH) if refused is None else (0.5, QUEUE_LOW, QUEUE_HIGH)
    expected, low, high = (at_share(samples, share) for share in shares)
    if expected == inf:
        return WaitEstimate(None, why=_why_not(facts, left.holders), position=position)
    usual = in_words(curve.remaining(0.5))
    why = _SOON[needs].format(time=usual) if refused is None else _why(facts, one, refused, left, usual)
    return WaitEstimate(expected, low, None if high == inf else high, why, position)


def _never_starts(snapshot: quota.QuotaSnapshot, one: QueuedUnit) -> bool:
    """Return whether the unit takes more than the limits allow, however long it waits."""
    maxima, taken = snapshot.tier_maximum, Counter(one.tiers)
    return one.slots > snapshot.slots_per_user or any(count > maxima.get(tier, count) for tier, count in taken.items())


def _why_not(facts: WaitFacts, holders: Sequence[Work]) -> str:
    if any(curve_of(facts.lives, work.life_keys) is None for work in holders):
        return _("Not known yet: too few executions like those that hold the slots have ended.")
    return _("Not known: what it waits for runs longer than nearly all executions like it did.")


def _why(facts: WaitFacts, one: QueuedUnit, refused: quota.Deferred, left: _UsualRest, usual: str) -> str:
    if refused.code == "over_user_slots":
        sentence, rest = _OWNERS_END, left.of(one.user)
    else:
        tiers = frozenset(tier for tier in one.tiers if tier in facts.snapshot.tier_maximum)
        sentence, rest = _TIERS_END, left.of(tiers)
    if rest is None:
        sentence, rest = USUAL_START[None], 0.0
    sentence = sentence.format(rest=in_words(rest), time=usual)
    if refused.position < 2:
        return sentence
    before = ngettext("{count:,} execution before it.", "{count:,} executions before it.", refused.position - 1)
    return f"{before} {sentence}"
