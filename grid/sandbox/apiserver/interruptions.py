"""An API server that is silent or cuts everybody off, because somebody wants to see what happens then."""

import asyncio
from dataclasses import dataclass

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Line:
    """What a stream minds: it says nothing unless `is_open` is set, and ends when `cut` is."""

    is_open: asyncio.Event
    cut: asyncio.Event


class Interruptions:
    """`line` for each stream, `passing` before each answer."""

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
        """For so long nothing is answered, and connections stay open: as a server that is stuck."""
        self._is_open.clear()
        if self._reopening is not None:
            self._reopening.cancel()
        self._reopening = asyncio.get_running_loop().call_later(seconds, self._is_open.set)

    def cut_all(self) -> None:
        """All streams end; new ones may come."""
        self._cut.set()
        self._cut = asyncio.Event()

    def end(self) -> None:
        """All streams end, and those that may come too."""
        self._is_open.set()
        self._cut.set()


def end_connections(runner: web.AppRunner) -> None:
    """At once, whatever is being answered on them."""
    for connection in runner.server.connections if runner.server is not None else ():
        connection.force_close()
        if connection.transport is not None:
            connection.transport.close()
