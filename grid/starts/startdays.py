"""Adds up the starts of a day, or of several: how many there were, how many were cold, and how long each phase took; pure. Times are
counted in buckets, each of which reaches 5 % further than the one before. So a percentile of any number of starts costs the same, and is
at most ACCURACY_PERCENT from the exact one; what is shorter than _LEAST counts as nothing."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from grid.core.decoding import prepared

Counts = dict[int, int]

ACCURACY_PERCENT = 2.5
SLOWEST = 20
WHOLE, MERGED = "total", "merged"
_LEAST, _GROWTH = 0.05, 1.05


class StartSums(msgspec.Struct):
    """The starts of a group. `times` are buckets by column of `grid.models.StartUp`; `slowest` are the seconds and ids of the slowest."""

    starts: int = 0
    image_pulled: int = 0
    image_known: int = 0
    new_node: int = 0
    node_known: int = 0
    times: dict[str, Counts] = msgspec.field(default_factory=dict)
    slowest: list[tuple[float, str]] = msgspec.field(default_factory=list)


def bucket_of(seconds: float) -> int:
    return 0 if seconds < _LEAST else 1 + int(math.log(seconds / _LEAST) / math.log(_GROWTH))


def seconds_of(bucket: int) -> float:
    """Return the middle of a bucket, as a ratio."""
    return _LEAST * _GROWTH ** (bucket - 0.5) if bucket else 0.0


def percentile(counts: Mapping[int, int], percent: int) -> float | None:
    """Return the time that so many percent of the starts did not exceed, by the nearest rank; None without starts."""
    missing = _rank(sum(counts.values()), percent)
    for bucket in sorted(counts):
        missing -= counts[bucket]
        if missing <= 0:
            return seconds_of(bucket)
    return None


def whole_percentile(sums: StartSums, percent: int) -> float | None:
    """Return a percentile of the whole starts, exact when it is one of the slowest, as all of a few starts are."""
    slower = sums.starts - _rank(sums.starts, percent)
    if slower < len(sums.slowest):
        return sums.slowest[slower][0]
    return percentile(sums.times.get(WHOLE, {}), percent)


def seconds_together(counts: Mapping[int, int]) -> float:
    return sum(seconds_of(bucket) * count for bucket, count in counts.items())


def count(
    sums: StartSums,
    execution_id: str,
    seconds: Mapping[str, float],
    *,
    image_cached: bool | None,
    node_started: bool | None,
    times: int = 1,
) -> None:
    """Add a start to the sums, or with -1 take one away that was added; `seconds` are those that are known, with the WHOLE."""
    sums.starts += times
    sums.image_pulled += times * (image_cached is False)
    sums.image_known += times * (image_cached is not None)
    sums.new_node += times * (node_started is True)
    sums.node_known += times * (node_started is not None)
    for name, value in seconds.items():
        _count(sums.times.setdefault(name, {}), bucket_of(value), times)
    sums.times = {name: counts for name, counts in sums.times.items() if counts}
    if times > 0:
        sums.slowest = _slowest([*sums.slowest, (seconds[WHOLE], execution_id)])
    else:
        sums.slowest = [start for start in sums.slowest if start[1] != execution_id]


def together(parts: Iterable[StartSums]) -> StartSums:
    """Return the sums of several days or groups."""
    whole, slow = StartSums(), list[tuple[float, str]]()
    for part in parts:
        for counter in ("starts", "image_pulled", "image_known", "new_node", "node_known"):
            setattr(whole, counter, getattr(whole, counter) + getattr(part, counter))
        for name, counts in part.times.items():
            for bucket, number in counts.items():
                _count(whole.times.setdefault(name, {}), bucket, number)
        slow += part.slowest
    whole.slowest = _slowest(slow)
    return whole


def sums_text(sums: StartSums) -> str:
    """Return the sums as they are stored."""
    return msgspec.json.encode(sums).decode()


read_sums: Callable[[str], StartSums] = msgspec.json.Decoder(prepared(StartSums)).decode


def _rank(number: int, percent: int) -> int:
    return -(-number * percent // 100)


def _count(counts: Counts, bucket: int, times: int) -> None:
    counts[bucket] = counts.get(bucket, 0) + times
    if not counts[bucket]:
        del counts[bucket]


def _slowest(starts: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    return sorted(starts, reverse=True)[:SLOWEST]
