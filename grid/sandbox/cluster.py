"""The embedded cluster as one asyncio process: API server, controllers and kubelets, each supervised.

A part that fails is logged and started again after a delay; the others go on, as they would on a real cluster. Two processes never
share a data directory: the lock is the operating system's, so it ends with the process that held it, however that ended.
"""

import asyncio
import fcntl
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.apiserver.files import write_private

log = logging.getLogger(__name__)

_RESTART_SECONDS = 2.0


class CannotStart(Exception):
    """The cluster cannot start; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    data: Path
    port: int
    kubeconfig: Path
    images: Path


class DataLock:
    """Holds a data directory for this process."""

    def __init__(self, data: Path) -> None:
        try:
            data.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = (data / "lock").open("w")
        except OSError as problem:
            raise CannotStart(
                f"The sandbox cannot write to {data} ({problem.strerror}); choose another directory with --data."
            ) from problem
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            self._file.close()
            raise CannotStart(
                f"Another sandbox is already running on {data}; stop it or choose another --data."
            ) from problem

    def release(self) -> None:
        self._file.close()


async def supervise(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Runs a part for ever: when it fails or ends, it is started again."""
    while True:
        try:
            await run()
            log.warning("%s ended; starting it again in %s s", name, _RESTART_SECONDS)
        except Exception:
            log.exception("%s failed; starting it again in %s s", name, _RESTART_SECONDS)
        await asyncio.sleep(_RESTART_SECONDS)


async def run_cluster(settings: ClusterSettings, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    """Runs until `stop` is set. `ready` is called with the server's URL once the kubeconfig is written."""
    lock = DataLock(settings.data)
    try:
        tokens = Tokens.load_or_make(settings.data / "tokens.json")
        server = ApiServer(settings.data, tokens)
        try:
            url = await _listen(server, settings.port)
            settings.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
            write_private(settings.kubeconfig, server.kubeconfig())
            ready(url)
            await stop.wait()
        finally:
            await server.stop()
    finally:
        lock.release()


async def _listen(server: ApiServer, port: int) -> str:
    try:
        return await server.start(port)
    except OSError as problem:
        raise CannotStart(
            f"The sandbox cannot listen on port {port} ({problem.strerror}); choose another with --port, or 0 for any."
        ) from problem
