"""Running a program of the machine to its end, and never leaving anything of it behind.

asyncio's own Process is not enough: its pipe has no public way to be closed, so a grandchild that inherited the pipe keeps
`wait()` from returning, and a caller that is cancelled twice leaves a process that nobody waits for.
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
) -> Finished:
    """Its code and at most the first `longest` bytes of what it printed.

    Raises OSError or ValueError when it cannot be started, and TimeoutError. When it takes too long or the caller is cancelled,
    the program is killed with its group.
    """
    program = _Program(longest)
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
            # Never cancelled half-way: asyncio would then kill the program and spare what it has started.
            await asyncio.shield(starting)
            await program.over.wait()
    finally:
        program.end()
        await asyncio.wait([starting])
        if starting.exception() is None:
            await program.over.wait()
    return Finished(program.code, bytes(program.output))


class _Program(asyncio.SubprocessProtocol):
    """Reads to the end, so that the program never waits for us, and keeps the beginning. Comes to its end even if nobody awaits it."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self.output = bytearray()
        self.code = 0
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = False
        self._unwanted = False
        self.over = asyncio.Event()  # it has ended, and its pipe is closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        if self._unwanted:
            self.end()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output += data[: self._longest - len(self.output)]

    def process_exited(self) -> None:
        self._exited = True
        if self._transport is not None:
            self.code = self._transport.get_returncode() or 0
            if self._unwanted:
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()

    def end(self) -> None:
        """Closes what is left of it, and kills it with its group if it goes on."""
        self._unwanted = True
        if self._transport is None:
            return
        if self._exited:
            self._transport.close()
            return
        # Not waited for yet, so number and group are still our child's.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._transport.get_pid(), signal.SIGKILL)
