"""Sparklines: a line as small as a word, drawn by the server; pure."""

from collections.abc import Sequence

from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _
from grid.metrics.usage import KEPT_MINUTES

WIDTH, HEIGHT = 96, 22
_EDGE = 1.5  # left free, so that a thick line is not cut


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
    return Sparkline(
        lines=tuple(map(_points, stretches)),
        areas=tuple(map(_points, areas)),
        words=words,
        box=f"0 0 {width} {HEIGHT}",
    )


def usage_line(name: str, samples: Sequence[tuple[int, int]], whole: int, now: int) -> Sparkline | None:
    """Draw how much of the whole was used in each of the last minutes; None without a sample. In a table there is one for each row, so its
    points are few and round."""
    if not samples:
        return None
    values = [(minute, percent(used, whole)) for minute, used in samples]
    first, last = values[0][0], values[-1][0]
    low, high = min(value for _, value in values), max(value for _, value in values)
    return sparkline(
        values,
        span=(last - KEPT_MINUTES + 1, last),
        top=100,
        words=_(
            "{name} of the last {minutes} min: {low} % to {high} %, now {now} %",
            name=name,
            minutes=last - first + 1,
            low=low,
            high=high,
            now=percent(now, whole),
        ),
        gap=1,
        width=KEPT_MINUTES - 1,
        is_filled=False,
    )


def _points(line: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{round(x, 1):g},{round(y, 1):g}" for x, y in line)
