"""Reads people's long texts in processes of their own, which are ended when they take too long.

Parsing, searching and redacting hold Python's lock, so in a web process a long text would keep everybody waiting, also in a thread.
`TextWorkers.run` gives such work to one of a few worker processes. They import only what their work needs (some 30 MB each), are started on
demand, and end after five idle minutes or with the web process. A text of at most INLINE_BYTES is read where it is.

One person's texts are read one after the other. So a person holds one worker at most, and others are served beside him. Where no workers
are open (commands, tests), work runs in a thread.
"""

import asyncio
import logging
import os
import resource
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar, TypeVarTuple

from anyio import BrokenWorkerProcess, CapacityLimiter, to_process

from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.observability.logcontext import subjects

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
logger = logging.getLogger(__name__)

INLINE_BYTES = 2 * 1024  # the slowest work, the colours of log lines, takes 0.4 to 1.4 ms for a KiB
MEMORY_BYTES = 768 * 2**20  # of a worker's address space


class TextWorkFailed(GridError):
    """A text could not be read; the message is a sentence for the person."""


class TextTooLong(TextWorkFailed):
    """Reading the text took more time or memory than a worker may have."""

    def __init__(self) -> None:
        super().__init__(_("This text takes too long to read here."))


class TextWorkBusy(TextWorkFailed):
    """Too many texts wait to be read."""

    def __init__(self) -> None:
        super().__init__(_("Many long texts are being read now. Try again in a moment."))


@dataclass(eq=False)
class TextWorkers:
    """At most `number` worker processes, once they are open."""

    number: int = 2
    seconds: float = 5.0  # of a processor that a worker may take for one text
    slow_seconds: float = 20.0  # that it may take in all, on a machine that has more to do
    wait_seconds: float = 10.0  # until a worker is free
    most_texts: int = 64  # that wait or are being read
    most_of_a_person: int = 16
    _free: asyncio.Semaphore | None = field(default=None, init=False)  # set while the workers are open
    _texts: Counter[str] = field(default_factory=Counter, init=False)  # by person, those that are being read included
    _turns: dict[str, asyncio.Lock] = field(default_factory=dict, init=False)

    def open(self) -> None:
        """Have texts read by processes from now on, which end with this event loop."""
        self._free = asyncio.Semaphore(self.number)

    def close(self) -> None:
        self._free = None

    async def run(self, work: Callable[[*Ts], T], *args: *Ts, size: int | None = None) -> T:
        """Return what `work` makes of the arguments, in which there are `size` bytes of text; None for what is not counted. Work, arguments
        and result are pickled. Raise TextTooLong, TextWorkBusy, and what the work raises."""
        if size is not None and size <= INLINE_BYTES:
            return work(*args)
        if self._free is None:
            return await asyncio.to_thread(work, *args)
        # Whoever gives up waiting gives up his turn only when the work has ended: else he could begin more and more of it.
        task = asyncio.create_task(self._run(self._free, work, args, size))
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return await asyncio.shield(task)

    async def _run(self, free: asyncio.Semaphore, work: Callable[[*Ts], T], args: tuple[*Ts], size: int | None) -> T:
        async with self._turn(free, subjects().get("user", "")):
            limiter = CapacityLimiter(self.number)  # Anyio's own allows as many as there are processors
            try:
                return await to_process.run_sync(_bounded, self.seconds, self.slow_seconds, work, args, limiter=limiter)
            except BrokenWorkerProcess as error:
                name = getattr(work, "__qualname__", type(work).__name__)
                logger.warning("text not read work=%s bytes=%s", name, size)
                raise TextTooLong from error
            except OSError as error:  # no process could be started
                logger.warning("no process for texts reason=%s", error)
                raise TextWorkBusy from error

    @asynccontextmanager
    async def _turn(self, free: asyncio.Semaphore, person: str) -> AsyncIterator[None]:
        """Hold a worker, after the person's own earlier texts. Raise TextWorkBusy when too many wait, or for too long."""
        if self._texts[person] >= self.most_of_a_person or self._texts.total() >= self.most_texts:
            raise TextWorkBusy
        self._texts[person] += 1
        try:
            async with AsyncExitStack() as held:
                try:
                    async with asyncio.timeout(self.wait_seconds):
                        await held.enter_async_context(self._turns.setdefault(person, asyncio.Lock()))
                        await held.enter_async_context(free)
                except TimeoutError as error:
                    raise TextWorkBusy from error
                yield
        finally:
            self._texts[person] -= 1
            if not self._texts[person]:
                del self._texts[person]
                self._turns.pop(person, None)


def _bounded(seconds: float, slow_seconds: float, work: Callable[[*Ts], T], args: tuple[*Ts]) -> T:
    """Run the work in a worker; end its process when it takes too much time or memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    # The kernel ends the process then, whatever it is doing, and also when nobody is left who waits for it.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, slow_seconds)
    try:
        return work(*args)
    except MemoryError:
        os._exit(1)
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)


workers = TextWorkers()
