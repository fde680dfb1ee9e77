"""Running of a program to its end, which never leaves a process behind.

asyncio's own Process is not enough: its pipe has no public way to be closed, so a grandchild that inherited the pipe keeps
`wait()` from returning, and a caller that is cancelled twice leaves a process that is never waited for.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True, slots=True)
class Finished:
    code: int  # negative: the signal that ended it
    output: bytes


async def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    longest: int,
    timeout: float | None = None,
    cwd: str | None = None,
    stderr: int = asyncio.subprocess.STDOUT,
    pass_fds: Sequence[int] = (),
    output: bytearray | None = None,
) -> Finished:
    """Return the exit code and at most the first `longest` bytes of the output, which is also added to `output` as it comes.

    Raise OSError or ValueError when the program cannot be started, and TimeoutError. After a timeout or a
    cancellation the program is killed with its group.
    """
    program = _Program(longest, output)
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: program,
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=dict(env),
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    )
    try:
        async with asyncio.timeout(timeout):
            # Never cancelled half-way, because asyncio would then kill the program but not its children.
            await asyncio.shield(starting)
            await program.over.wait()
    finally:
        program.end()
        await asyncio.wait([starting])
        if starting.exception() is None:
            await program.over.wait()
    return Finished(program.code, bytes(program.output))


class _Program(asyncio.SubprocessProtocol):
    """A protocol that reads all output, so that the program never blocks, and keeps the beginning. It needs no caller to end."""

    def __init__(self, longest: int, copy: bytearray | None = None) -> None:
        self._longest = longest
        self._copy = copy
        self.output = bytearray()
        self.code = 0
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = False
        self._unwanted = False
        self.over = asyncio.Event()  # set when the program has ended and its pipe is closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        if self._unwanted:
            self.end()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        taken = data[: self._longest - len(self.output)]
        self.output += taken
        if self._copy is not None:
            self._copy += taken

    def process_exited(self) -> None:
        self._exited = True
        if self._transport is not None:
            self.code = self._transport.get_returncode() or 0
            if self._unwanted:
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()

    def end(self) -> None:
        """Close the pipe if the program has exited; otherwise kill it with its group."""
        self._unwanted = True
        if self._transport is None:
            return
        if self._exited:
            self._transport.close()
            return
        # The program is not reaped yet, so number and group are still its own.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._transport.get_pid(), signal.SIGKILL)
