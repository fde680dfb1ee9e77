"""Whether a release is yanked, from a project's page of a simple index: as JSON (PEP 691) or HTML, with what PEP 592 adds; pure."""

import re
from collections.abc import Iterator
from html import unescape

import msgspec
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_LONGEST_TEXT = 1000
# Possessive, so that each is linear in the page, which is somebody else's: html.parser needs the square of it for "<a " over and over.
_ANCHOR = re.compile(r"<a\s", re.IGNORECASE)
_REST_OF_TAG = re.compile(r"""(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++)))?+""")


class _SimpleFile(msgspec.Struct):
    filename: str
    yanked: bool | str = False


class _Project(msgspec.Struct):
    files: list[_SimpleFile]


def why_yanked(page: bytes, content_type: str, version: str) -> str | bool | None:
    """Return why the release is yanked, "" without a reason; None when it is not, and False when the page has no such release. Raise
    ValueError when it is no page of a simple index."""
    files = list(_files_of(_read(page, content_type), version))
    if not files:
        return False
    if not all(one.yanked is not False for one in files):
        return None
    return next((one.yanked for one in files if isinstance(one.yanked, str)), "")


def _read(page: bytes, content_type: str) -> list[_SimpleFile]:
    if content_type.endswith("json"):
        return msgspec.json.decode(page, type=_Project).files
    return list(_links_of(page.decode(errors="replace")))


def _links_of(page: str) -> Iterator[_SimpleFile]:
    """Yield the files of a page: the text of each link, and its attribute data-yanked, which counts even when it is empty."""
    for part in _ANCHOR.split(page)[1:]:
        if tag := _REST_OF_TAG.match(part):
            given = {one[1].lower(): one[2] or one[3] or one[4] or "" for one in _ATTRIBUTE.finditer(tag[0])}
            why = unescape(given["data-yanked"][:_LONGEST_TEXT]) or True if "data-yanked" in given else False
            text = part[tag.end() : tag.end() + _LONGEST_TEXT].partition("<")[0]
            yield _SimpleFile(unescape(text).strip(), why)


def _files_of(files: list[_SimpleFile], version: str) -> Iterator[_SimpleFile]:
    try:
        wanted = Version(version)
    except InvalidVersion:
        return
    for one in files:
        try:
            found = (
                parse_wheel_filename(one.filename)[1]
                if one.filename.endswith(".whl")
                else parse_sdist_filename(one.filename)[1]
            )
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue
        if found == wanted:
            yield one
