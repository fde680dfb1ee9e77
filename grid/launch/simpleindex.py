"""Whether a release is yanked, from a project's page of a simple index: as JSON (PEP 691) or HTML, with what PEP 592 adds; pure."""

from collections.abc import Iterator
from html.parser import HTMLParser

import msgspec
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


class _SimpleFile(msgspec.Struct):
    filename: str
    yanked: bool | str = False


class _Project(msgspec.Struct):
    files: list[_SimpleFile]


class _Anchors(HTMLParser):
    """Gathers the files of a page: the text of each link, and its attribute data-yanked, which counts even when it is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[_SimpleFile] = []
        self._open: _SimpleFile | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            given = dict(attrs)
            self._open = _SimpleFile("", (given["data-yanked"] or True) if "data-yanked" in given else False)

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open.filename += data.strip()

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._open is not None:
            self.files.append(self._open)
            self._open = None


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
    parser = _Anchors()
    parser.feed(page.decode(errors="replace"))
    parser.close()
    return parser.files


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
