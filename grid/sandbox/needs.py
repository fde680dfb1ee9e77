"""Programs of the machine that an image needs beside its Python packages, such as Java for Spark.

They are searched before anything is installed, with their minimum version. A program that is found is linked into the image, so that
containers find it wherever it is on the machine.
"""

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grid.core.regexes import Expression
from grid.sandbox import programs

# Where distributions put servers, such as nginx; it is not in everybody's PATH, but it is in containers'.
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
_NUMBER = Expression(r"\bv?(\d+)")  # as in “openjdk 17.0.15” and “v20.20.2”
_ANSWER_SECONDS = 30.0
_LONGEST_ANSWER = 10 * 1024


class Unmet(Exception):
    """The machine lacks a program; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Need:
    """`version` is the least first number in the output of `PROGRAM --version`, 0 for any; `advice` says how to get the program."""

    program: str
    advice: str
    version: int = 0


async def find(needs: Sequence[Need], path: str) -> dict[str, str]:
    """Return the programs' paths on `path`, a list of directories as in PATH, or else on the system's. Raise `Unmet` for the first
    missing or old one."""
    programs = {}
    for need in needs:
        place = await asyncio.to_thread(shutil.which, need.program, path=f"{path}:{SYSTEM_PATH}")
        if place is None:
            raise Unmet(need.advice)
        if need.version and (version := await _version(place)) < need.version:
            has = f"its version {version}" if version else "one that does not say its version"
            raise Unmet(f"{need.advice} (this machine's {place} is {has})")
        programs[need.program] = place
    return programs


def link(programs: dict[str, str], folder: Path) -> None:
    for program, place in programs.items():
        if not (folder / program).exists():
            (folder / program).symlink_to(place)


async def _version(program: str) -> int:
    try:
        done = await programs.run(
            (program, "--version"),
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            stderr=asyncio.subprocess.DEVNULL,
            timeout=_ANSWER_SECONDS,
            longest=_LONGEST_ANSWER,
        )
    except TimeoutError:
        return 0
    number = _NUMBER.search(done.output.decode(errors="replace"))
    return int(number[1]) if number and done.code == 0 else 0
