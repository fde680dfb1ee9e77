"""How long Dask's hook takes at most, with a stand-in for Dask's client; what it saves is seen with Dask itself (test_dask_for_real.py)."""

import asyncio
import importlib
import sys
import time
from collections.abc import AsyncIterator, Generator
from types import ModuleType
from typing import Any

import pytest

WORKER = "tcp://10.0.0.8:8788"
DRAIN_SECONDS, LAST_SECONDS = 1.5, 0.5
LATE = 8.0  # far from what is allowed, and from the ten seconds that Dask is given to connect


class Client:
    """Of a head at which the named steps never come to an end."""

    hangs: frozenset[str] = frozenset()

    def __init__(self, *_: object, **__: object) -> None: ...

    async def _step(self, name: str) -> None:
        if name in self.hangs:
            await asyncio.Event().wait()

    def __await__(self) -> Generator[Any, None, "Client"]:
        yield from self._step("connect").__await__()
        return self

    async def close(self) -> None:
        await self._step("close")

    async def nthreads(self) -> dict[str, int]:
        return {WORKER: 1}

    async def retire_workers(self, *_: object, remove: bool, **__: object) -> bool:
        await self._step("leave" if remove else "retire")
        return True

    async def run(self, *_: object, **__: object) -> dict[str, set[str]]:
        return {WORKER: set()}

    async def processing(self, *_: object) -> dict[str, list[str]]:
        return {WORKER: []}


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    distributed = ModuleType("distributed")
    vars(distributed)["Client"] = Client
    monkeypatch.setitem(sys.modules, "distributed", distributed)
    monkeypatch.delitem(sys.modules, "grid.clusters.frameworks.dask_drain", raising=False)
    program = importlib.import_module("grid.clusters.frameworks.dask_drain")
    monkeypatch.delitem(sys.modules, program.__name__)
    monkeypatch.setattr(program, "LAST_SECONDS", LAST_SECONDS)
    return program


@pytest.fixture
async def head() -> AsyncIterator[str]:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"tcp://{host}:{port}"


@pytest.mark.parametrize(
    ("hangs", "saved"),
    [
        ([], True),
        (["close"], True),
        (["retire"], False),
        (["retire", "leave", "close"], False),
    ],
    ids=lambda hangs: "+".join(hangs) or "nothing" if isinstance(hangs, list) else None,
)
async def test_drain_ends_in_time_and_says_the_outcome(
    program: Any, head: str, monkeypatch: pytest.MonkeyPatch, hangs: list[str], saved: bool
) -> None:
    monkeypatch.setattr(Client, "hangs", frozenset(hangs))
    assert await asyncio.wait_for(program.drain(head, WORKER, DRAIN_SECONDS), LATE) == saved


async def test_unreachable_head_is_given_up_in_time(program: Any, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "hangs", frozenset(["connect"]))
    started = time.monotonic()
    with pytest.raises(OSError):
        await asyncio.wait_for(program.drain(head, WORKER, DRAIN_SECONDS), 2 * LATE)
    assert time.monotonic() - started < LATE
