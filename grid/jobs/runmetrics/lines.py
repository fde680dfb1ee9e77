"""What a line of a program's output measures; pure.

A line counts when it is a JSON object in one of two forms:

    {"metric": "loss", "value": 0.31, "step": 12}
    {"step": 12, "loss": 0.31, "accuracy": 0.9}

In the first the step may be absent; in the second it must be there, because programs write other JSON lines too, and `epoch` stands for it
where there is no `step`. Members that are no numbers are passed over.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from grid.logs.logplace import LogPlace, PlacedReading

LONGEST_LINE = 16 * 1024  # bytes; container runtimes cut longer ones into pieces
LONGEST_NAME = 80  # characters
_NOT_FINITE = (b"NaN", b"Infinity")  # what Python's json writes, and JSON does not know
_decoder = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class MeasuredLine:
    """The values of a line by name. `step` is None where the line has none; `refused` counts values that cannot be kept, such as NaN."""

    step: float | None
    values: tuple[tuple[str, float], ...]
    refused: int = 0


def measured(line: bytes) -> MeasuredLine | None:
    """Return what a line measures; None when it is no such line."""
    text = line.strip()
    if not text.startswith(b"{") or not text.endswith(b"}") or len(text) > LONGEST_LINE:
        return None
    members = _members(text)
    if members is None:
        return None
    step_name = next((name for name in ("step", "epoch") if name in members), "")
    step = _finite(members[step_name]) if step_name else None
    if step_name and step is None:
        return None
    if isinstance(name := members.get("metric"), str) and "value" in members:
        measured_values = {name: members["value"]}
    else:
        measured_values = {name: value for name, value in members.items() if name != step_name} if step_name else {}
    kept, refused = [], 0
    for name, value in measured_values.items():
        if type(value) is float or type(value) is int:  # and no bool
            number = _finite(value)
            if number is not None and _is_name(name):
                kept.append((name, number))
            else:
                refused += 1
    return MeasuredLine(step, tuple(kept), refused) if kept or refused else None


def _members(text: bytes) -> dict[str, Any] | None:
    """Return the members of a line that is JSON, or JSON but for NaN and Infinity."""
    try:
        return _decoder.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        if not any(word in text for word in _NOT_FINITE):
            return None
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def _finite(value: object) -> float | None:
    """Return the number; None for NaN, Infinity, numbers that are too large, and what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


@lru_cache(maxsize=1024)
def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()


@dataclass(frozen=True, slots=True)
class Measurements:
    """The values of each metric with their steps, in the order in which they were written; `refused` counts those that cannot be kept."""

    values: Mapping[str, Sequence[tuple[float | None, float]]]
    refused: int = 0

    def __bool__(self) -> bool:
        return bool(self.values) or self.refused > 0


class LogReading(PlacedReading):
    def __init__(self, place: LogPlace) -> None:
        super().__init__(place)
        self._values: dict[str, list[tuple[float | None, float]]] = defaultdict(list)
        self._refused = 0

    @property
    def measurements(self) -> Measurements:
        return Measurements(self._values, self._refused)

    def new_line(self, stamp: str, text: bytes, *, is_too_long: bool) -> None:
        if not is_too_long and (line := measured(text)) is not None:
            self._refused += line.refused
            for name, value in line.values:
                self._values[name].append((line.step, value))
