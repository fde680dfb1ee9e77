"""How far a log was read, so that a later reading goes on behind it: nothing twice, and nothing left out that the kubelet still has; pure.

Kubernetes can be asked for what was written since a whole second, and a log only grows at its end. So a place is the second of the newest
line, and how many lines of that second were read. A log that was rotated meanwhile begins with later lines than that, which its timestamps
show.
"""

from dataclasses import dataclass

from grid.core.logstamps import stamped

CUT_BYTES = 16 * 1024  # of a line; container runtimes cut longer ones into pieces
_LONGEST = CUT_BYTES + 64  # with its timestamp


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

    def is_before(self, other: "LogPlace") -> bool:
        return (self.latest, self.second, self.lines) < (other.latest, other.second, other.lines)


START = LogPlace()


class PlacedReading:
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

    @property
    def place(self) -> LogPlace:
        return LogPlace(self._second, self._lines, self._latest)

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

    def new_line(self, stamp: str, text: bytes, *, is_too_long: bool) -> None:
        """Take in a line that was not read before; `stamp` is that of the line before where it has none."""
        raise NotImplementedError

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
        self.new_line(stamp, text, is_too_long=is_too_long)

    def _was_read(self, stamp: str) -> bool:
        start = self._start
        if self._passed < start.lines and stamp[:19] <= start.second and stamp <= start.latest:
            self._passed += stamp[:19] == start.second
            return True
        self._is_behind = False
        return False
