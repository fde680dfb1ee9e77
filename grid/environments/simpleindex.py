"""Whether a release is yanked, from a project's page of a simple index in JSON (PEP 691), with what PEP 592 adds; pure."""

from collections.abc import Iterator

import msgspec
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

ACCEPT = "application/vnd.pypi.simple.v1+json"


class _SimpleFile(msgspec.Struct):
    filename: str
    yanked: bool | str = False


class _Project(msgspec.Struct):
    files: list[_SimpleFile]


def why_yanked(page: bytes, version: str) -> str | bool | None:
    """Return why the release is yanked, "" without a reason; None when it is not, and False when the page has no such release. Raise
    ValueError when it is no page of a simple index in JSON."""
    files = list(_files_of(msgspec.json.decode(page, type=_Project).files, version))
    if not files:
        return False
    if not all(file.yanked is not False for file in files):
        return None
    return next((file.yanked for file in files if isinstance(file.yanked, str)), "")


def _files_of(files: list[_SimpleFile], version: str) -> Iterator[_SimpleFile]:
    try:
        wanted = Version(version)
    except InvalidVersion:
        return
    for file in files:
        try:
            release = (
                parse_wheel_filename(file.filename)[1]
                if file.filename.endswith(".whl")
                else parse_sdist_filename(file.filename)[1]
            )
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue
        if release == wanted:
            yield file
