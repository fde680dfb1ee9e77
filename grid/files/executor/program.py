"""The executor's life: prepare, wait for the program's end, save, report."""

import math
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .gitcommand import GitError
from .preparing import prepare
from .saving import save
from .task import GONE, UNUSABLE, Missing, Task, parse_task, short_reason, tell

_UNUSABLE = "The project's repository cannot be used:"
_LOOK_SECONDS = 0.5
_LONGEST_PAUSE = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    task = parse_task(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a folder far below is open together with all above it
    stop = _Stop(task)
    try:
        _prepare_patiently(task, stop)
    except Missing as error:
        return tell(task, GONE, problem=str(error))
    except (GitError, OSError, subprocess.TimeoutExpired) as error:
        return tell(task, UNUSABLE, problem=f"{_UNUSABLE} {short_reason(error, task)}")
    if task.only_prepare:
        return 0
    if not stop.wait():
        save(task)  # the program is still writing, so it is saved once more when it has ended
        while not stop.is_asked:
            time.sleep(_LOOK_SECONDS)
    return tell(task, 0, **save(task))


def _prepare_patiently(task: Task, stop: "_Stop") -> None:
    """Prepare, and try again for as long as the task's patience lasts and nobody stops it. Raise Missing, GitError, OSError."""
    began, pause = time.monotonic(), 1.0
    while True:
        try:
            return prepare(task)
        except (GitError, OSError, subprocess.TimeoutExpired):
            if stop.is_asked or time.monotonic() + pause - began > task.patience:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


class _Stop:
    """Waits for the end of the program, of which SIGTERM tells, or the file `end_note`."""

    def __init__(self, task: Task) -> None:
        self.is_asked = False
        self._end_note = task.end_note
        self._stopping = task.state / "stopping"
        self._patience = max(1.0, task.grace)
        signal.signal(signal.SIGTERM, self._ask)

    def wait(self) -> bool:
        """Return True when the program has ended; False when a stop has lasted so long that the program does not seem to end."""
        deadline = math.inf
        # Without a note, SIGTERM has given the program the time to end that it has elsewhere.
        if (note := self._end_note) is not None:
            while not _says_something(note) and time.monotonic() < deadline:
                # SIGTERM may have come before it was caught: a container's first process does not end by it then.
                if self.is_asked or self._stopping.exists():
                    deadline = min(deadline, time.monotonic() + self._patience)
                time.sleep(_LOOK_SECONDS)
            return True
        while not self.is_asked:
            if self._stopping.exists():
                deadline = min(deadline, time.monotonic() + self._patience)
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    def _ask(self, *_: object) -> None:
        self.is_asked = True


def _says_something(path: Path) -> bool:
    """Return whether the file has any text. The kubelet has made it, of links, in a volume that no program has."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return stat.S_ISREG(os.fstat(file).st_mode) and bool(os.read(file, 1000).strip())
        finally:
            os.close(file)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
