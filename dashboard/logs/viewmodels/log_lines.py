"""The lines of containers' logs: cut from a stream, chosen by place, text and level, merged by time, and turned into rows; pure.

A place in a log is a `LogPosition`: Kubernetes can be asked for the last lines and for what is newer than a time, so both directions go by
timestamps. A cursor is the positions of all pods that are shown, as text for a URL.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from dashboard.logs.viewmodels.ansi import ansi_html, last_state, plain
from grid.core.logstamps import stamp_end, stamped
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.diagnosis import logfindings
from grid.diagnosis.logfindings import LogPattern
from grid.diagnosis.loglevels import ERROR, WARNING, level_of

LEVELS = {ERROR: _("Errors"), WARNING: _("Warnings and errors")}  # what a log can be reduced to


def is_shown(level: str, least: str) -> bool:
    """Return True when a log that is reduced to `least`, a key of LEVELS or "", shows the level."""
    return least not in LEVELS or level in (ERROR, least)


PAGE_LINES = 500
PAGE_BYTES = 2**20  # of the lines of a page, as the programs wrote them
LONGEST_ROW = 4000  # characters
_LONGEST_LINE = 64 * 1024  # bytes; a longer one is cut before anything is looked for in it
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that do not begin a character
_TINTS = (2, 3, 4, 5, 6, 8, 12, 13)  # the colours that are neither of an error nor of the text

_POSITION = Expression(r"([\w.-]{0,253})~((?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9})?)~(\d{1,6})")


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A place in one pod's log: at a normalized timestamp, and before the last `count` lines that have it."""

    stamp: str
    count: int = 0


Cursor = Mapping[str, LogPosition]
RawLine = tuple[str, str, bytes]  # the normalized timestamp, or ""; the pod's short name; what the program wrote


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line as it is shown; `day` is set where another day begins."""

    stamp: str
    day: str
    pod: str
    tint: int  # the pod's colour, among those of terminals; it stays the same
    level: str
    html: str
    cut: int  # characters that are not shown
    finding: str = ""  # what the line means, if the knowledge base knows it


def cursor_text(cursor: Cursor) -> str:
    return ",".join(f"{pod}~{place.stamp}~{place.count}" for pod, place in cursor.items())


def parse_cursor(text: str) -> dict[str, LogPosition]:
    """Return the positions by pod; {} when the text is none that `cursor_text` made."""
    parts = [_POSITION.fullmatch(part) for part in text[:20_000].split(",")]
    return {match[1]: LogPosition(match[2], int(match[3])) for match in parts if match} if all(parts) else {}


class PodLines:
    """Takes in one pod's log and keeps the last `keep` lines between two positions that match, at most PAGE_BYTES of them."""

    def __init__(
        self,
        pod: str,
        *,
        keep: int = PAGE_LINES,
        after: LogPosition | None = None,
        before: LogPosition | None = None,
        has_stamps: bool = True,
    ) -> None:
        self.pod = pod
        self.taken = 0  # lines of the stream, whether kept or not
        self.passed = 0  # of these, between the positions and matching
        self.first = self.latest = ""  # the timestamps of the stream's first and last line
        self._keep, self._after, self._before = keep, after, before
        self._has_stamps = has_stamps
        self._hidden = before.count if before else 0  # of the last lines, those that are shown already
        self._kept: deque[RawLine] = deque()
        self._kept_bytes = 0
        self._rest = b""

    def cut(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in the next chunk of the stream, for `take`."""
        first, *others = chunk.split(b"\n")
        lines = [_joined(self._rest, first), *map(_bounded, others)]
        self._rest = lines.pop()
        return lines

    def rest(self) -> list[bytes]:
        """Return the line that the stream has ended with, if no line break came after it."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []

    def take(self, lines: Sequence[bytes], matching: Sequence[bool] = ()) -> None:
        """Take the lines in; `matching` says which of them match, where that was asked elsewhere."""
        for line, is_match in zip_longest(lines, matching, fillvalue=True):
            assert isinstance(line, bytes)
            self._take(line, is_match=bool(is_match))

    def lines(self) -> list[RawLine]:
        """Return what was kept when the stream has ended."""
        self.take(self.rest())
        kept = list(self._kept)
        if self._before is not None:
            at = self._before.stamp
            same = sum(1 for stamp, _, _ in kept if stamp == at)
            kept = kept[: len(kept) - min(self._before.count, same)]
        return kept[-self._keep :]

    def _take(self, line: bytes, *, is_match: bool) -> None:
        stamp, text = stamped(line) if self._has_stamps else ("", line)
        text = _without_end(text, _left_out(line))
        stamp = self.latest = max(self.latest, stamp)  # a line without a timestamp stays after the one before it
        self.taken += 1
        if self.taken == 1:
            self.first = stamp
        is_late_enough = self._after is None or stamp > self._after.stamp
        is_early_enough = self._before is None or stamp <= self._before.stamp
        if not (is_match and is_late_enough and is_early_enough):
            return
        self.passed += 1
        self._kept.append((stamp, self.pod, text))
        self._kept_bytes += len(text)
        while len(self._kept) > self._hidden + self._keep or (
            self._kept_bytes > PAGE_BYTES and len(self._kept) > self._hidden + 1
        ):
            self._kept_bytes -= len(self._kept.popleft()[2])


def matching_lines(
    lines: Sequence[bytes], text: str, least: str, before: str, *, has_stamps: bool = True
) -> tuple[list[bool], str]:
    """Return for each line whether a filter lets it pass, and the level of the last one; `before` is that of the line before them."""
    text, matching = text.lower(), []
    for line in lines:
        shown = plain(_decoded(stamped(line)[1] if has_stamps else line))
        before = level_of(shown, before)
        matching.append(text in shown.lower() and is_shown(before, least))
    return matching, before


def newest(lines: Sequence[RawLine], most: int) -> list[RawLine]:
    """Return the last lines, at most so many, that a page has room for; one at least."""
    room, start = PAGE_BYTES, len(lines)
    while start and len(lines) - start < most and (room >= len(lines[start - 1][2]) or start == len(lines)):
        start -= 1
        room -= len(lines[start][2])
    return list(lines[start:])


def kept_page(text: str, before: LogPosition | None, wanted: str, least: str) -> tuple[list[RawLine], bool]:
    """Return a page of a stored log, which has no timestamps, and whether there are lines before it."""
    read = PodLines("", before=before, has_stamps=False)
    written = [*read.cut(text.encode()), *read.rest()]
    is_filter = wanted or least
    read.take(written, matching_lines(written, wanted, least, "", has_stamps=False)[0] if is_filter else ())
    lines = read.lines()
    return lines, read.passed - (before.count if before else 0) > len(lines)


def merged(logs: Sequence[Iterable[RawLine]]) -> list[RawLine]:
    """Return the lines of all pods in the order of time; those of one moment in the order of the pods."""
    return list(heapq.merge(*logs, key=lambda line: line[0]))


def cursor_before(lines: Sequence[RawLine], asked: Cursor) -> dict[str, LogPosition]:
    """Return the cursor of what is earlier than these lines, when `asked` was the cursor that they were read with."""
    cursor: dict[str, LogPosition] = {}
    for stamp, pod, _text in lines:
        here = cursor.setdefault(pod, LogPosition(stamp))
        if here.stamp == stamp:
            cursor[pod] = LogPosition(stamp, here.count + 1)
    for pod, place in asked.items():
        if pod in cursor and cursor[pod].stamp == place.stamp:
            cursor[pod] = LogPosition(place.stamp, cursor[pod].count + place.count)
    return cursor


def place_before(cursor: Cursor, pod: str) -> LogPosition | None:
    """Return where the pod's earlier lines end: a pod of which nothing was shown has written before all that was."""
    if not cursor:
        return None
    return cursor.get(pod) or LogPosition(min(place.stamp for place in cursor.values()))


def known_rows(patterns: Sequence[LogPattern], lines: Iterable[RawLine], day: str = "") -> list[LogRow]:
    """Return the rows as `rows_of` does, with these entries of the knowledge base in force: another process has only the built-in ones."""
    logfindings.use(patterns)
    return rows_of(lines, day=day)


def rows_of(lines: Iterable[RawLine], *, day: str = "") -> list[LogRow]:
    """Return the rows; `day` is that of the line before them."""
    levels: dict[str, str] = {}
    rows = []
    for stamp, pod, raw in lines:
        text = last_state(_decoded(raw))
        read = plain(text)
        level = levels[pod] = level_of(read, levels.get(pod, ""))
        cut = max(0, len(read) - LONGEST_ROW) + _left_out(raw)
        html = ansi_html(read[:LONGEST_ROW] if cut else text)
        new_day = stamp[:10] if stamp[:10] != day else ""
        day = stamp[:10] or day
        known = logfindings.finding_of(read)
        tint = _TINTS[sum(pod.encode()) % len(_TINTS)]
        rows.append(LogRow(stamp, new_day, pod, tint, level, html, cut, known.meaning if known else ""))
    return rows


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace").removesuffix("\r")


class _CutLine(bytes):
    """A line without its end, which may have been much more than is kept of any line; it crosses to other processes with the number."""

    left_out = 0  # characters


def _without_end(kept: bytes, left_out: int) -> bytes:
    if not left_out:
        return kept
    line = _CutLine(kept)
    line.left_out = left_out
    return line


def _left_out(line: bytes) -> int:
    return line.left_out if isinstance(line, _CutLine) else 0


def _joined(line: bytes, more: bytes) -> bytes:
    """Return a line of which more has come. Of one that was cut already the rest is only counted, unless it draws the line anew."""
    left_out, is_returned, text = _left_out(line), line.endswith(b"\r"), more.rstrip(b"\r")
    if not left_out or b"\r" in text or (text and is_returned):
        return _bounded(line + more)
    end = b"\r" if len(text) < len(more) and not is_returned else b""
    return _without_end(line + end, left_out + _characters(text))


def _bounded(line: bytes) -> bytes:
    """Return the line, or of a long one what is worth keeping: its timestamp, and the last state of a progress bar or the beginning."""
    if len(line) <= _LONGEST_LINE:
        return line
    stamp = line[: stamp_end(line)]
    drawn = line[len(stamp) :].rstrip(b"\r")
    state = drawn.rpartition(b"\r")[2]
    length = min(len(state), _LONGEST_LINE // 2)
    border = state[length - 3 : length + 1][::-1] if length < len(state) else b""
    length -= next((back for back, byte in enumerate(border) if byte not in _CONTINUATION), 0)  # inside no character
    end = b"\r" if line.endswith(b"\r") else b""  # what comes next may draw the line anew
    return _without_end(stamp + state[:length] + end, _characters(state[length:]))


def _characters(text: bytes) -> int:
    """Return how many characters of UTF-8 begin in the text, which may be long and begin within one."""
    return len(text.translate(None, _CONTINUATION))
