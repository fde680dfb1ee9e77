"""Puts what a package index knows against a revision's packages into words; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from grid.core.translation import gettext as _
from grid.core.wording import listed, listed_up_to, plural
from grid.environments.packageindex import Advisory, Package, PackageMark, PackageReport

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
    known = msgspec.convert(report, PackageReport)
    if not_checked and asked_at is not None:
        not_checked = _(
            "Not checked since, last on {asked_at:%Y-%m-%d %H:%M} UTC: {reason}", asked_at=asked_at, reason=unchecked
        )
    vulnerable = sum(bool(mark.advisories) for mark in known.marks)
    yanked = sum(mark.why_yanked is not None for mark in known.marks)
    parts = []
    if vulnerable:
        parts.append(_("{packages} with known vulnerabilities", packages=plural(vulnerable, "package", "packages")))
    if yanked:
        parts.append(_("{packages} yanked", packages=plural(yanked, "package", "packages")))
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
