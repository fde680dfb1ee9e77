"""What kubectl's descriptions are written with: times, ages and quantities as kubectl formats them, labels, events, aligned columns.

Cells that tabs separate are aligned as Go's text/tabwriter does with padding 2, which is what gives kubectl's output its look. A column is
a run of consecutive lines that have a cell ended by a tab at that position; its width is that of its widest cell plus the padding. The
text behind a line's last tab belongs to no column. https://pkg.go.dev/text/tabwriter
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from grid.core.quantity import parse_quantity

RawObject = Mapping[str, Any]

_PADDING = 2
_INDENT = "  "
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LONGEST_ANNOTATION = 140
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
# Below how many seconds a time is written in which unit, and what is left over in which smaller one.
_DURATIONS = (
    (2 * _MINUTE, 1, "s", 0, ""), (10 * _MINUTE, _MINUTE, "m", 1, "s"), (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"), (2 * _DAY, _HOUR, "h", 0, ""), (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""), (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)  # fmt: skip
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


def full_time(text: str | None) -> str:
    """Return the time as RFC 1123 with a numeric zone: Sat, 21 Nov 2026 04:52:25 +0000."""
    moment = datetime.fromisoformat(text or "0001-01-01T00:00:00+00:00")
    return f"{moment:%a, %d %b} {moment.year:04d} {moment:%H:%M:%S %z}"


def age(text: str | None, now: datetime) -> str:
    """Return the time since then, as duration.HumanDuration of k8s.io/apimachinery writes it."""
    return human_duration((now - datetime.fromisoformat(text)).total_seconds()) if text else "<unknown>"


def human_duration(seconds: float) -> str:
    """Return at most two units; the smaller one only while it matters."""
    whole = int(seconds)  # Go truncates towards zero
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    for limit, large, unit, small, small_unit in _DURATIONS:
        if whole < limit:
            rest = whole % large // small if small else 0
            return f"{whole // large}{unit}" + (f"{rest}{small_unit}" if rest else "")
    return f"{whole // _YEAR}y"


def small_bool(value: Any) -> str:
    return str(bool(value)).lower()


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity that remembers whether its suffix is binary; a sum takes that from its first addend that is not zero."""

    value: Decimal = Decimal(0)
    binary: bool = False

    @classmethod
    def parse(cls, text: str | int | None) -> "Amount":
        return cls(parse_quantity(text), str(text).endswith("i")) if text is not None else cls()

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.value + other.value, self.binary if self.value else other.binary)

    def max(self, other: "Amount") -> "Amount":
        return other if other.value > self.value else self

    def share_of(self, whole: "Amount") -> int:
        """Return the percentage of `whole`, truncated; 0 when `whole` is 0."""
        return int(self.value / whole.value * 100) if whole.value else 0

    def __str__(self) -> str:
        """Return the canonical form: the largest suffix that keeps the number whole."""
        if self.binary and abs(self.value) >= 1024:
            number, power = math.ceil(self.value), 0
            while number % 1024 == 0 and power < len(_BINARY) - 1:
                number, power = number // 1024, power + 1
            return f"{number}{_BINARY[power]}"
        exponent = -9
        number = math.ceil(self.value * 10**9)
        if number == 0:
            return "0"
        while number % 1000 == 0 and exponent < 18:
            number, exponent = number // 1000, exponent + 3
        return f"{number}{_DECIMAL[exponent]}"


class Columns:
    """Collects lines of cells. `flush` ends all columns, so that the next table is not aligned with the one above."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._lines: list[list[str]] = []
        self._open = ""

    def write(self, level: int, text: str) -> None:
        """Append text, which may hold tabs and newlines, after `level` indents."""
        self._open += _INDENT * level + text
        *ended, self._open = self._open.split("\n")
        self._lines += [line.split("\t") for line in ended]

    def write_set(self, level: int, source: RawObject, *fields: tuple[str, str]) -> None:
        """Append a line for each of the fields, as title and name, that has a value."""
        for title, name in fields:
            if source.get(name):
                self.write(level, f"{title}:\t{source[name]}\n")

    def write_list(self, title: str, texts: Sequence[str]) -> None:
        """Append the texts below one another, with the title before the first."""
        for index, text in enumerate(texts or ("<none>",)):
            self.write(0, f"{'' if index else title + ':'}\t{text}\n")

    def flush(self) -> None:
        _format(self._lines, 0, len(self._lines), [], self._done)
        self._lines = []

    def text(self) -> str:
        self.flush()
        return "".join(f"{line}\n" for line in self._done)


def _format(lines: list[list[str]], start: int, end: int, widths: list[int], out: list[str]) -> None:
    """Lay out lines[start:end], whose first len(widths) columns are known; recurse for each block of the next column."""
    column = len(widths)
    written = this = start
    while this < end:
        if column >= len(lines[this]) - 1:
            this += 1
            continue
        out += [_line(cells, widths) for cells in lines[written:this]]
        block = this
        while this < end and column < len(lines[this]) - 1:
            this += 1
        width = max(len(cells[column]) for cells in lines[block:this]) + _PADDING
        _format(lines, block, this, [*widths, width], out)
        written = this
    out += [_line(cells, widths) for cells in lines[written:end]]


def _line(cells: list[str], widths: list[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
    return "".join(padded + cells[len(padded) :])


def write_labels(out: Columns, title: str, labels: Mapping[str, str] | None) -> None:
    out.write_list(title, [f"{key}={value}" for key, value in sorted((labels or {}).items())])


def write_annotations(out: Columns, annotations: Mapping[str, str] | None) -> None:
    shown = {key: value for key, value in (annotations or {}).items() if key != _LAST_APPLIED}
    out.write(0, "Annotations:\t")
    if not shown:
        out.write(0, "<none>\n")
    for index, key in enumerate(sorted(shown)):
        lead = "\t" if index else ""
        value = shown[key].removesuffix("\n")
        if len(value) + len(key) + 2 <= _LONGEST_ANNOTATION and "\n" not in value:
            out.write(0, f"{lead}{key}: {value}\n")
            continue
        out.write(0, f"{lead}{key}:\n")
        for line in value.split("\n"):
            rest = "..." if len(line) > _LONGEST_ANNOTATION - 2 else ""
            out.write(0, f"\t  {line[: _LONGEST_ANNOTATION - 2]}{rest}\n")


def write_events(out: Columns, events: Sequence[RawObject], now: datetime) -> None:
    """Write the events, oldest first by the time they were last seen."""
    if not events:
        out.write(0, "Events:\t<none>\n")
        return
    out.flush()
    out.write(0, "Events:\n")
    out.write(1, "Type\tReason\tAge\tFrom\tMessage\n")
    out.write(1, "----\t------\t----\t----\t-------\n")
    for event in sorted(events, key=lambda event: event.get("lastTimestamp") or ""):
        source = (event.get("source") or {}).get("component") or event.get("reportingComponent", "")
        part = (event.get("involvedObject") or {}).get("fieldPath")
        message = f"{part}: {event['message'].strip()}" if part else event["message"].strip()
        cells = (event.get("type", ""), event.get("reason", ""), _interval(event, now), source, message)
        out.write(1, "\t".join(cells) + "\n")


def _interval(event: RawObject, now: datetime) -> str:
    first = age(event.get("eventTime") or event.get("firstTimestamp"), now)
    if series := event.get("series"):
        return f"{age(series.get('lastObservedTime'), now)} (x{series.get('count', 0)} over {first})"
    if (event.get("count") or 0) > 1:
        return f"{age(event.get('lastTimestamp'), now)} (x{event['count']} over {first})"
    return first
