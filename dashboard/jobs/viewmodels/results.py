"""The results of a run, and how those of two runs differ; pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from dashboard.files.viewmodels.files import SHOWN_IMAGE_BYTES, image_type
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.files.repositories import TreeEntry

SHOWN_FILES = 500
COMPARED_FILES = 20  # whose differences are shown line by line
COMPARED_BYTES = 256 * 2**10  # of each of the two
DIFFERENCE_BYTES = 32 * 2**10


@dataclass(frozen=True, slots=True)
class ResultFile:
    """`query` is the part of its page's URL behind the question mark; "" where it cannot be opened."""

    path: str
    size: str
    query: str


@dataclass(frozen=True, slots=True)
class Results:
    files: Sequence[ResultFile]
    left_out: int
    image: ResultFile | None  # the first that can be drawn


def results(commit: str, entries: Sequence[TreeEntry]) -> Results:
    drawn = (_row(commit, entry) for entry in entries if _is_drawn(entry))
    rows = [_row(commit, entry) for entry in entries[:SHOWN_FILES]]
    return Results(rows, max(0, len(entries) - SHOWN_FILES), next(drawn, None))


def _row(commit: str, entry: TreeEntry) -> ResultFile:
    query = urlencode({"at": commit, "path": entry.name}) if entry.name else ""
    return ResultFile(entry.shown, _("link") if entry.is_link else format_bytes(entry.size), query)


def _is_drawn(entry: TreeEntry) -> bool:
    return bool(image_type(entry.name)) and not entry.is_link and 0 < entry.size <= SHOWN_IMAGE_BYTES


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that both runs have, with other content; `text` is what differs, and `note` why that is not shown, or not whole."""

    first: ResultFile
    second: ResultFile
    text: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ResultsComparison:
    only_first: Sequence[ResultFile]
    only_second: Sequence[ResultFile]
    changed: Sequence[ChangedFile]
    same: int
    left_out: int


@dataclass(frozen=True, slots=True)
class RunResults:
    """The commit with the results of one run, and the files in it."""

    commit: str
    entries: Sequence[TreeEntry]

    @property
    def by_path(self) -> dict[str, TreeEntry]:
        return {entry.shown: entry for entry in self.entries}


def compared_results(
    first: RunResults, second: RunResults, read: Callable[[TreeEntry, TreeEntry], bytes]
) -> ResultsComparison:
    """Return the comparison; `read` returns the beginning of what differs between two files, of which few and small ones are read."""
    before, after = first.by_path, second.by_path
    only_first = [_row(first.commit, entry) for path, entry in before.items() if path not in after]
    only_second = [_row(second.commit, entry) for path, entry in after.items() if path not in before]
    both = [(entry, after[path]) for path, entry in before.items() if path in after]
    pairs = [pair for pair in both if pair[0].id != pair[1].id]
    compared = [pair for pair in pairs if all(map(_is_small, pair))][:COMPARED_FILES]
    changed = [
        _changed(_row(first.commit, pair[0]), _row(second.commit, pair[1]), read(*pair) if pair in compared else None)
        for pair in pairs
    ]
    return ResultsComparison(
        only_first[:SHOWN_FILES],
        only_second[:SHOWN_FILES],
        changed[:SHOWN_FILES],
        same=len(both) - len(changed),
        left_out=sum(max(0, len(files) - SHOWN_FILES) for files in (only_first, only_second, changed)),
    )


def _is_small(entry: TreeEntry) -> bool:
    return entry.size <= COMPARED_BYTES and not entry.is_module


def _changed(first: ResultFile, second: ResultFile, difference: bytes | None) -> ChangedFile:
    if difference is None:
        return ChangedFile(first, second, note=_("Too large, or too many, to be compared line by line."))
    if not difference.startswith(b"@@"):
        return ChangedFile(first, second, note=_("Not text."))
    note = _("Cut here; open both files for the rest.") if len(difference) >= DIFFERENCE_BYTES - 1000 else ""
    return ChangedFile(first, second, difference.decode(errors="replace"), note)
