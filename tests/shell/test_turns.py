"""How pages share the loop's time: at once after a quiet moment, by turns under load, whoever waits longest first."""

import asyncio

from dashboard.shell.pages.turns import Turns
from tests.support.virtual import cancelled, loop_time, passes, virtual_time


class Cpu:
    """A thread's clock that stands still but for the work that is told to it, which takes as much of the loop's time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def take_turn(turns: Turns, cpu: Cpu, seconds: float, *, due: float | None = None) -> float:
    """Wait for a turn and work; the time at which the turn came."""
    await turns.take(loop_time() if due is None else due)
    at = loop_time()
    with turns.counted():
        cpu.seconds += seconds
    return at


@virtual_time
async def test_after_a_quiet_time_pages_look_at_once() -> None:
    cpu = Cpu()
    turns = Turns(cpu=cpu)
    await passes(10)
    began = loop_time()
    for _ in range(5):
        assert await take_turn(turns, cpu, 0.01) == began


@virtual_time
async def test_pages_use_at_most_their_share_of_time() -> None:
    cpu = Cpu()
    turns = Turns(share=0.5, cpu=cpu)
    await passes(10)
    began = loop_time()
    while loop_time() < began + 20:
        await take_turn(turns, cpu, 0.02)
    assert abs(cpu.seconds - 10) < 0.2


@virtual_time
async def test_longest_due_page_comes_first() -> None:
    cpu, order = Cpu(), list[str]()
    turns = Turns(cpu=cpu)
    await take_turn(turns, cpu, 1.0)  # so the others have to wait

    async def page(name: str, due: float) -> None:
        await take_turn(turns, cpu, 0.0, due=due)
        order.append(name)

    await asyncio.gather(page("second", 2), page("third", 3), page("first", 1))
    assert order == ["first", "second", "third"]


@virtual_time
async def test_page_left_while_waiting_takes_no_turn() -> None:
    cpu = Cpu()
    turns = Turns(cpu=cpu)
    await take_turn(turns, cpu, 0.3)
    left = asyncio.create_task(take_turn(turns, cpu, 5.0, due=-1))
    stays: asyncio.Task[float] = asyncio.create_task(take_turn(turns, cpu, 0.0))
    await passes(0.01)
    await cancelled(left)
    async with asyncio.timeout(2):
        assert await stays < 1, "after the first one's work, and not after that of the one that left"
