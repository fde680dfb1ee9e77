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
    loop = asyncio.get_running_loop()
    transport, program = await loop.subprocess_exec(
        lambda: _Program(longest),
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        env=dict(env),
        cwd=cwd,
        pass_fds=pass_fds,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout):
            await program.over.wait()
    finally:
        program.end(transport)
        await program.over.wait()
    return Finished(transport.get_returncode() or 0, bytes(program.output))


class _Program(asyncio.SubprocessProtocol):
    """Reads to the end, so that the program never waits for us, and keeps the beginning."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self.output = bytearray()
        self._exited = False
        self._unwanted: asyncio.SubprocessTransport | None = None
        self.over = asyncio.Event()  # it has ended, and all ends of its pipe are closed

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output += data[: self._longest - len(self.output)]

    def process_exited(self) -> None:
        self._exited = True
        if self._unwanted is not None:
            self._unwanted.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()

    def end(self, transport: asyncio.SubprocessTransport) -> None:
        """Happens to its end even if nobody awaits it."""
        self._unwanted = transport
        if self._exited:
            transport.close()
            return
        # Not waited for yet, so number and group are still our child's. The transport's own kill would spare the group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(transport.get_pid(), signal.SIGKILL)
