"""Puts the revisions of an environment into words: state and size, who uses each, and what is known against its packages; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dashboard.shell.viewmodels.states import StatusLine
from grid.core.decoding import prepared
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import duration, listed, listed_up_to, plural
from grid.diagnosis.nodeimages import ImageOnNodes
from grid.environments.packageindex import Advisory, Package, PackageMark, PackageReport
from grid.environments.revisions import CAN_RUN, RevisionUses
from grid.models import EnvironmentRevision

_SHOWN_UNKNOWN = 5


@dataclass(frozen=True, slots=True)
class MarkedPackage:
    """A release with what is known against it: `advisories` are pairs of an advisory and what fixes it."""

    name: str
    advisories: Sequence[tuple[Advisory, str]]
    yanked: str


@dataclass(frozen=True, slots=True)
class PackageWords:
    """The packages of a revision: in a few words for the list, and in full for its page; all empty where nothing was asked."""

    summary: str = ""
    is_marked: bool = False
    marked: Sequence[MarkedPackage] = ()
    sentence: str = ""
    unchecked: str = ""


def package_words(report: Any, unchecked: str, asked_at: datetime | None) -> PackageWords:
    """Return the words for what is stored; `report` is None before the index has ever answered."""
    not_checked = _("Not checked: {reason}", reason=unchecked) if unchecked else ""
    if report is None:
        return PackageWords(summary=_("Packages not checked") if unchecked else "", unchecked=not_checked)
    known = msgspec.convert(report, prepared(PackageReport))
    if not_checked and asked_at is not None:
        since = _("Not checked since, last on {asked_at:%Y-%m-%d %H:%M} UTC: {reason}")
        not_checked = since.format(asked_at=asked_at, reason=unchecked)
    counted = {
        _("{packages} with known vulnerabilities"): sum(bool(mark.advisories) for mark in known.marks),
        _("{packages} yanked"): sum(mark.why_yanked is not None for mark in known.marks),
    }
    parts = [words.format(packages=plural(count, "package", "packages")) for words, count in counted.items() if count]
    return PackageWords(
        summary=listed(parts) if parts else "",
        is_marked=bool(parts),
        marked=[_marked(mark) for mark in known.marks],
        sentence=_sentence(known),
        unchecked=not_checked,
    )


def _sentence(report: PackageReport) -> str:
    packages = plural(report.checked, "package", "packages")
    sentence = _("Nothing is known against {packages}, says {index} ({at:%Y-%m-%d %H:%M} UTC).")
    if report.only_yanked:
        sentence = _("Of {packages} none is yanked, says {index} ({at:%Y-%m-%d %H:%M} UTC).")
    if report.marks:
        sentence = _("{marked:,} marked of {packages}, says {index} ({at:%Y-%m-%d %H:%M} UTC).")
    sentences = [sentence.format(marked=len(report.marks), packages=packages, index=report.index, at=report.at)]
    if report.only_yanked:
        sentences.append(_("Only whether they are yanked was checked: it does not say which are vulnerable."))
    if unknown := [package for package in report.unknown if package not in report.unanswered]:
        sentences.append(_("It does not know {packages}.", packages=_names(unknown)))
    if report.unanswered:
        sentences.append(_("It answered with an error for {packages}.", packages=_names(report.unanswered)))
    return " ".join(sentences)


def _names(packages: Sequence[Package]) -> str:
    return listed_up_to(_SHOWN_UNKNOWN, [f"{package.name} {package.version}" for package in packages])


def _marked(mark: PackageMark) -> MarkedPackage:
    advisories = [
        (known, _("fixed in {versions}", versions=listed(known.fixed_in)) if known.fixed_in else _("not fixed yet"))
        for known in mark.advisories
    ]
    reason = mark.why_yanked or _("no reason was given.")
    yanked = "" if mark.why_yanked is None else _("Yanked: {reason}", reason=reason)
    return MarkedPackage(f"{mark.package.name} {mark.package.version}", advisories, yanked)


_STATES = {
    "building": StatusLine("wait", _("Building")),
    "ready": StatusLine("ok", _("Ready")),
    "failed": StatusLine("problem", _("Failed")),
    "deprecated": StatusLine("neutral", _("Deprecated")),
}
LARGE = 1 << 30  # bytes of an image that is worth a hint


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What nodes report of a revision's image, and of its base's; `byte_seconds` is how long the pull of a byte usually takes here."""

    seen: ImageOnNodes = field(default_factory=ImageOnNodes)
    base_size: int | None = None
    byte_seconds: float | None = None


_UNSEEN = ImageFacts()


@dataclass(frozen=True, slots=True)
class RevisionLine:
    row: EnvironmentRevision
    status: StatusLine
    is_current: bool
    size: str
    pull_hint: str
    packages: PackageWords
    uses: str

    @property
    def requirements(self) -> Sequence[str]:
        return self.row.requirements.splitlines()

    @property
    def what(self) -> str:
        if self.row.base is None:
            return self.row.image
        shown, more = ", ".join(self.requirements[:3]), len(self.requirements) - 3
        return _("{names} and {more} more", names=shown, more=more) if more > 0 else shown


def revision_line(
    row: EnvironmentRevision, *, current: int, uses: RevisionUses, image: ImageFacts = _UNSEEN
) -> RevisionLine:
    size, layer = known_sizes(row, image)
    base = row.base.number if row.base else 0
    return RevisionLine(
        row,
        _STATES[row.state],
        is_current=row.number == current,
        size=", ".join(filter(None, (size_words(size, layer), nodes_words(image.seen)))),
        pull_hint=pull_hint(size, layer, image.byte_seconds, base=base) if row.state in CAN_RUN else "",
        packages=package_words(row.packages_report, row.packages_unchecked, row.packages_asked_at),
        uses=uses_words(uses),
    )


def known_sizes(row: EnvironmentRevision, image: ImageFacts) -> tuple[int | None, int | None]:
    """Return the size of an image and of what it adds to its base: as its builder said, else as nodes report them."""
    if row.size_bytes is not None:
        return row.size_bytes, row.layer_bytes
    size = image.seen.size
    layer = size - image.base_size if size and image.base_size else None
    return size, layer if layer is not None and layer > 0 else None


def nodes_words(image: ImageOnNodes) -> str:
    """Return for example "on 2 of 5 nodes"; "" when no node reports it, which it may have all the same."""
    nodes = plural(image.nodes, "node", "nodes")
    return _("on {have:,} of {nodes}", have=image.have, nodes=nodes) if image.have else ""


def pull_hint(size: int | None, layer: int | None, byte_seconds: float | None, *, base: int = 0) -> str:
    """Return what a large image means for a start; "" for one that is not large. `layer` bytes are on top of the revision `base`."""
    if size is None or size < LARGE:
        return ""
    if byte_seconds is None:
        whole = _("Large: a node that has not run it yet has to pull it all before anything starts.")
        rest = _("One that has revision {base} pulls only the {size} on top of it.")
    else:
        whole = _("Large: a node that has not run it yet pulls it in about {time} here.")
        whole = whole.format(time=_pull_time(size, byte_seconds))
        rest = _("One that has revision {base} pulls only the {size} on top of it, in about {time}.")
    if not (base and layer and layer < size / 2):
        return whole
    time = _pull_time(layer, byte_seconds) if byte_seconds is not None else ""
    return f"{whole} {rest.format(base=base, size=format_bytes(layer), time=time)}"


def _pull_time(size: int, byte_seconds: float) -> str:
    return duration(timedelta(seconds=max(1.0, size * byte_seconds)))


def size_words(size: int | None, layer: int | None) -> str:
    """Return for example "400 MiB, 12 MiB of it on top of the base"; "" when it is not known."""
    if size is None:
        return ""
    if not layer:
        return format_bytes(size)
    return _("{size}, {layer} of it on top of the base", size=format_bytes(size), layer=format_bytes(layer))


def uses_words(uses: RevisionUses) -> str:
    """Return for example "2 running, 1 workspace and 3 jobs"; "nobody" when nothing uses it."""
    counted: Mapping[str, int] = {
        _("{running:,} running", running=uses.running): uses.running,
        plural(uses.workspaces, "workspace", "workspaces"): uses.workspaces,
        plural(uses.jobs, "job", "jobs"): uses.jobs,
    }
    parts = [words for words, count in counted.items() if count]
    return listed(parts) if parts else _("nobody")


def deprecation_sentences(uses: RevisionUses, next_number: int) -> list[str]:
    """Return what deprecating a revision means for those who use it; 0 is the next number where no other is ready."""
    if next_number == 0:
        return [_("It is the only one that is ready, so new launches would have none: add another revision first.")]
    sentences = [_("New launches take revision {next_number}.", next_number=next_number)]
    if uses.running:
        sentence = ngettext(
            "{count:,} running execution has it and continues.",
            "{count:,} running executions have it and continue.",
            uses.running,
        )
        sentences.append(sentence)
    if uses.workspaces:
        sentence = _("{workspaces} can still be resumed with it, and the form points to revision {next_number}.")
        workspaces = plural(uses.workspaces, "workspace", "workspaces")
        sentences.append(sentence.format(workspaces=workspaces, next_number=next_number))
    if uses.jobs:
        sentence = _("{jobs} ran with it last. A run that is repeated has it again, and says that it is deprecated.")
        sentences.append(sentence.format(jobs=plural(uses.jobs, "job", "jobs")))
    return sentences
