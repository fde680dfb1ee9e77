"""Aligns tab-separated cells as Go's text/tabwriter does with padding 2, which is what gives kubectl's output its look.

A column is a run of consecutive lines that have a cell ended by a tab at that position; its width is that of its widest cell
plus the padding. The text behind a line's last tab belongs to no column. https://pkg.go.dev/text/tabwriter
"""

_PADDING = 2
_INDENT = "  "


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
