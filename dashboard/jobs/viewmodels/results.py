"""The results of a run, and how those of two runs differ; pure."""

from collections.abc import Mapping, Sequence
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
    files: tuple[ResultFile, ...]
    left_out: int
    image: ResultFile | None  # the first that can be drawn


def results(commit: str, entries: Sequence[TreeEntry]) -> Results:
    rows = [(entry, _row(commit, entry)) for entry in entries]
    drawn = (row for entry, row in rows if _is_drawn(entry) and row.query)
    return Results(tuple(row for _, row in rows[:SHOWN_FILES]), max(0, len(rows) - SHOWN_FILES), next(drawn, None))


def _row(commit: str, entry: TreeEntry) -> ResultFile:
    query = urlencode({"at": commit, "path": entry.name}) if entry.name else ""
    return ResultFile(entry.shown, _("link") if entry.is_link else format_bytes(entry.size), query)


def _is_drawn(entry: TreeEntry) -> bool:
    return bool(image_type(entry.name)) and not entry.is_link and 0 < entry.size <= SHOWN_IMAGE_BYTES


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that both runs have, with other content; `text` is what differs, and `note` why that is not shown, or not whole."""

    one: ResultFile
    other: ResultFile
    text: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ResultsComparison:
    only_one: tuple[ResultFile, ...]
    only_other: tuple[ResultFile, ...]
    changed: tuple[ChangedFile, ...]
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


def to_compare(one: RunResults, other: RunResults) -> list[tuple[TreeEntry, TreeEntry]]:
    """Return the files of which the lines that differ are to be read: small ones, and not too many."""
    theirs = other.by_path
    pairs = [(entry, theirs[path]) for path, entry in one.by_path.items() if path in theirs]
    return [pair for pair in pairs if pair[0].id != pair[1].id and _is_small(*pair)][:COMPARED_FILES]


def _is_small(*entries: TreeEntry) -> bool:
    return all(entry.size <= COMPARED_BYTES and not entry.is_module for entry in entries)


def compared_results(one: RunResults, other: RunResults, differences: Mapping[str, bytes]) -> ResultsComparison:
    """Return the comparison; `differences` are the beginnings of those that were read, by path."""
    mine, theirs = one.by_path, other.by_path
    only_one = [_row(one.commit, entry) for path, entry in mine.items() if path not in theirs]
    only_other = [_row(other.commit, entry) for path, entry in theirs.items() if path not in mine]
    both = [(path, entry, theirs[path]) for path, entry in mine.items() if path in theirs]
    changed = [
        _changed(_row(one.commit, entry), _row(other.commit, others), differences.get(path))
        for path, entry, others in both
        if entry.id != others.id
    ]
    return ResultsComparison(
        tuple(only_one[:SHOWN_FILES]),
        tuple(only_other[:SHOWN_FILES]),
        tuple(changed[:SHOWN_FILES]),
        same=len(both) - len(changed),
        left_out=sum(max(0, len(found) - SHOWN_FILES) for found in (only_one, only_other, changed)),
    )


def _changed(one: ResultFile, other: ResultFile, difference: bytes | None) -> ChangedFile:
    if difference is None:
        return ChangedFile(one, other, note=_("Too large, or too many, to be compared line by line."))
    if not difference.startswith(b"@@"):
        return ChangedFile(one, other, note=_("Not text."))
    note = _("Cut here; open both files for the rest.") if len(difference) >= DIFFERENCE_BYTES - 1000 else ""
    return ChangedFile(one, other, difference.decode(errors="replace"), note)
