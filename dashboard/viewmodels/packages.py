"""Puts what a package index knows against a revision's packages into words; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from grid.launch.packageindex import Advisory, PackageMark, PackageReport
from grid.wording import listed, listed_up_to, plural

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
    not_checked = f"Not checked: {unchecked}" if unchecked else ""
    if report is None:
        return PackageWords(summary="Packages not checked" if unchecked else "", unchecked=not_checked)
    known = msgspec.convert(report, PackageReport)
    if not_checked and asked_at is not None:
        not_checked = f"Not checked since, last on {asked_at:%Y-%m-%d %H:%M} UTC: {unchecked}"
    vulnerable = sum(bool(mark.advisories) for mark in known.marks)
    yanked = sum(mark.why_yanked is not None for mark in known.marks)
    parts = [f"{plural(vulnerable, 'package')} with known vulnerabilities"] if vulnerable else []
    parts += [f"{plural(yanked, 'package')} yanked"] if yanked else []
    return PackageWords(
        summary=listed(parts) if parts else "",
        is_marked=bool(parts),
        marked=[_marked(mark) for mark in known.marks],
        sentence=_sentence(known),
        unchecked=not_checked,
    )


def _sentence(report: PackageReport) -> str:
    what = "Nothing is known against" if not report.marks else f"{len(report.marks):,} marked of"
    said = f"{what} {plural(report.checked, 'package')}, says {report.index} ({report.at:%Y-%m-%d %H:%M} UTC)."
    if report.only_yanked:
        said = f"{said} Only whether they are yanked was checked: it does not say which are vulnerable."
    unknown = [one for one in report.unknown if one not in report.unanswered]
    for what, packages in (("does not know", unknown), ("answered with an error for", report.unanswered)):
        if packages:
            names = [f"{one.name} {one.version}" for one in packages]
            said = f"{said} It {what} {listed_up_to(_SHOWN_UNKNOWN, names)}."
    return said


def _marked(mark: PackageMark) -> MarkedPackage:
    advisories = [
        (one, f"fixed in {listed(one.fixed_in)}" if one.fixed_in else "not fixed yet") for one in mark.advisories
    ]
    yanked = "" if mark.why_yanked is None else f"Yanked: {mark.why_yanked or 'no reason was given.'}"
    return MarkedPackage(f"{mark.package.name} {mark.package.version}", advisories, yanked)
