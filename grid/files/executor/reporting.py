"""Writes the executor's last words, and says in short what went wrong."""

import errno
import json
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .task import Task

_LONGEST_REPORT = 4000


def short_reason(error: Exception, task: Task) -> str:
    """Return git's last line; of a server's answer all of them, without the secret: there the last one says the least."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    text = _without_credentials(" ".join(lines)) if task.remote else lines[-1]
    with suppress(OSError):
        token = (task.secret / "token").read_text(errors="replace").strip()
        text = text.replace(token, "***") if token else text
    return text[:500].encode(errors="replace").decode()


def _without_credentials(text: str) -> str:
    """Return the text without what is before the @ of a URL; none of ours has any, but a server may have said one."""
    first, *rest = text.split("//")
    for part in rest:
        name, at, after = part.partition("@")
        hides = at and "/" not in name and not any(letter.isspace() for letter in name)
        first += f"//{after if hides else part}"
    return first


def tell(task: Task, code: int, **report: Any) -> int:
    longest = 500
    while len(text := json.dumps({"code": code, **_cut(report, longest)})) > _LONGEST_REPORT:
        longest //= 2
    sys.stdout.write(f"{text}\n")
    try:
        with os.fdopen(_open_report(task.report), "w") as file:
            file.write(text)
    except OSError as error:
        sys.stderr.write(f"the report was not written: {error}\n")
    return code


def _cut(report: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Return the report with sentences of at most so many characters: half a report could not be read."""
    sentences = ("problem", "results_problem", "left_out_names")
    return {name: value[:longest] if name in sentences else value for name, value in report.items()}


def _open_report(path: Path) -> int:
    """Return a descriptor of the file for its last words, which is empty then. Raise OSError where it is no file of its own. It is a mount,
    so no other can be put in its place."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(errno.EINVAL, "it is no file of its own")
        os.ftruncate(file, 0)
    except OSError:
        os.close(file)
        raise
    return file
