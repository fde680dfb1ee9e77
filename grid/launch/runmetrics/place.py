"""How far a log was read, so that a later reading goes on behind it: nothing twice, and nothing left out that the kubelet still has; pure.

Kubernetes can be asked for what was written since a whole second, and a log only grows at its end. So a place is the second of the newest
line, and how many lines of that second were read. A log that was rotated meanwhile begins with later lines than that, which its timestamps
show.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grid.launch.runmetrics.lines import LONGEST_LINE, measured
from grid.logstamps import stamped

_LONGEST = LONGEST_LINE + 64  # with its timestamp


@dataclass(frozen=True, slots=True)
class LogPlace:
    """`lines` lines of `second` were read, the newest with the timestamp `latest`. Empty before anything was read."""

    second: str = ""
    lines: int = 0
    latest: str = ""

    @property
    def since(self) -> str:
        """The time from which to read, as the API server takes it."""
        return f"{self.second}Z" if self.second else ""


START = LogPlace()


@dataclass(frozen=True, slots=True)
class Measurements:
    """The values of each metric with their steps, in the order in which they were written; `refused` counts those that cannot be kept."""

    values: Mapping[str, Sequence[tuple[float | None, float]]]
    refused: int = 0

    def __bool__(self) -> bool:
        return bool(self.values) or self.refused > 0


class LogReading:
    """Takes in a log from `place.since` on, and passes over what was read before. `taken_bytes` counts what was new."""

    def __init__(self, place: LogPlace) -> None:
        self.taken_bytes = 0
        self._start = place
        self._passed = 0  # lines of the first second that had been read
        self._is_behind = place.lines > 0
        self._second, self._lines, self._latest = place.second, place.lines, place.latest
        self._before = ""
        self._rest = b""
        self._is_too_long = False
        self._values: dict[str, list[tuple[float | None, float]]] = defaultdict(list)
        self._refused = 0

    @property
    def place(self) -> LogPlace:
        return LogPlace(self._second, self._lines, self._latest)

    @property
    def found(self) -> Measurements:
        return Measurements(self._values, self._refused)

    def feed(self, chunk: bytes) -> None:
        """Take in a part of the log; an unfinished line at its end waits for the rest."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line)
        self._is_too_long |= len(rest) > _LONGEST
        self._rest = rest[:_LONGEST]

    def finish(self) -> None:
        """Take in the last line of a program that has ended without a line feed."""
        if self._rest:
            self._take(self._rest)
            self._rest = b""

    def _take(self, line: bytes) -> None:
        is_too_long, self._is_too_long = self._is_too_long, False
        stamp, text = stamped(line)
        self._before = stamp = stamp or self._before
        if self._is_behind and self._was_read(stamp):
            return
        self.taken_bytes += len(line)
        if stamp[:19] > self._second:
            self._second, self._lines, self._latest = stamp[:19], 0, ""
        if stamp[:19] == self._second:
            self._lines += 1
            self._latest = max(self._latest, stamp)
        if not is_too_long and (found := measured(text)) is not None:
            self._refused += found.refused
            for name, value in found.values:
                self._values[name].append((found.step, value))

    def _was_read(self, stamp: str) -> bool:
        start = self._start
        if self._passed < start.lines and stamp[:19] <= start.second and stamp <= start.latest:
            self._passed += stamp[:19] == start.second
            return True
        self._is_behind = False
        return False
