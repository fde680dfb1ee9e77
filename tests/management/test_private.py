"""What the demo writes is for its user alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from grid.management.commands.up import keep_private


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_files_are_readable_by_nobody_else(tmp_path: Path) -> None:
    keep_private(tmp_path / "not-made-yet")
    folder, file = tmp_path / "log", tmp_path / "web.log"
    folder.mkdir()
    file.touch()
    assert (mode(folder), mode(file)) == (0o700, 0o600)


def test_database_of_earlier_version_is_closed_to_others(tmp_path: Path) -> None:
    files = [tmp_path / "grid.sqlite3", tmp_path / "grid.sqlite3-wal", tmp_path / "notes"]
    for file in files:
        file.touch(mode=0o644)
    tmp_path.chmod(0o755)
    keep_private(tmp_path)
    assert [mode(file) for file in files] == [0o600, 0o600, 0o644]
    assert mode(tmp_path) == 0o755
