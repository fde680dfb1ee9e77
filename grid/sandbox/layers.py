"""An image on top of another: the base's environment again, of which each file takes room on the disk once.

Files are hard links, so this costs no room and little time. Pip replaces files and never writes into them, so the base stays as it is.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def make_layer(base: Path, place: Path, *, marker: str) -> None:
    """Make `place` the same environment as `base`, for more to be installed into it. The base's `marker` is not taken along."""

    def left_out(folder: str, names: list[str]) -> list[str]:
        return [marker] if Path(folder) == base and marker in names else []

    shutil.copytree(base, place, symlinks=True, copy_function=os.link, ignore=left_out)
    for file in _with_paths(place):
        _move(file, str(base), str(place))


def added_bytes(place: Path) -> int:
    """Return the size of the files that are no base's."""
    files = (path.lstat() for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(status.st_size for status in files if status.st_nlink == 1)


def _with_paths(place: Path) -> Iterator[Path]:
    """Yield the files in which installers write the environment's path: programs, and kernels of notebooks."""
    yield from (place / "bin").iterdir()
    yield from place.glob("share/jupyter/kernels/*/kernel.json")


def _move(file: Path, old: str, new: str) -> None:
    if file.is_symlink():
        target = str(file.readlink())
        if target.startswith(f"{old}/"):
            file.unlink()
            file.symlink_to(new + target[len(old) :])
        return
    if not file.is_file():
        return
    content = file.read_bytes()
    # In JSON a path may be spelt otherwise than on the disk.
    moved = content.replace(old.encode(), new.encode()).replace(json.dumps(old)[1:-1].encode(), new.encode())
    if moved != content:
        fresh = file.with_name(f"{file.name}.moved")
        fresh.write_bytes(moved)
        shutil.copymode(file, fresh)
        fresh.replace(file)
