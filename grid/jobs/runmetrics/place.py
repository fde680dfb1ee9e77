"""Reads what a log measures, from where it was read before; pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grid.jobs.runmetrics.lines import measured
from grid.logs.logplace import LogPlace, PlacedReading


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
