"""What `static/chart.js` draws, for every page with a chart, and sparklines, as small as a word, which the server draws; pure. A chart has
lines over shared times, each on one of its scales. Lines differ by their dashes too, for whoever does not see their colours."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _
from grid.metrics.usage import KEPT_MINUTES

# Lengths in pixels, drawn and not drawn in turn.
SOLID: tuple[int, ...] = ()
DOTS, DASHES, LONG_DASHES, DASH_DOT, FINE_DOTS = (2, 3), (6, 4), (18, 2), (9, 3, 2, 3), (1, 4)
WIDTH, HEIGHT = 96, 22  # of a sparkline
_EDGE = 1.5  # left free, so that a thick line is not cut


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
    return {
        "scales": {scale.name: _without_name(scale) for scale in scales},
        "lines": {line.name: _without_name(line) for line in lines},
    }


def _without_name(part: ChartScale | ChartLine) -> dict[str, Any]:
    """Return the fields as the script calls them: `is_whole` is "whole" there."""
    return {field.name.removeprefix("is_"): getattr(part, field.name) for field in fields(part) if field.name != "name"}


class Sparkline(ViewModel, frozen=True, gc=False):
    """The points of each stretch without a gap, as SVG takes them; `words` say the same. `areas` close the stretches at the bottom."""

    lines: tuple[str, ...]
    areas: tuple[str, ...]
    words: str
    box: str = f"0 0 {WIDTH} {HEIGHT}"


def sparkline(
    values: Sequence[tuple[int, float]],
    *,
    span: tuple[int, int],
    top: float,
    words: str,
    gap: int,
    width: int = WIDTH,
    is_filled: bool = True,
) -> Sparkline:
    """Draw the values (time and number) from 0 to `top`, which is the upper edge. A time longer than `gap` without a value is left
    out. A value alone is a short line. `width` is how many steps there are from side to side."""
    stretches: list[list[tuple[float, float]]] = []
    before: int | None = None
    for at, value in values:
        if before is None or at - before > gap:
            stretches.append([])
        before = at
        x = (at - span[0]) / max(1, span[1] - span[0]) * width
        y = HEIGHT - _EDGE - min(1.0, value / top if top else 0.0) * (HEIGHT - 2 * _EDGE)
        stretches[-1].append((min(width, max(0.0, x)), y))
    for stretch in stretches:
        if len(stretch) == 1:
            [(x, y)] = stretch
            stretch[:] = [(max(0.0, x - 1), y), (min(width, x + 1), y)]
    areas = [[(line[0][0], HEIGHT), *line, (line[-1][0], HEIGHT)] for line in stretches if is_filled]
    return Sparkline(tuple(map(_points, stretches)), tuple(map(_points, areas)), words, f"0 0 {width} {HEIGHT}")


def usage_line(name: str, samples: Sequence[tuple[int, int]], whole: int, now: int) -> Sparkline | None:
    """Draw how much of the whole was used in each of the last minutes; None without a sample. In a table there is one for each row, so its
    points are few and round."""
    if not samples:
        return None
    values = [(minute, percent(used, whole)) for minute, used in samples]
    first, last = values[0][0], values[-1][0]
    low, high = min(value for _, value in values), max(value for _, value in values)
    numbers = {"minutes": last - first + 1, "low": low, "high": high, "now": percent(now, whole)}
    words = _("{name} of the last {minutes} min: {low} % to {high} %, now {now} %", name=name, **numbers)
    span, width = (last - KEPT_MINUTES + 1, last), KEPT_MINUTES - 1
    return sparkline(values, span=span, top=100, words=words, gap=1, width=width, is_filled=False)


def _points(line: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{round(x, 1):g},{round(y, 1):g}" for x, y in line)
