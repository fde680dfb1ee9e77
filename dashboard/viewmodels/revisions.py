"""Puts the revisions of an environment into words: what each is, its state and size, and who uses it; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from dashboard.viewmodels.nodes import StatusLine
from grid.quantity import format_bytes
from grid.wording import listed, plural

_STATES = {
    "building": StatusLine("wait", "Building"),
    "ready": StatusLine("ok", "Ready"),
    "failed": StatusLine("problem", "Failed"),
    "deprecated": StatusLine("neutral", "Deprecated"),
}


class StoredRevision(Protocol):
    """The part of `grid.models.EnvironmentRevision` that is used here."""

    number: Any
    image: Any
    requirements: Any
    state: Any
    message: Any
    size_bytes: Any
    layer_bytes: Any
    made_by: Any
    made_at: Any
    note: Any
    deprecated_because: Any


class Uses(Protocol):
    """Who uses a revision, as numbers."""

    @property
    def running(self) -> int: ...
    @property
    def workspaces(self) -> int: ...
    @property
    def jobs(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RevisionLine:
    """A revision as a row of the list and as the head of its page."""

    number: int
    image: str
    base: int  # 0 for an image
    requirements: Sequence[str]
    status: StatusLine
    is_current: bool
    is_building: bool
    may_deprecate: bool
    has_failed: bool
    message: str
    size: str
    uses: str
    note: str
    because: str
    made_by: str
    made_at: datetime

    @property
    def what(self) -> str:
        if not self.base:
            return self.image
        shown = ", ".join(self.requirements[:3])
        more = f" and {len(self.requirements) - 3} more" if len(self.requirements) > 3 else ""
        return f"{shown}{more}"


def revision_line(stored: StoredRevision, *, base: int, current: int, uses: Uses | None) -> RevisionLine:
    return RevisionLine(
        number=stored.number,
        image=stored.image,
        base=base,
        requirements=tuple(stored.requirements.splitlines()),
        status=_STATES[stored.state],
        is_current=stored.number == current,
        is_building=stored.state == "building",
        may_deprecate=stored.state == "ready",
        has_failed=stored.state == "failed",
        message=stored.message,
        size=size_words(stored.size_bytes, stored.layer_bytes),
        uses=uses_words(uses),
        note=stored.note,
        because=stored.deprecated_because,
        made_by=stored.made_by,
        made_at=stored.made_at,
    )


def size_words(size: int | None, layer: int | None) -> str:
    """Return for example "400 MiB, 12 MiB of it on top of the base"; "" when it is not known."""
    if size is None:
        return ""
    return f"{format_bytes(size)}, {format_bytes(layer)} of it on top of the base" if layer else format_bytes(size)


def uses_words(uses: Uses | None) -> str:
    """Return for example "2 running, 1 workspace and 3 jobs"; "nobody" when nothing uses it."""
    if uses is None:
        return "nobody"
    counted: Mapping[str, int] = {
        f"{uses.running:,} running": uses.running,
        plural(uses.workspaces, "workspace"): uses.workspaces,
        plural(uses.jobs, "job"): uses.jobs,
    }
    parts = [words for words, count in counted.items() if count]
    return listed(parts) if parts else "nobody"


def deprecation_sentences(line: RevisionLine, uses: Uses | None, next_number: int) -> list[str]:
    """Return what deprecating a revision means for those who use it."""
    sentences = []
    if next_number == 0:
        sentences.append(
            "It is the only one that is ready, so new launches would have none: add another revision first."
        )
    elif next_number != line.number:
        sentences.append(f"New launches take revision {next_number}.")
    if uses is not None and uses.running:
        execution = plural(uses.running, "running execution")
        sentences.append(
            f"{execution} {'has' if uses.running == 1 else 'have'} it and continue{'s' if uses.running == 1 else ''}."
        )
    if uses is not None and uses.workspaces:
        workspaces = plural(uses.workspaces, "workspace")
        sentences.append(f"{workspaces} can still be resumed with it, and the form points to revision {next_number}.")
    if uses is not None and uses.jobs:
        jobs = f"{plural(uses.jobs, 'job')} ran with it last. A run that is repeated has it again, and says that it is deprecated."
        sentences.append(jobs)
    return sentences or ["Nobody uses it."]
