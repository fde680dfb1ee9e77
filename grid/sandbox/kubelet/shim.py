"""The supervisor of one container's process, which outlives the kubelet that started it.

Run as `python -I -S shim.py DIRECTORY` with a `spec.json` in it; needs nothing but the standard library, on Linux. It detaches
from its caller (two forks, a session of its own), becomes the subreaper of its descendants, and starts the command in a session of
its own. It writes the command's output to `log/0.log` in the format of the Container Runtime Interface. When the command has ended,
it kills the rest of its tree, as the end of a PID namespace would. `started.json` appears once the command runs, `exit.json`
when all processes have ended; both are written atomically.

SIGTERM asks the command's process group to end; SIGUSR1 ends the whole tree at once. Every process that it signals is
its own descendant, checked through a pidfd, so a process that reuses a number is never hit.
"""
# One of these runs per container, so it starts fast and stays small: no pathlib.
# ruff: noqa: PTH105, PTH110, PTH118, PTH123, PTH208

import contextlib
import ctypes
import errno
import json
import os
import selectors
import signal
import subprocess
import sys
import time

_SUBREAPER, _DEATH_SIGNAL = 36, 1  # prctl's PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG
_LONGEST_LINE = 16 * 1024
_CHUNK = 64 * 1024
_ROOM_SECONDS = 1.0
_DRAIN_SECONDS = 1.0
_KILL_SECONDS = 10.0
_LAST_READS = 100
_START_ERROR = 128


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def read_stat(pid: int) -> tuple[int, int] | None:
    """Return a process's parent and its start in clock ticks since boot, or None when the process does not exist."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[19])


def descendants(root: int) -> dict[int, int]:
    """Return the start ticks of all processes below `root`, by number."""
    starts: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        stat = read_stat(int(entry)) if entry.isdigit() else None
        if stat is not None:
            children.setdefault(stat[0], []).append(int(entry))
            starts[int(entry)] = stat[1]
    descendant_starts: dict[int, int] = {}
    waiting = [root]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            descendant_starts[child] = starts[child]
            waiting.append(child)
    return descendant_starts


def write_whole(path: str, content: object) -> None:
    """Write a file under another name and rename it, so that a reader sees all of it or no file."""
    unfinished = f"{path}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def stamp(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"


class Log:
    """The container's output: `0.log`, and `1.log` and so on for output before earlier rotations."""

    def __init__(self, directory: str, limit: int, files: int) -> None:
        self._directory = directory
        self._limit = limit
        self._files = files
        self._rests = {"stdout": b"", "stderr": b""}
        self._open()

    def _open(self) -> None:
        self._file = os.open(self._path(0), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size

    def _path(self, number: int) -> str:
        return os.path.join(self._directory, f"{number}.log")

    def take(self, stream: str, data: bytes) -> None:
        """Write whole lines and keep the rest until its end arrives; an overlong line is written in parts, marked P."""
        prefix = f"{stamp(time.time_ns())} {stream} ".encode()
        *lines, rest = (self._rests[stream] + data).split(b"\n")
        out = bytearray()
        for line in lines:
            while len(line) > _LONGEST_LINE:
                out += prefix + b"P " + line[:_LONGEST_LINE] + b"\n"
                line = line[_LONGEST_LINE:]
            out += prefix + b"F " + line + b"\n"
        while len(rest) > _LONGEST_LINE:
            out += prefix + b"P " + rest[:_LONGEST_LINE] + b"\n"
            rest = rest[_LONGEST_LINE:]
        self._rests[stream] = rest
        self._write(bytes(out))

    def close(self) -> None:
        for stream, rest in self._rests.items():
            if rest:
                self._rests[stream] = b""
                self._write(f"{stamp(time.time_ns())} {stream} F ".encode() + rest + b"\n")
        os.close(self._file)

    def _write(self, data: bytes) -> None:
        # A full disk loses output; it must not block or end the program that prints.
        with contextlib.suppress(OSError):
            if self._size and self._size + len(data) > self._limit:
                self._rotate()
            written = os.write(self._file, data)
            if written < len(data):  # drop a partial line, to which the next line would be joined
                written = data.rfind(b"\n", 0, written) + 1
                os.ftruncate(self._file, self._size + written)
            self._size += written

    def _rotate(self) -> None:
        os.close(self._file)
        for number in range(self._files - 1, 0, -1):
            if os.path.exists(self._path(number - 1)):
                os.replace(self._path(number - 1), self._path(number))
        self._open()


class Shim:
    def __init__(self, directory: str, spec: dict) -> None:  # type: ignore[type-arg]  # as read from the file
        self._directory = directory
        self._spec = spec
        self._command: subprocess.Popen[bytes] | None = None  # kept, because its collection would reap the process
        self._main = 0
        self._status: int | None = None
        self._log = Log(os.path.join(directory, "log"), spec["log_bytes"], spec["log_files"])
        self._selector = selectors.DefaultSelector()
        self._kill_until = 0.0

    def start(self) -> bool:
        """Start the command; return False, with `exit.json` written, when that fails."""
        wake_up, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._selector.register(wake_up, selectors.EVENT_READ, "signals")
        outputs = {name: os.pipe2(os.O_CLOEXEC) for name in ("stdout", "stderr")}
        try:
            self._command = subprocess.Popen(
                self._spec["argv"],
                env=self._spec["env"],
                cwd=self._spec["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=outputs["stdout"][1],
                stderr=outputs["stderr"][1],
                start_new_session=True,
                preexec_fn=self._prepare,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._finish(_START_ERROR, 0, "StartError", _explain(self._spec["argv"][0], error))
            return False
        self._main = self._command.pid
        for name, (read, write) in outputs.items():
            os.close(write)
            self._selector.register(read, selectors.EVENT_READ, name)
        stat, own = read_stat(self._main), read_stat(os.getpid())
        started = {
            "boot_id": boot_id(),
            "shim": [os.getpid(), own[1] if own else 0],
            "process": [self._main, stat[1] if stat else 0],
            "started_at": stamp(time.time_ns()),
        }
        write_whole(os.path.join(self._directory, "started.json"), started)
        return True

    def _prepare(self) -> None:
        """Prepare the new process: it ends with the shim, yields to the cluster, and is the first to be killed for lack of memory."""
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")
        # Where Linux groups processes by session, as on desktops, a nice value counts only within one, and this for all of the program's.
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as file:
            file.write(str(self._spec["nice"]))

    def run(self) -> None:
        """Run until the command and everything below it is gone and its output is read."""
        drained_at = float("inf")
        while True:
            self._reap()
            if self._status is not None and self._kill_until == 0.0:
                self._kill_until = time.monotonic() + _KILL_SECONDS
            if self._kill_until:
                alive = self._kill_all() and time.monotonic() < self._kill_until
                if self._status is not None and not alive:
                    drained_at = min(drained_at, time.monotonic() + _DRAIN_SECONDS)
            if len(self._selector.get_map()) == 1 and drained_at < float("inf"):
                break
            if time.monotonic() >= drained_at:
                break
            self._listen(0.02 if self._kill_until else 60.0)
        self._drain()
        code = os.waitstatus_to_exitcode(self._status or 0)
        self._finish(code if code >= 0 else _START_ERROR - code, max(0, -code), "", "")

    def _listen(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            data = os.read(key.fd, _CHUNK)
            if key.data == "signals":
                self._obey(data)
            elif data:
                self._log.take(key.data, data)
            else:
                self._selector.unregister(key.fd)
                os.close(key.fd)

    def _drain(self) -> None:
        """Read what is left in the pipes when the time is up: on a busy machine it may pass before the first read."""
        for _ in range(_LAST_READS):
            if all(key.data == "signals" for key, _ in self._selector.select(0)):
                return
            self._listen(0)

    def _obey(self, signals: bytes) -> None:
        if signal.SIGUSR1 in signals:
            self._kill_until = self._kill_until or time.monotonic() + _KILL_SECONDS
        elif signal.SIGTERM in signals and self._status is None:
            # The command is not reaped yet, so the number is still its own and the group's.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._main, signal.SIGTERM)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._main:
                self._status = status

    def _kill_all(self) -> bool:
        """Kill all descendants; return True when there were any."""
        below = descendants(os.getpid())
        for pid, start in below.items():
            with contextlib.suppress(OSError):
                handle = os.pidfd_open(pid)
                try:
                    stat = read_stat(pid)
                    if stat is not None and stat[1] == start:
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                finally:
                    os.close(handle)
        return bool(below)

    def _finish(self, code: int, number: int, reason: str, message: str) -> None:
        self._log.close()
        ending = {
            "exit_code": code,
            "signal": number,
            "reason": reason,
            "message": message,
            "finished_at": stamp(time.time_ns()),
        }
        # Only this process knows the exit, so it waits for room on a full disk; SIGUSR1 now ends the wait.
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        while True:
            try:
                write_whole(os.path.join(self._directory, "exit.json"), ending)
                return
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
            time.sleep(_ROOM_SECONDS)


def _explain(program: str, error: Exception) -> str:
    """Return the error in the words of a container runtime, which people search for."""
    if isinstance(error, FileNotFoundError) and error.filename == program:
        missing = "no such file or directory" if "/" in program else "executable file not found in $PATH"
        return f'exec: "{program}": {missing}'
    if isinstance(error, PermissionError):
        return f'exec: "{program}": permission denied'
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        return f"exec {program}: exec format error"
    return f'exec: "{program}": {error}'


def main(directory: str) -> None:
    """Fork and run the shim; the caller's process exits once the command runs (0) or could not be started (1)."""
    with open(os.path.join(directory, "spec.json"), encoding="utf-8") as file:
        spec = json.load(file)
    wait, report = os.pipe()
    if os.fork():
        os.close(report)
        os._exit(0 if os.read(wait, 1) else 1)
    os.close(wait)
    os.setsid()
    os.nice(spec["nice"])
    if os.fork():
        os._exit(0)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    shim = Shim(directory, spec)
    if not shim.start():
        return
    os.write(report, b"1")
    os.close(report)
    shim.run()


if __name__ == "__main__":
    main(sys.argv[1])
