"""Simulated interruptions: an API server that does not answer or closes all streams, to try how clients cope."""

import asyncio
from dataclasses import dataclass

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Line:
    """The state that a stream obeys: it sends nothing unless `is_open` is set, and ends when `cut` is set."""

    is_open: asyncio.Event
    cut: asyncio.Event


class Interruptions:
    """The switch for interruptions: each stream takes a `line`, each answer awaits `passing`."""

    def __init__(self) -> None:
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._cut = asyncio.Event()
        self._reopening: asyncio.TimerHandle | None = None

    def line(self) -> Line:
        return Line(self._is_open, self._cut)

    async def passing(self) -> None:
        """Return when the server may speak."""
        await self._is_open.wait()

    def pause(self, seconds: float) -> None:
        """Answer nothing for so many seconds, with connections kept open, like a server that is stuck."""
        self._is_open.clear()
        if self._reopening is not None:
            self._reopening.cancel()
        self._reopening = asyncio.get_running_loop().call_later(seconds, self._is_open.set)

    def cut_all(self) -> None:
        """End all streams; new ones are accepted."""
        self._cut.set()
        self._cut = asyncio.Event()

    def end(self) -> None:
        """End all streams, and at once every one that is opened later."""
        self._is_open.set()
        self._cut.set()


def end_connections(runner: web.AppRunner) -> None:
    """Close all connections at once, even in the middle of an answer."""
    for connection in runner.server.connections if runner.server is not None else ():
        connection.force_close()
        if connection.transport is not None:
            connection.transport.close()
