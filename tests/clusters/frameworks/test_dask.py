"""What Dask's clients find, what its answers mean, and how long its hook takes at most, with a stand-in for Dask's client.

What the hook saves is seen with Dask itself (test_dask_for_real.py).
"""

import ast
import asyncio
import importlib
import sys
import time
from collections.abc import AsyncIterator, Generator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from grid.clusters import frameworks
from grid.clusters.frameworks.base import ClusterReport, WorkerPod, WorkerReport
from grid.clusters.frameworks.dask import Dask
from grid.core.origins import BEGIN_PATH
from tests.clusters.cluster_specs import HEAD_TIER, cluster, spec, tier
from tests.clusters.frameworks.test_any_answer import Head

DASK = Dask()
SPEC = spec(of=cluster(drain_seconds=90), tier=HEAD_TIER)
PROGRAMS = Path(frameworks.__file__).parent
GIB = 2**30


def test_head_page_lies_below_cluster_path_on_shared_origin() -> None:
    head = DASK.head(msgspec.structs.replace(SPEC, address="https://ws.test/w/abc/"))
    assert head.command[-2:] == ("--dashboard-prefix", "/w/abc/")
    assert head.readiness["httpGet"] == {"path": "/w/abc/health", "port": 8787}


@pytest.mark.parametrize(
    ("cores_limit", "memory_limit", "threads", "memory"),
    [
        ("500m", "256Mi", "1", 128 * 2**20),
        ("1", "1Gi", "1", GIB - 128 * 2**20),
        ("1500m", "100Mi", "2", 50 * 2**20),
        ("4", "14Gi", "4", 14 * GIB - 128 * 2**20),
    ],
)
def test_worker_uses_all_cores_and_leaves_memory_to_nanny(
    cores_limit: str, memory_limit: str, threads: str, memory: int
) -> None:
    command = DASK.worker(spec(of=cluster(), tier=tier(cores_limit, memory_limit)), "10.0.0.9").command
    given = dict(pairwise(command))
    assert (given["--nthreads"], given["--memory-limit"]) == (threads, str(memory))


def test_a_client_without_an_address_finds_the_cluster() -> None:
    assert DASK.client_variables(SPEC, "10.0.0.9") == {
        "DASK_SCHEDULER_ADDRESS": "tcp://10.0.0.9:8786",
        "DASK_SCHEDULER_SERVICE_HOST": "10.0.0.9",
        "DASK_SCHEDULER_SERVICE_PORT": "8786",
        "DASK_DISTRIBUTED__DASHBOARD__LINK": f"https://abc.ws.test/{BEGIN_PATH}",
    }


@pytest.mark.parametrize("name", ["dask_head.py", "dask_drain.py"])
def test_container_programs_need_only_common_parts_of_dask_images(name: str) -> None:
    tree = ast.parse((PROGRAMS / name).read_text(), feature_version=(3, 11))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    allowed = {"asyncio", "dask", "distributed", "os", "sys", "types", "typing"}
    assert {name.partition(".")[0] for name in imported} <= allowed
    # Kubernetes would expand the one and the embedded cluster rewrite the other.
    assert "$(" not in (text := (PROGRAMS / name).read_text()) and "/mnt/" not in text


async def test_head_says_worker_holdings_and_wanted_workers() -> None:
    body = {
        "workers": {
            "w-1": {"tasks": 3, "bytes_held": 1200},
            "w-2": {"tasks": 0, "bytes_held": 0},
            "laptop": {"tasks": 9, "bytes_held": 9},
        },
        "pending_tasks": 40,
        "wanted_workers": 7,
        "more": True,
    }
    session: Any = Head({"/json/compute-grid.json": msgspec.json.encode(body)})
    report = await DASK.ask(session, "10.0.0.9", SPEC, [WorkerPod(name, "127.0.0.1") for name in ("w-1", "w-2", "w-3")])
    assert report == ClusterReport(
        {"w-1": WorkerReport(3, bytes_held=1200), "w-2": WorkerReport(0)}, pending_tasks=40, wanted_workers=7
    )


# --- How long its hook takes ---

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
    [([], True), (["close"], True), (["retire"], False), (["retire", "leave", "close"], False)],
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
