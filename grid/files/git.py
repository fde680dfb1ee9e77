"""Runs git on a bare repository. What is in it comes from people: none of it is run, followed or believed. No shell, hooks, configuration
of this machine or network; every call has a time limit, and every answer a size limit; few run at once."""

import os
import signal
import subprocess
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.files.executor import ISOLATED

SECONDS = 20.0
LONGEST_ANSWER = 16 * 2**20
_CHUNK = 64 * 2**10
_DOWNLOAD_SECONDS = 3600.0
_AT_ONCE = 8
_PATIENCE = 5.0  # seconds, for one of them to end
_answers, _downloads = threading.BoundedSemaphore(_AT_ONCE), threading.BoundedSemaphore(_AT_ONCE)
# Whatever the repository's own configuration says: these would run a program that it names.
_ALWAYS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.alternateRefsCommand=true"),
    *("-c", "log.showSignature=false", "-c", "gc.auto=0"),
    # Smaller files are read into memory whole, which this process's container pays for.
    *("-c", "core.bigFileThreshold=1m"),
)


class GitFailed(GridError):
    """Git did not do it: what was asked for is not there, it took too long, or the answer is too long."""


class AnswerTooLong(GitFailed):
    """There is more than anybody would read."""


class GitBusy(GitFailed):
    """As many as may run at once are running."""


class GitMissing(GridError):
    """The program git is not installed."""


def run(
    repository: Path,
    *arguments: str,
    limit: int = LONGEST_ANSWER,
    seconds: float = SECONDS,
    given: bytes | None = None,
    variables: Mapping[str, str] | None = None,
) -> bytes:
    """Return what git prints; it reads `given`, and has these variables besides its own. Raise GitFailed, or GitMissing."""
    read = _read(repository, arguments, limit=limit + 1, seconds=seconds, given=given, variables=variables)
    answer = b"".join(_in_turn(_answers, read))
    if len(answer) > limit:
        raise AnswerTooLong(_("git {command} answered with more than {limit} bytes", command=arguments[0], limit=limit))
    return answer


def stream(repository: Path, *arguments: str) -> Generator[bytes, None, None]:
    """Yield what git prints in chunks, however much. Raise GitFailed."""
    return _in_turn(_downloads, _read(repository, arguments, limit=None, seconds=_DOWNLOAD_SECONDS))


def head(repository: Path, *arguments: str, limit: int) -> bytes:
    """Return the first `limit` bytes of what git prints. Raise GitFailed."""
    return b"".join(_in_turn(_answers, _read(repository, arguments, limit=limit, seconds=SECONDS)))


def _in_turn(turns: threading.BoundedSemaphore, read: Iterator[bytes]) -> Generator[bytes, None, None]:
    if not turns.acquire(timeout=_PATIENCE):
        raise GitBusy(_("{calls} calls of git are running already", calls=_AT_ONCE))
    try:
        yield from read
    finally:
        turns.release()


def _read(
    repository: Path,
    arguments: tuple[str, ...],
    *,
    limit: int | None,
    seconds: float,
    given: bytes | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[bytes]:
    try:
        process = subprocess.Popen(
            ["git", *_ALWAYS, *arguments],
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **ISOLATED,
                "PATH": os.environ.get("PATH", os.defpath),
                # Named, so that git neither searches for a repository nor asks who owns it: pods write with another user's number.
                "GIT_DIR": str(repository),
                "HOME": "/nonexistent",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_OPTIONAL_LOCKS": "0",
                # No object that is missing is fetched from where the repository's configuration says.
                "GIT_ALLOW_PROTOCOL": "file" if arguments[0] == "fetch" else "none",
                **(variables or {}),
            },
            cwd="/",
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise GitMissing(_("git is not installed where the dashboard runs")) from error
    assert process.stdout is not None
    timer = threading.Timer(seconds, _kill, [process])
    timer.start()
    left = limit
    try:
        if given is not None and process.stdin is not None:  # all before it answers, which is a line or less then
            with suppress(BrokenPipeError):  # it ended without reading all; its exit code says why
                process.stdin.write(given)
            with suppress(BrokenPipeError):
                process.stdin.close()
        while left is None or left > 0:
            chunk = process.stdout.read(_CHUNK if left is None else min(_CHUNK, left))
            if not chunk:
                break
            left = None if left is None else left - len(chunk)
            yield chunk
        if left == 0:  # enough was read
            _kill(process)
        elif process.wait() != 0:
            raise GitFailed(_("git {command} ended with code {code}", command=arguments[0], code=process.returncode))
    finally:
        timer.cancel()
        _kill(process)
        process.stdout.close()
        process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
