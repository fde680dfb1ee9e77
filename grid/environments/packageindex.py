"""What a package index knows of packages: vulnerable releases and yanked ones, from the JSON API that PyPI serves and mirrors copy.

https://docs.pypi.org/api/json/ describes it. Where it is not served, the simple index in JSON (PEP 691, PEP 592) tells what is yanked. An
answer is data of somebody else: it is bounded, loses its control characters, and of its links only http ones are kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TypeAlias
from urllib.parse import quote

import aiohttp
import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version
from yarl import URL

from grid.clusters.frameworks.base import UNREADABLE
from grid.core.decoding import prepared
from grid.core.errors import why_unreached
from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _

SECONDS = 10.0  # for each package
MOST_PACKAGES = 400
_AT_ONCE = 4
_LARGEST = 2 << 20
_MOST_ADVISORIES = 20
_LONGEST_REASON = 300
_INSTALLED = RepeatedExpression(r"Successfully installed (.+)")
_NAMED = Expression(r"([A-Za-z0-9][A-Za-z0-9._-]*)-([0-9v][A-Za-z0-9.!+_]*)")
_ID = Expression(r"[A-Za-z0-9._:-]{1,60}")
_VERSION = Expression(r"[A-Za-z0-9.!+_-]{1,40}")
_ACCEPT = "application/vnd.pypi.simple.v1+json"


class NotChecked(Exception):
    """The index cannot be asked now; the message is a sentence that says why."""


class NoAnswer(NotChecked):
    """The index was reached, and said nothing of use about one release."""


class Package(msgspec.Struct, frozen=True, order=True):
    name: str
    version: str


class Advisory(msgspec.Struct, frozen=True):
    """A known vulnerability of a release."""

    id: str
    link: str
    fixed_in: tuple[str, ...] = ()


class PackageMark(msgspec.Struct, frozen=True):
    """A release that is vulnerable or yanked; `why_yanked` is None for one that is not, and may be empty for one that is."""

    package: Package
    advisories: tuple[Advisory, ...] = ()
    why_yanked: str | None = None


class PackageReport(msgspec.Struct, frozen=True):
    """What an index said of a revision's packages: how many it knows, which of them are marked, and which it does not know."""

    at: datetime
    index: str
    checked: int
    marks: tuple[PackageMark, ...] = ()
    unknown: tuple[Package, ...] = ()
    unanswered: tuple[Package, ...] = ()  # of the unknown ones, those that it answered with an error
    only_yanked: bool = False  # it serves no JSON API, so nothing is known of vulnerabilities


# The mark of a release, None without any; False for one that the index does not know; the error that it answered.
Answer: TypeAlias = PackageMark | bool | NoAnswer | None


class _Vulnerability(msgspec.Struct):
    id: str
    link: str | None = ""
    fixed_in: list[str] | None = None
    withdrawn: str | None = None


class _File(msgspec.Struct):
    yanked: bool = False
    yanked_reason: str | None = None


class _Release(msgspec.Struct):
    vulnerabilities: list[_Vulnerability] | None = None
    urls: list[_File] | None = None


class _SimpleFile(msgspec.Struct):
    filename: str
    yanked: bool | str = False


class _Project(msgspec.Struct):
    files: list[_SimpleFile]


def why_yanked(page: bytes, version: str) -> str | bool | None:
    """Return why the release is yanked, "" without a reason, None when it is not, False when the page has none. Raise ValueError."""
    files = []
    for file in msgspec.json.decode(page, type=prepared(_Project)).files:
        is_wheel = file.filename.endswith(".whl")
        with suppress(ValueError):  # no name of a release, or no version
            release = parse_wheel_filename(file.filename)[1] if is_wheel else parse_sdist_filename(file.filename)[1]
            if release == Version(version):
                files.append(file)
    if not files:
        return False
    if not all(file.yanked is not False for file in files):
        return None
    return next((file.yanked for file in files if isinstance(file.yanked, str)), "")


def packages_of(requirements: Iterable[str], log: str) -> Sequence[Package]:
    """Return what was installed: as pip's log says, with what the requirements needed; without such a line, what they name exactly."""
    packages = {
        Package(canonicalize_name(match[1]), match[2])
        for line in _INSTALLED.findall(log)
        for match in map(_NAMED.fullmatch, line.split())
        if match is not None
    }
    if not packages:
        for requirement in map(Requirement, requirements):
            pins = [each.version for each in requirement.specifier if each.operator == "==" and "*" not in each.version]
            if len(pins) == 1:
                packages.add(Package(canonicalize_name(requirement.name), pins[0]))
    return sorted(packages)[:MOST_PACKAGES]


def mark_of(package: Package, answer: bytes) -> PackageMark | None:
    """Return the mark that an answer of the index means; None for a release that nothing is known against. Raise NotChecked."""
    try:
        release = msgspec.json.decode(answer, type=prepared(_Release))
    except UNREADABLE as error:
        raise NoAnswer(_("The package index answered something that is not PyPI's JSON.")) from error
    advisories = tuple(
        Advisory(known.id, _link_of(known), tuple(filter(_VERSION.fullmatch, known.fixed_in or ())))
        for known in release.vulnerabilities or ()
        if not known.withdrawn and _ID.fullmatch(known.id)
    )
    files = release.urls or []
    why = _reason(files[0].yanked_reason or "") if files and all(file.yanked for file in files) else None
    return PackageMark(package, advisories[:_MOST_ADVISORIES], why) if advisories or why is not None else None


def _link_of(vulnerability: _Vulnerability) -> str:
    link = vulnerability.link or ""
    is_kept = link.startswith(("https://", "http://")) and len(link) <= 300 and link.isprintable()
    return link if is_kept else "https://osv.dev/vulnerability/" + quote(vulnerability.id)


def _reason(text: str) -> str:
    """Return the text in one line, shortened; without control characters, of which PostgreSQL stores no NUL."""
    return "".join(filter(str.isprintable, " ".join(text.split())))[:_LONGEST_REASON]


class PackageIndex:
    """Asks the index with that address, such as https://pypi.org/simple; each answer has `seconds`."""

    def __init__(self, url: str, *, seconds: float = SECONDS) -> None:
        self._url = URL(url.rstrip("/").removesuffix("/simple"))
        self._seconds = seconds

    @property
    def host(self) -> str:
        return self._url.host or ""

    async def report(self, packages: Sequence[Package], now: datetime) -> PackageReport:
        """Return what the index says of all of them, its simple index where it has no JSON API. Raise NotChecked without any answer."""
        async with aiohttp.ClientSession(trust_env=True, headers={"User-Agent": "compute-grid"}) as session:
            answers = await _of_each(packages, partial(self._known, session))
            only_yanked = bool(packages) and all(map(_is_unknown, answers))
            if only_yanked:
                answers = await _of_each(packages, partial(self._yanked, session))
        pairs = list(zip(packages, answers, strict=True))
        unknown = tuple(package for package, answer in pairs if _is_unknown(answer))
        unanswered = tuple(package for package, answer in pairs if isinstance(answer, NoAnswer))
        if packages and len(unknown) == len(packages):
            raise NotChecked(_("{host} knows none of its packages, or is no package index.", host=self.host))
        marks = tuple(answer for answer in answers if isinstance(answer, PackageMark))
        return PackageReport(now, self.host, len(packages) - len(unknown), marks, unknown, unanswered, only_yanked)

    async def _known(self, session: aiohttp.ClientSession, package: Package) -> Answer:
        page = await self._get(session, self._url / "pypi" / package.name / package.version / "json")
        return False if page is None else mark_of(package, page)

    async def _yanked(self, session: aiohttp.ClientSession, package: Package) -> Answer:
        page = await self._get(session, self._url / "simple" / package.name / "", accept=_ACCEPT)
        if page is None:
            return False
        try:
            why = await asyncio.to_thread(why_yanked, page, package.version)
        except (ValueError, *UNREADABLE) as error:
            sentence = _("{host} answered something that is no page of a package index in JSON.", host=self.host)
            raise NoAnswer(sentence) from error
        return PackageMark(package, why_yanked=_reason(why)) if isinstance(why, str) else why

    async def _get(self, session: aiohttp.ClientSession, address: URL, *, accept: str = "*/*") -> bytes | None:
        try:
            async with (
                asyncio.timeout(self._seconds),
                session.get(address, max_redirects=3, headers={"Accept": accept}) as answer,
            ):
                if answer.status == 404:
                    return None
                if answer.status != 200:
                    raise NoAnswer(_("{host} answered with status {status}.", host=self.host, status=answer.status))
                body = b""
                while more := await answer.content.read(_LARGEST):
                    body += more
                    if len(body) > _LARGEST:
                        sentence = _("{host} answered with more than {largest} MiB.")
                        raise NoAnswer(sentence.format(host=self.host, largest=_LARGEST >> 20))
                return body
        except TimeoutError:
            sentence = _("{host} did not answer within {seconds:.0f} seconds.")
            raise NotChecked(sentence.format(host=self.host, seconds=self._seconds)) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            sentence = _("{host} cannot be reached: {why}.", host=self.host, why=why_unreached(error))
            raise NotChecked(sentence) from error


def _is_unknown(answer: Answer) -> bool:
    return answer is False or isinstance(answer, NoAnswer)


async def _of_each(packages: Sequence[Package], ask: Callable[[Package], Awaitable[Answer]]) -> list[Answer]:
    """Ask for all, a few at once. Raise NotChecked at the first for which the index is not reached, or when it has no answer for any."""
    asking = asyncio.Semaphore(_AT_ONCE)

    async def ask_in_turn(package: Package) -> Answer:
        async with asking:
            try:
                return await ask(package)
            except NoAnswer as error:
                return error

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask_in_turn(package)) for package in packages]
    except* NotChecked as errors:
        raise NotChecked(str(errors.exceptions[0])) from None
    answers = [task.result() for task in tasks]
    failed = [answer for answer in answers if isinstance(answer, NoAnswer)]
    if failed and len(failed) == len(answers):
        raise failed[0]
    return answers
