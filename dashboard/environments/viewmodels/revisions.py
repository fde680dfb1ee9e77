"""Puts the revisions of an environment into words: what each is, its state and size, and who uses it; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from dashboard.environments.viewmodels.packages import PackageWords, package_words
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import duration, listed, plural
from grid.diagnosis.nodeimages import ImageOnNodes

_STATES = {
    "building": StatusLine("wait", _("Building")),
    "ready": StatusLine("ok", _("Ready")),
    "failed": StatusLine("problem", _("Failed")),
    "deprecated": StatusLine("neutral", _("Deprecated")),
}


LARGE = 1 << 30  # bytes of an image that is worth a hint
_CAN_RUN = ("ready", "deprecated")


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
    packages_report: Any
    packages_unchecked: Any
    packages_asked_at: Any


class Uses(Protocol):
    """Who uses a revision, as numbers."""

    @property
    def running(self) -> int: ...
    @property
    def workspaces(self) -> int: ...
    @property
    def jobs(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What nodes report of a revision's image, and of its base's; `byte_seconds` is how long the pull of a byte usually takes here."""

    seen: ImageOnNodes = field(default_factory=ImageOnNodes)
    base_size: int | None = None
    byte_seconds: float | None = None


_UNSEEN = ImageFacts()


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
    pull_hint: str
    packages: PackageWords
    uses: str
    note: str
    because: str
    made_by: str
    made_at: datetime

    @property
    def what(self) -> str:
        if not self.base:
            return self.image
        shown, more = ", ".join(self.requirements[:3]), len(self.requirements) - 3
        return _("{names} and {more} more", names=shown, more=more) if more > 0 else shown


def revision_line(
    stored: StoredRevision, *, base: int, current: int, uses: Uses | None, image: ImageFacts = _UNSEEN
) -> RevisionLine:
    size, layer = known_sizes(stored, image)
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
        size=", ".join(filter(None, (size_words(size, layer), nodes_words(image.seen)))),
        pull_hint=pull_hint(size, layer, image.byte_seconds, base=base) if stored.state in _CAN_RUN else "",
        packages=package_words(stored.packages_report, stored.packages_unchecked, stored.packages_asked_at),
        uses=uses_words(uses),
        note=stored.note,
        because=stored.deprecated_because,
        made_by=stored.made_by,
        made_at=stored.made_at,
    )


def known_sizes(stored: StoredRevision, image: ImageFacts) -> tuple[int | None, int | None]:
    """Return the size of an image and of what it adds to its base: as its builder said, else as nodes report them."""
    if stored.size_bytes is not None:
        return stored.size_bytes, stored.layer_bytes
    size = image.seen.size
    layer = size - image.base_size if size and image.base_size else None
    return size, layer if layer is not None and layer > 0 else None


def nodes_words(image: ImageOnNodes) -> str:
    """Return for example "on 2 of 5 nodes"; "" when no node reports it, which it may have all the same."""
    return (
        _("on {have:,} of {nodes}", have=image.have, nodes=plural(image.nodes, "node", "nodes")) if image.have else ""
    )


def pull_hint(size: int | None, layer: int | None, byte_seconds: float | None, *, base: int = 0) -> str:
    """Return what a large image means for a start, in sentences; "" for one that is not large. Of one that is built, `layer` bytes are
    on top of the revision `base`."""
    if size is None or size < LARGE:
        return ""
    if byte_seconds is None:
        said = _("Large: a node that has not run it yet has to pull it all before anything starts.")
    else:
        said = _(
            "Large: a node that has not run it yet pulls it in about {time} here.", time=_pull_time(size, byte_seconds)
        )
    if not (base and layer and layer < size / 2):
        return said
    facts = {"base": base, "size": format_bytes(layer)}
    more = (
        _("One that has revision {base} pulls only the {size} on top of it.", **facts)
        if byte_seconds is None
        else _(
            "One that has revision {base} pulls only the {size} on top of it, in about {time}.",
            time=_pull_time(layer, byte_seconds),
            **facts,
        )
    )
    return f"{said} {more}"


def _pull_time(size: int, byte_seconds: float) -> str:
    return duration(timedelta(seconds=max(1.0, size * byte_seconds)))


def size_words(size: int | None, layer: int | None) -> str:
    """Return for example "400 MiB, 12 MiB of it on top of the base"; "" when it is not known."""
    if size is None:
        return ""
    return (
        _("{size}, {layer} of it on top of the base", size=format_bytes(size), layer=format_bytes(layer))
        if layer
        else format_bytes(size)
    )


def uses_words(uses: Uses | None) -> str:
    """Return for example "2 running, 1 workspace and 3 jobs"; "nobody" when nothing uses it."""
    if uses is None:
        return _("nobody")
    counted: Mapping[str, int] = {
        _("{running:,} running", running=uses.running): uses.running,
        plural(uses.workspaces, "workspace", "workspaces"): uses.workspaces,
        plural(uses.jobs, "job", "jobs"): uses.jobs,
    }
    parts = [words for words, count in counted.items() if count]
    return listed(parts) if parts else _("nobody")


def deprecation_sentences(uses: Uses | None, next_number: int) -> list[str]:
    """Return what deprecating a revision means for those who use it; 0 is the next number where no other is ready."""
    if next_number == 0:
        return [_("It is the only one that is ready, so new launches would have none: add another revision first.")]
    sentences = [_("New launches take revision {next_number}.", next_number=next_number)]
    if uses is not None and uses.running:
        sentences.append(
            ngettext(
                "{count:,} running execution has it and continues.",
                "{count:,} running executions have it and continue.",
                uses.running,
            )
        )
    if uses is not None and uses.workspaces:
        workspaces = plural(uses.workspaces, "workspace", "workspaces")
        sentences.append(
            _(
                "{workspaces} can still be resumed with it, and the form points to revision {next_number}.",
                workspaces=workspaces,
                next_number=next_number,
            )
        )
    if uses is not None and uses.jobs:
        jobs = _(
            "{jobs} ran with it last. A run that is repeated has it again, and says that it is deprecated.",
            jobs=plural(uses.jobs, "job", "jobs"),
        )
        sentences.append(jobs)
    return sentences
