"""Slices of work on the loop: those that take turns do not add up in one of its rounds."""

import asyncio
from collections import Counter

import pytest

from dashboard.shell.pages import slices
from dashboard.shell.pages.slices import SharedBreath

WORKERS, SLICES_EACH = 20, 5


async def test_one_slice_of_work_that_takes_turns_runs_in_each_round_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices, "SLICE_SECONDS", -1.0)  # every look at the time finds that the slice is over
    lock, round_number, taken, done = asyncio.Lock(), 0, Counter[int](), list[int]()

    async def work(number: int) -> None:
        async with SharedBreath(lock) as breath:
            for _ in range(SLICES_EACH):
                taken[round_number] += 1
                await breath.take()
        done.append(number)

    workers = [asyncio.create_task(work(number)) for number in range(WORKERS)]
    while len(done) < WORKERS:
        await asyncio.sleep(0)
        round_number += 1
    await asyncio.gather(*workers)
    assert sum(taken.values()) == WORKERS * SLICES_EACH
    assert set(taken.values()) == {1}
    assert done == list(range(WORKERS)), "in turn"


async def test_work_that_rests_leaves_its_turn_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_SECONDS", -1.0)
    lock, order = asyncio.Lock(), list[str]()

    async def work(name: str, rest: float) -> None:
        async with SharedBreath(lock, lambda: rest) as breath:
            for _ in range(3):
                order.append(name)
                await breath.take()

    await asyncio.gather(work("resting", 0.05), work("hurried", 0.0))
    assert order == ["resting", "hurried", "hurried", "hurried", "resting", "resting"]
