"""What `static/chart.js` draws, for every page with a chart; pure.

A chart has lines over shared times, each on one of its scales. Lines differ by their dashes too, for whoever does not see their colours.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

# Lengths in pixels, drawn and not drawn in turn.
SOLID: tuple[int, ...] = ()
DOTS, DASHES, LONG_DASHES, DASH_DOT, FINE_DOTS = (2, 3), (6, 4), (18, 2), (9, 3, 2, 3), (1, 4)


@dataclass(frozen=True, slots=True)
class ChartScale:
    """An axis that begins at 0 and reaches at least to `top`, or with `is_free` is as long as its values; `unit` follows each number."""

    name: str
    top: float
    unit: str = ""
    label: str = ""
    is_whole: bool = False
    is_right: bool = False
    is_free: bool = False


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line; `colour` is a custom property of the stylesheet. A value of None is a gap."""

    name: str
    label: str
    values: Sequence[float | None]
    scale: str
    colour: str
    dash: tuple[int, ...] = SOLID
    width: float = 2
    is_stepped: bool = False
    is_filled: bool = False


def chart_values(scales: Iterable[ChartScale], lines: Iterable[ChartLine]) -> dict[str, Any]:
    """Return one chart as the script reads it."""
    return {
        "scales": {scale.name: _without_name(scale) for scale in scales},
        "lines": {line.name: _without_name(line) for line in lines},
    }


def _without_name(part: ChartScale | ChartLine) -> dict[str, Any]:
    """Return the fields as the script calls them: `is_whole` is "whole" there."""
    return {field.name.removeprefix("is_"): getattr(part, field.name) for field in fields(part) if field.name != "name"}
