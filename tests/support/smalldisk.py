"""A disk that is small enough to be filled for real."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path | None]:
    """A tmpfs at a folder; None where this user may not mount one."""
    place.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode != 0:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> Path:
    """Leave no byte free; the file that takes the room is given back, to be deleted."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (2**20, 4096, 512, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(os.urandom(size))
    return ballast
