"""When each waiting or starting execution is expected to run: the queue played forward many times, with lifetimes and start-ups drawn from
those of the grid's own history; pure. What the history does not tell is not known, with the reason in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from zlib import crc32

from grid.launch import quota
from grid.launch.expectation.curve import Curve
from grid.launch.expectation.simulation import Holder, Simulation
from grid.launch.queue import QueuedUnit
from grid.launch.quota import QuotaSnapshot
from grid.wording import duration, plural

LOW, HIGH = 0.1, 0.9  # shares of the range
# A queue spreads further than its runs: who comes later, and takes a turn before it, is in none of them.
QUEUE_LOW, QUEUE_HIGH = 0.03, 0.97
_MOST_RUNS, _FEWEST_RUNS, _STEPS = 40, 5, 8_000
_MASK = (1 << 64) - 1

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """One execution that holds slots, or would: by what its lifetime and its start-up are looked up, the closest alike first. `age` is
    the seconds for which it has held slots."""

    id: str
    holder: Holder
    life_keys: tuple[Key, ...]
    start_keys: tuple[Key, ...]
    age: float = 0.0
    is_starting: bool = False


@dataclass(frozen=True, slots=True)
class WaitEstimate:
    """The seconds until it runs, with the range in which four of five should fall; `expected` is None when it is not known, `high` when
    it may take for ever. `why` says what it is based on, or why it is not known. `position` counts from 1 in the whole queue; 0 when
    it does not wait, or is held."""

    expected: float | None
    low: float = 0.0
    high: float | None = None
    why: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """What an estimate is made of. `works` has all parts of `snapshot.waiting` and all that hold slots, by id. `new_nodes`
    says of an execution that starts now whether it needs a node that is not there yet, or finds one; of others it says nothing."""

    snapshot: QuotaSnapshot
    works: Mapping[str, Work]
    lives: Mapping[Key, Curve]
    starts: Mapping[Key, Curve]
    new_nodes: Mapping[str, bool] = field(default_factory=dict)


def estimates(facts: WaitFacts) -> dict[str, WaitEstimate]:
    """Return the estimate of every execution that waits or starts, by id."""
    queued = {part.execution_id for one in facts.snapshot.waiting for part in one.parts}
    holders = [work for work in facts.works.values() if work.id not in queued]
    found = {work.id: _of_start(facts, work) for work in holders if work.is_starting}
    if not facts.snapshot.waiting:
        return found
    decisions = quota.admit(facts.snapshot)
    positions = {id: place for place, id in enumerate(quota.order(facts.snapshot), 1)}
    curves = {work.id: curve_of(facts.lives, work.life_keys, work.age) for work in facts.works.values()}
    runs = [_run(facts, holders, curves, number) for number in range(_runs(facts, holders))]
    left = _UsualRest(holders, curves)
    for one in facts.snapshot.waiting:
        refused = decisions.refused.get(one.execution_id)
        estimate = _of_unit(facts, one, refused, runs, left, positions.get(one.execution_id, 0))
        found.update({part.execution_id: estimate for part in one.parts})
    return found


def _runs(facts: WaitFacts, holders: Sequence[Work]) -> int:
    return max(_FEWEST_RUNS, min(_MOST_RUNS, _STEPS // (len(facts.snapshot.waiting) + len(holders) + 1)))


def _run(
    facts: WaitFacts, holders: Sequence[Work], curves: Mapping[str, Curve | None], number: int
) -> Mapping[str, float]:
    def life(work: Work) -> float:
        curve = curves[work.id]
        return curve.remaining(chance(work.id, number), work.age) if curve is not None else inf

    def holds(one: QueuedUnit) -> float:
        return max(life(facts.works[part.execution_id]) for part in one.parts)

    return Simulation(facts.snapshot, [(life(work), work.holder) for work in holders], holds).starts()


class _UsualRest:
    """How long what holds slots usually goes on, of a user or of tiers; each is worked out once."""

    def __init__(self, holders: Sequence[Work], curves: Mapping[str, Curve | None]) -> None:
        self.holders = holders
        self._curves = curves
        self._known: dict[int | frozenset[str], float | None] = {}

    def of(self, whose: int | frozenset[str]) -> float | None:
        """Return the median in seconds; None when it is not known."""
        if whose not in self._known:
            rests = sorted(
                curve.remaining(0.5, work.age)
                for work in self.holders
                if (work.holder.user == whose if isinstance(whose, int) else whose.intersection(work.holder.tiers))
                and (curve := self._curves[work.id]) is not None
            )
            median = rests[len(rests) // 2] if rests else inf
            self._known[whose] = median if median < inf else None
        return self._known[whose]


def curve_of(curves: Mapping[Key, Curve], keys: Sequence[Key], age: float = 0.0) -> Curve | None:
    """Return the curve of the closest alike of which enough is known; None when nothing is."""
    return next((curve for key in keys if (curve := curves.get(key)) is not None and curve.covers(age)), None)


def chance(id: str, run: int) -> float:
    """Return a number from 0 to 1 that is always the same for this execution in this run, so that an estimate does not flicker."""
    mixed = (crc32(id.encode()) + run * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) / _MASK


def _start_curve(facts: WaitFacts, work: Work, age: float = 0.0) -> tuple[Curve | None, str]:
    """Return the curve of the starts alike, and what those are in words: by preference those that needed a node as it does."""
    needs = facts.new_nodes.get(work.id)
    if needs is not None:
        alike = curve_of(facts.starts, [with_node(key, needs) for key in work.start_keys], age)
        if alike is not None:
            return alike, f"launches like this one {'that need a new node' if needs else 'that find a node'}"
    return curve_of(facts.starts, work.start_keys, age), "launches like this one"


def with_node(key: Key, is_new: bool) -> Key:
    """Return the key of those starts of a group whose node had to be created first, or was there."""
    return (*key, "new node" if is_new else "node")


def _of_start(facts: WaitFacts, work: Work) -> WaitEstimate:
    curve, alike = _start_curve(facts, work, work.age)
    if curve is None:
        if curve_of(facts.starts, work.start_keys) is None:
            return WaitEstimate(None, why="Not known yet: too few launches like this one have started.")
        return WaitEstimate(None, why="Not known: starting takes longer than nearly all launches like this one took.")
    expected, low, high = (curve.remaining(share, work.age) for share in (0.5, LOW, HIGH))
    if expected == inf:
        return WaitEstimate(None, why="Not known: starting takes longer than nearly all launches like this one took.")
    why = f"{alike.capitalize()} usually start within {_words(curve.remaining(0.5))}."
    return WaitEstimate(expected, low, None if high == inf else high, why)


def _of_unit(
    facts: WaitFacts,
    one: QueuedUnit,
    refused: quota.Deferred | None,
    runs: Sequence[Mapping[str, float]],
    left: _UsualRest,
    position: int,
) -> WaitEstimate:
    if refused is not None and refused.code == "held":
        return WaitEstimate(None, why=f"Not known: it starts only after an operator releases it. {one.hold}")
    if refused is not None and refused.code == "over_budget":
        return WaitEstimate(None, why=f"Not known: it starts only when its project may spend again. {one.over_budget}")
    if refused is not None and _never_starts(facts.snapshot, one):
        return WaitEstimate(None, why=f"It cannot start as it is: {refused.message}", position=position)
    if refused is not None and all(one.execution_id not in run for run in runs):
        return WaitEstimate(None, why=_why_not(facts, left.holders), position=position)
    first = facts.works[one.execution_id]
    curve, alike = (
        _start_curve(facts, first)
        if refused is None
        else (curve_of(facts.starts, first.start_keys), "launches like this one")
    )
    if curve is None:
        why = "Not known yet: too few launches like this one have started."
        return WaitEstimate(None, why=why, position=position)
    samples = sorted(
        run.get(one.execution_id, inf) + curve.remaining(chance(f"start {one.execution_id}", number))
        for number, run in enumerate(runs)
    )
    shares = (0.5, LOW, HIGH) if refused is None else (0.5, QUEUE_LOW, QUEUE_HIGH)
    expected, low, high = (_at(samples, share) for share in shares)
    if expected == inf:
        return WaitEstimate(None, why=_why_not(facts, left.holders), position=position)
    why = _why(facts, one, refused, left, f"{alike} usually start within {_words(curve.remaining(0.5))}")
    return WaitEstimate(expected, low, None if high == inf else high, why, position)


def _never_starts(snapshot: quota.QuotaSnapshot, one: QueuedUnit) -> bool:
    """Return whether the unit takes more than the limits allow, however long it waits."""
    maxima, taken = snapshot.tier_maximum, Counter(one.tiers)
    return one.slots > snapshot.slots_per_user or any(count > maxima.get(tier, count) for tier, count in taken.items())


def _at(samples: Sequence[float], share: float) -> float:
    return samples[min(len(samples) - 1, int(share * len(samples)))]


def _why_not(facts: WaitFacts, holders: Sequence[Work]) -> str:
    if any(curve_of(facts.lives, work.life_keys) is None for work in holders):
        return "Not known yet: too few executions like those that hold the slots have ended."
    return "Not known: what it waits for runs longer than nearly all executions like it did."


def _why(facts: WaitFacts, one: QueuedUnit, refused: quota.Deferred | None, left: _UsualRest, usual: str) -> str:
    if refused is None:
        return f"It has a slot in a moment; {usual}."
    if refused.code == "over_user_slots":
        what, rest = "Its owner's executions", left.of(one.user)
    else:
        tiers = frozenset(tier for tier in one.tiers if tier in facts.snapshot.tier_maximum)
        what, rest = "Executions on its tier", left.of(tiers)
    before = f"{plural(refused.position - 1, 'execution')} before it. " if refused.position > 1 else ""
    if rest is None:
        return f"{before}{usual[0].upper()}{usual[1:]}."
    return f"{before}{what} usually end after another {_words(rest)}; {usual}."


def _words(seconds: float) -> str:
    return duration(timedelta(seconds=seconds)) if seconds < inf else "a time that is not known"
