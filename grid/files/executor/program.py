"""The executor's life: prepare, wait for the program's end, save, report."""

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
        return tell(task, GONE, problem=str(error), **_where(task))
    except (GitError, OSError, subprocess.TimeoutExpired) as error:
        return tell(task, UNUSABLE, problem=f"{_UNUSABLE} {short_reason(error, task)}", **_where(task))
    if task.only_prepare:
        return 0
    if not stop.wait():
        save(task)  # the program is still writing, so it is saved once more when it has ended
        stop.wait_for_signal()
    return tell(task, 0, **save(task), **_where(task))


def _where(task: Task) -> dict[str, bool]:
    return {"remote": True} if task.remote else {}


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
        if self._end_note is not None:
            return self._wait_for_note(self._end_note)
        began = None
        while not self.is_asked:
            if began is None and self._stopping.exists():
                began = time.monotonic()
            if began is not None and time.monotonic() - began > self._patience:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    def _wait_for_note(self, note: Path) -> bool:
        """Return True when the file says that the program has ended, or SIGTERM has given it the time to end that it has elsewhere."""
        deadline = None
        while not _says_something(note) and (deadline is None or time.monotonic() < deadline):
            if self.is_asked and deadline is None:
                deadline = time.monotonic() + self._patience
            time.sleep(_LOOK_SECONDS)
        return True

    def wait_for_signal(self) -> None:
        while not self.is_asked:
            time.sleep(_LOOK_SECONDS)

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
