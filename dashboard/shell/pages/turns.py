"""Shares the event loop's time among all live pages of a process, so that under load all of them get slower alike. Updates of pages, with
their rendering, may take `share` of the time. A page waits for its turn to update; the page that has been due for longest comes first. A
quiet time saves up some time in hand, so that a change is shown at once."""

import asyncio
import heapq
import time
from collections.abc import Callable
from itertools import count

SHARE = 0.5
IN_HAND_SECONDS = 0.1  # the most time that a quiet period saves up
DEBT_SECONDS = 0.5  # the most time that a long update is charged, because all pages wait for it

LEAST_SECONDS = 0.001  # the shortest wait: the clock may not notice a shorter one


class _Counted:
    """Tells `charge` the CPU time of a block. A class, because each update of a page has two, and a generator takes five calls more."""

    def __init__(self, cpu: Callable[[], float], charge: Callable[[float], None]) -> None:
        self._cpu, self._charge = cpu, charge

    def __enter__(self) -> None:
        self._began = self._cpu()

    def __exit__(self, *error: object) -> None:
        self._charge(self._cpu() - self._began)


class Turns:
    """The queue of pages that wait to update. `cpu` returns this thread's CPU time in seconds, so that waiting for a CPU does not count."""

    def __init__(self, *, share: float = SHARE, cpu: Callable[[], float] = time.thread_time) -> None:
        self._share = share
        self._cpu = cpu
        self._in_hand = IN_HAND_SECONDS
        self._saved_at = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = count()
        self._timer: asyncio.Handle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def take(self, due: float) -> None:
        """Wait for the turn of a page that has been due since `due` on the loop's clock."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the former one has ended, with its timer and whoever waited
            self._loop, self._timer, self._waiting = loop, None, []
        if self._timer is None and self._has_time():
            self._timer = loop.call_soon(self._give)  # so that of many pages that are due now only one is next
            return
        turn = loop.create_future()
        heapq.heappush(self._waiting, (due, next(self._number), turn))
        self._arrange()
        await turn

    def counted(self) -> "_Counted":
        """Count the CPU time of the block, which must not await, as work of the pages."""
        return _Counted(self._cpu, self._charge)

    def _charge(self, seconds: float) -> None:
        self._in_hand = max(-DEBT_SECONDS, self._in_hand - seconds)

    def _arrange(self, *, was_given: bool = False) -> None:
        """Schedule the next turn for when there is time: after the callbacks that are ready now, such as the previous page's work. Who
        comes before that work is done has to wait for it, so after a turn it is done although nobody waits."""
        if self._timer is None and (self._waiting or was_given):
            loop = asyncio.get_running_loop()
            if self._in_hand >= 0:
                self._timer = loop.call_soon(self._give)
            else:
                self._timer = loop.call_later(max(LEAST_SECONDS, -self._in_hand / self._share), self._give)

    def _has_time(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._in_hand = min(IN_HAND_SECONDS, self._in_hand + max(0.0, now - self._saved_at) * self._share)
        self._saved_at = now
        return self._in_hand >= 0

    def _give(self) -> None:
        self._timer = None
        was_given = False
        while self._waiting and not was_given and self._has_time():
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():  # its page may have been left meanwhile
                turn.set_result(None)
                was_given = True
        self._arrange(was_given=was_given)
