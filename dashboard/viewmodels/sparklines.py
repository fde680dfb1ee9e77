"""Sparklines: a line as small as a word, drawn by the server; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 96, 22
_EDGE = 1.5  # left free, so that a thick line is not cut


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The points of each stretch without a gap, as SVG takes them; `words` say the same. `areas` close the stretches at the bottom."""

    lines: tuple[str, ...]
    areas: tuple[str, ...]
    words: str
    box: str = f"0 0 {WIDTH} {HEIGHT}"


def sparkline(
    values: Sequence[tuple[int, float]], *, span: tuple[int, int], top: float, words: str, gap: int
) -> Sparkline:
    """Draw the values (time and number) from 0 to `top`, which is the upper edge. A time longer than `gap` without a value is left
    out. A value alone is a short line."""
    stretches: list[list[tuple[float, float]]] = []
    before: int | None = None
    for at, value in values:
        if before is None or at - before > gap:
            stretches.append([])
        before = at
        x = (at - span[0]) / max(1, span[1] - span[0]) * WIDTH
        y = HEIGHT - _EDGE - min(1.0, value / top if top else 0.0) * (HEIGHT - 2 * _EDGE)
        stretches[-1].append((min(WIDTH, max(0.0, x)), y))
    for each in stretches:
        if len(each) == 1:
            x, y = each[0]
            each[:] = [(max(0.0, x - 1), y), (min(WIDTH, x + 1), y)]
    return Sparkline(
        lines=tuple(_points(each) for each in stretches),
        areas=tuple(_points([(each[0][0], HEIGHT), *each, (each[-1][0], HEIGHT)]) for each in stretches),
        words=words,
    )


def _points(found: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in found)
