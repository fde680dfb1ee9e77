"""Containers that only walk through their states."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from grid.sandbox.kubelet.runtime import Attempt, PodIdentity, ResolvedContainer
from grid.sandbox.kubelet.simulated_runtime import VARIABLE, Play, SimulatedRuntime
from tests.sandbox.kubelet.support import JumpClock

POD = PodIdentity("uid-1", "default", "pod-1")


def spec(number: int = 0, env: Mapping[str, str] | None = None) -> ResolvedContainer:
    return ResolvedContainer(
        pod=POD, container="run", number=number, image="any:1", image_id="any", argv=("x",), env=env or {}, cwd="/"
    )


class StandingClock(JumpClock):
    """Goes on by jumps only."""

    def monotonic(self) -> float:
        return self._offset

    async def _until(self, end: float) -> None:
        while self.monotonic() < end:
            await self._jumped.wait()


@pytest.fixture
def clock() -> JumpClock:
    return StandingClock()


@pytest.fixture
def runtime(tmp_path: Path, clock: JumpClock) -> SimulatedRuntime:
    return SimulatedRuntime(tmp_path, clock)


async def ended_after(runtime: SimulatedRuntime, clock: JumpClock, attempt: Attempt, seconds: float) -> Attempt:
    """Its end, which must not come before the time."""
    ending = asyncio.create_task(runtime.ended(attempt))
    await asyncio.sleep(0)
    clock.jump(seconds - 1)
    await asyncio.sleep(0.01)
    assert not ending.done()
    clock.jump(1.1)
    return await ending


async def test_a_container_runs_until_it_is_asked_to_end(runtime: SimulatedRuntime) -> None:
    attempt = await runtime.start(spec())
    assert attempt.running
    ending = asyncio.create_task(runtime.ended(attempt))
    await asyncio.sleep(0.01)
    assert not ending.done()
    runtime.terminate(attempt)
    exit = (await ending).exit
    assert exit is not None
    assert (exit.code, exit.by_shutdown) == (143, False)
    assert runtime.usage(attempt) is None


@pytest.mark.parametrize(
    ("play", "seconds", "end"),
    [("ends=30 code=3", 30, (3, "Error", None)), ("oom=20 ends=50", 20, (137, "OOMKilled", 9))],
)
async def test_simulated_container_ends_as_its_play_says(
    runtime: SimulatedRuntime, clock: JumpClock, play: str, seconds: float, end: tuple[int, str, int | None]
) -> None:
    exit = (await ended_after(runtime, clock, await runtime.start(spec(env={VARIABLE: play})), seconds)).exit
    assert exit is not None
    assert (exit.code, exit.reason, exit.signal or None) == end


async def test_simulated_container_uses_what_its_play_says(runtime: SimulatedRuntime, clock: JumpClock) -> None:
    attempt = await runtime.start(spec(env={VARIABLE: "cpu=900m memory=300Mi"}))
    clock.jump(10)
    usage = runtime.usage(attempt)
    assert usage is not None
    assert (usage.cpu_nanocores, usage.memory_bytes) == (900_000_000, 300 * 2**20)
    assert usage.cpu_nanoseconds == pytest.approx(9e9, rel=0.1)


@given(st.text() | st.from_regex(r"(ends|code|oom|cpu|memory)=\S*( \S+=\S*)*", fullmatch=True))
def test_any_play_can_be_read(text: str) -> None:
    play = Play.read(text)
    assert play.cpu_millicores >= 0 <= play.memory_bytes
    assert all(seconds is None or seconds >= 0 for seconds in (play.ends, play.oom))
