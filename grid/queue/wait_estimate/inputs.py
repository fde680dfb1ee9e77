"""What an estimate is made of, and what all its parts look up; pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from zlib import crc32

from grid.core.reasons import Reason
from grid.core.translation import gettext as _
from grid.core.wording import duration
from grid.queue.quota import QuotaSnapshot
from grid.queue.wait_estimate.observing import Observed
from grid.queue.wait_estimate.simulation import Holder

FEWEST = 5  # below this number of known durations nothing is said
_FEWEST_LONGER = 2  # of them longer than the present age
LOW, HIGH = 0.1, 0.9  # shares of the range
_MASK = (1 << 64) - 1
Key = tuple[str, ...]
QUEUED = "queued"  # ends the key of those starts of a group that had waited for their slots


class SurvivalCurve:
    """How long executions of one kind last or take to start: the survival estimate of Kaplan and Meier. `durations` are pairs of seconds,
    and whether that was the end; what is still under way counts as "at least so long", so that short ones do not count twice."""

    def __init__(self, durations: Iterable[tuple[float, bool]]) -> None:
        ordered = sorted((seconds, not is_over) for seconds, is_over in durations)
        self.known = sum(not is_open for _, is_open in ordered)
        self._times: list[float] = []
        self._ended: list[float] = []  # the share that has ended by that time
        left, alive = len(ordered), 1.0
        for seconds, is_open in ordered:
            if not is_open:
                alive *= (left - 1) / left
                self._times.append(seconds)
                self._ended.append(1.0 - alive)
            left -= 1

    def covers(self, age: float) -> bool:
        """Return whether enough is known to say something of one that is `age` seconds old."""
        return self.known >= FEWEST and (
            age <= 0 or len(self._times) - bisect_right(self._times, age) >= _FEWEST_LONGER
        )

    def remaining(self, share: float, age: float = 0.0) -> float:
        """Return the seconds from `age` within which this share of those of that age ends; infinity when that was never seen."""
        place = bisect_right(self._times, age)
        ended = self._ended[place - 1] if place else 0.0
        index = bisect_left(self._ended, ended + share * (1.0 - ended) - 1e-12, lo=place)
        return max(0.0, self._times[index] - age) if index < len(self._times) else inf


@dataclass(frozen=True, slots=True)
class Work:
    """One execution that holds slots, or would: by what its lifetime and its start-up are looked up, the closest alike first. `age` is
    the seconds for which it has held slots, `pool` that of its first pod; `ends_within` are the seconds until a stop that was announced."""

    id: str
    holder: Holder
    life_keys: tuple[Key, ...]
    start_keys: tuple[Key, ...]
    age: float = 0.0
    is_starting: bool = False
    pool: str = ""
    ends_within: float = inf

    def rest(self, curve: SurvivalCurve | None, share: float) -> float:
        """Return the seconds within which this share of such executions ends, or the announced stop ends it; `curve` is of its lifetime."""
        return min(self.ends_within, curve.remaining(share, self.age) if curve is not None else inf)


@dataclass(frozen=True, slots=True)
class WaitEstimate:
    """The seconds until it runs, with the range in which four of five should fall; `expected` is None when it is not known, `high` when
    it may take for ever. `why` says what it is based on, or why it is not known. `position` counts from 1 in the whole queue; 0 when
    it does not wait, or is held; `refusal` is why it cannot start as it is."""

    expected: float | None
    low: float = 0.0
    high: float | None = None
    why: str = ""
    position: int = 0
    refusal: Reason | None = None


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """What an estimate is made of. `works` has all parts of `snapshot.waiting` and all that hold slots, by id. `starts` are from getting
    slots until running; with the keys of `with_node` of some of them, and with those of `placed` from having a node. `paces` are the
    seconds for each byte of the pulls of a pool, `image_sizes` bytes by image. `drawn` is how long executions go on, by id, age and
    run, once that was looked up."""

    snapshot: QuotaSnapshot
    works: Mapping[str, Work]
    lives: Mapping[Key, SurvivalCurve]
    starts: Mapping[Key, SurvivalCurve]
    paces: Mapping[str, SurvivalCurve] = field(default_factory=dict)
    image_sizes: Mapping[str, int] = field(default_factory=dict)
    observed: Observed = field(default_factory=Observed)
    drawn: dict[tuple[str, float, int], float] = field(default_factory=dict)


def with_node(key: Key, is_new: bool) -> Key:
    """Return the key of those starts of a group whose node had to be created first, or was there."""
    return (*key, "new node" if is_new else "node")


def placed(key: Key, *, with_pull: bool) -> Key:
    """Return the key of a group's starts counted from having a node, with or without the pull of the image."""
    return (*key, "placed" if with_pull else "placed, without the pull")


def curve_of(curves: Mapping[Key, SurvivalCurve], keys: Sequence[Key], age: float = 0.0) -> SurvivalCurve | None:
    """Return the curve of the closest alike of which enough is known; None when nothing is."""
    for key in keys:  # thousands of times for one estimate, for which a generator takes twice as long
        curve = curves.get(key)
        if curve is not None and curve.covers(age):
            return curve
    return None


def chance(id: str, run: int) -> float:
    """Return a number from 0 to 1 that is always the same for this execution in this run, so that an estimate does not flicker."""
    mixed = (crc32(id.encode()) + run * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) / _MASK


def of_shares(shares: Sequence[float], why: str, unknown: str, position: int = 0) -> WaitEstimate:
    """Return the estimate from its median and the ends of its range; an infinite median is not known, for the reason `unknown`."""
    expected, low, high = shares
    if expected == inf:
        return WaitEstimate(None, why=unknown, position=position)
    return WaitEstimate(expected, low, None if high == inf else high, why, position)


def at_share(samples: Sequence[float], share: float) -> float:
    """Return the sample that this share of the sorted ones does not exceed."""
    return samples[min(len(samples) - 1, int(share * len(samples)))]


def in_words(seconds: float) -> str:
    return duration(timedelta(seconds=seconds)) if seconds < inf else _("a time that is not known")
