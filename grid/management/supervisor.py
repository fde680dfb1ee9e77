"""Starts programs in order, keeps them running, and ends all of them and nothing else.

Each program is a process group of its own, so that Ctrl-C reaches only the supervisor, which then stops them in reverse order. If the
supervisor itself is killed, the kernel ends its children (Linux); elsewhere, and for whatever is left, the next start finds them by process
id and creation time in the register file.

A program's output goes to files of bounded size, NAME.log and NAME.log.1 to .3. It prints into a pipe, because a file that it holds open
itself cannot be rotated without losing lines.
"""

import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

import msgspec
import psutil

from grid.core.decoding import prepared

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
_RESTART_DELAYS = (0.5, 1.0, 2.0, 5.0)
_CALM_SECONDS = 60.0  # a program that ran this long before it ended starts again without delay
_CLOCK_SECONDS = 2.0
_LOG_BYTES, _OLDER_LOGS = 5 * 2**20, 3
_LONGEST_LINE = 64 * 1024
_DRAIN_SECONDS = 2.0  # for the rest of a log: a process that the program left behind may hold the pipe


class _Lines(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        """Ignore the error: a full disk loses lines, but must not block or end the program that prints them."""


class LogFile:
    """Copies what is printed into `input` to the file until every writer has closed it; then `close` returns."""

    def __init__(self, path: Path, *, file_bytes: int = _LOG_BYTES, older_files: int = _OLDER_LOGS) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Opened with the first line, where a full disk is no error.
        self._lines = _Lines(path, maxBytes=file_bytes, backupCount=older_files, encoding="utf-8", delay=True)
        self._output, self.input = os.pipe()
        self._thread = threading.Thread(target=self._copy, name=f"log {path.name}", daemon=True)

    def start(self) -> None:
        """Start copying, once the program has its end of the pipe: ours is closed, so that the end of the program's is noticed."""
        os.close(self.input)
        self._thread.start()

    def close(self, *, within: float = _DRAIN_SECONDS) -> None:
        self._thread.join(within)

    def _copy(self) -> None:
        rest = b""
        with os.fdopen(self._output, "rb", buffering=0) as output:
            while data := output.read(_LONGEST_LINE):
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    self._write(line)
        if rest:
            self._write(rest)
        with contextlib.suppress(OSError):
            self._lines.close()

    def _write(self, line: bytes) -> None:
        self._lines.handle(logging.makeLogRecord({"msg": line.decode(errors="replace")}))


class StartFailed(Exception):
    """A program could not be started; the message is one sentence for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class SupervisedProgram:
    """A program to run. `is_ready` is polled until it returns True; `stop_seconds` is how long a stop may take before the program is
    killed. An optional one holds nothing up: nobody waits for it, and when it keeps ending, the others go on without it."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    is_ready: Callable[[], bool]
    start_seconds: float = 60.0
    stop_seconds: float = 10.0
    is_optional: bool = False


@dataclass(slots=True)
class _Child:
    program: SupervisedProgram
    process: subprocess.Popen[bytes]
    log: LogFile
    started_at: float
    failures: int = 0


class _Entry(msgspec.Struct):
    """A program in the register; `created` is the time at which its process began, as the kernel says."""

    name: str
    pid: int
    created: float


class Supervisor:
    """Runs programs. Not thread-safe: one thread starts and watches; `request_stop` may be called from a signal handler."""

    def __init__(self, register: Path) -> None:
        self._register = register
        self._children: dict[str, _Child] = {}
        self._stop = threading.Event()

    def request_stop(self) -> None:
        self._stop.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def start(self, *programs: SupervisedProgram) -> None:
        """Start the programs together and wait until all but the optional ones are ready. Raise StartFailed with the last line of a
        program's own output."""
        waiting = []
        for program in programs:
            try:
                waiting.append(self._spawn(program))
            except OSError as error:
                if not program.is_optional:
                    raise
                logger.warning("%s cannot be started, everything else goes on: %s", program.name, error.strerror)
        waiting = [child for child in waiting if not child.program.is_optional]
        while waiting := [child for child in waiting if not child.program.is_ready()]:
            # The others may wait for a program that has ended.
            for child in self._children.values():
                if child.process.poll() is not None and not child.program.is_optional:
                    child.log.close()
                    raise StartFailed(f"The {child.program.name} ended while starting: {_last_line(child.program.log)}")
            for child in waiting:
                name, seconds, log = child.program.name, child.program.start_seconds, child.program.log
                if time.monotonic() > child.started_at + seconds:
                    late = f"The {name} was not ready after {seconds:.0f} s; {log} ends with: {_last_line(log)}"
                    raise StartFailed(late)
            if self._stop.wait(_POLL_SECONDS):
                return

    def watch(self) -> None:
        """Restart programs that end by themselves, until a stop is requested."""
        while not self._stop.wait(_POLL_SECONDS):
            for child in list(self._children.values()):
                if child.process.poll() is not None:
                    self._restart(child)

    def stop(self) -> None:
        """End all children, the last started first; calling it again does nothing."""
        self._stop.set()
        for child in reversed(list(self._children.values())):
            process = child.process
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(child.program.stop_seconds)
                except subprocess.TimeoutExpired:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            child.log.close()
        self._children.clear()
        self._register.unlink(missing_ok=True)

    def _restart(self, child: _Child) -> None:
        ran = time.monotonic() - child.started_at
        failures = 0 if ran > _CALM_SECONDS else child.failures + 1
        if child.program.is_optional and failures > len(_RESTART_DELAYS):
            self._give_up(child)
            return
        delay = 0.0 if failures == 0 else _RESTART_DELAYS[min(failures, len(_RESTART_DELAYS)) - 1]
        words, code = (
            "%s ended with code %s after %.1f s; starting it again in %.1f s; its log: %s",
            child.process.returncode,
        )
        logger.warning(words, child.program.name, code, ran, delay, child.program.log)
        if self._stop.wait(delay):
            return
        try:
            self._spawn(child.program).failures = failures
        except OSError as error:
            # Most likely out of memory or processes; the others go on, and this one is retried like one that ended.
            logger.warning("%s cannot be started: %s", child.program.name, error.strerror)
            child.failures, child.started_at = failures, time.monotonic()

    def _give_up(self, child: _Child) -> None:
        child.log.close()
        del self._children[child.program.name]
        self._write_register()
        words = "%s keeps ending and is not started again; everything else goes on without it; its log %s ends with: %s"
        logger.warning(words, child.program.name, child.program.log, _last_line(child.program.log))

    def _spawn(self, program: SupervisedProgram) -> _Child:
        log = LogFile(program.log)
        try:
            process = subprocess.Popen(
                program.arguments,
                env=dict(program.environment),
                stdin=subprocess.DEVNULL,
                stdout=log.input,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        finally:
            log.start()
        child = _Child(program, process, log, time.monotonic())
        self._children[program.name] = child
        self._write_register()
        return child

    def _write_register(self) -> None:
        """Write the register, which is needed only after this process was killed; on a full disk the older one stays."""
        entries = []
        for name, child in self._children.items():
            with contextlib.suppress(psutil.NoSuchProcess):
                pid = child.process.pid
                entries.append(_Entry(name, pid, psutil.Process(pid).create_time()))
        unfinished = self._register.with_name(f"{self._register.name}.unfinished")
        try:
            self._register.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(msgspec.json.encode(entries))
            unfinished.replace(self._register)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            logger.warning("%s cannot be written: %s", self._register, error.strerror)


def end_leftovers(register: Path, *, stop_seconds: float = 10.0) -> list[str]:
    """End the programs that a killed supervisor left behind, but no process that merely got the same id. Return their names."""
    try:
        entries = msgspec.json.decode(register.read_bytes(), type=prepared(list[_Entry]))
    except (FileNotFoundError, msgspec.DecodeError):
        return []
    ended = []
    for entry in reversed(entries):
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(entry.pid)
            # The kernel's creation time is relative to a boot time in whole seconds, which moves with the clock.
            if abs(process.create_time() - entry.created) <= _CLOCK_SECONDS:
                ended.append(entry.name)
                process.terminate()
                with contextlib.suppress(psutil.TimeoutExpired):
                    process.wait(stop_seconds)
                process.kill()
    register.unlink(missing_ok=True)
    return ended


def _die_with_parent() -> None:
    """Ask the kernel to end the child when the supervisor dies; runs in the child between fork and exec."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _last_line(log: Path) -> str:
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("CommandError: ") if lines else f"it printed nothing; see {log}."
