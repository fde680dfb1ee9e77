"""The termination message of a container, read when it has ended."""

import os
import stat
from pathlib import Path

from grid.sandbox.client import Object
from grid.sandbox.kubelet.logfiles import last_lines
from grid.sandbox.kubelet.runtime import Attempt

_LONGEST_FILE = 4096
_LONGEST_LOG, _LOG_LINES = 2048, 80


def termination_message(attempt: Attempt, container: Object) -> str:
    """Return the content of terminationMessagePath, or the end of the log where the policy asks for that after an error."""
    text = _read(attempt.directory / "termination-log").decode(errors="replace")
    failed = attempt.exit is not None and attempt.exit.code != 0
    if not text and failed and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        text = "\n".join(last_lines(attempt.directory / "log", _LOG_LINES))[-_LONGEST_LOG:]
    return text


def _read(path: Path) -> bytes:
    """Return the beginning of the file; nothing where the program has put a link, a pipe or a device in its place."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, _LONGEST_FILE) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    finally:
        os.close(file)
