"""Whoever runs code in a cluster decides what its head answers: any answer is a report, or silence with a reason.

First with answers by hand, then with those of a server at the head's address.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import example, given, strategies as st
from yarl import URL

from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import ClusterReport, FrameworkSilent, WorkerPod, WorkerReport
from grid.clusters.frameworks.ray import PATHS
from tests.clusters.cluster_specs import cluster, spec

RECORDED = Path(__file__).with_name("recorded")
FRAMEWORKS = pytest.mark.parametrize("name", ["dask", "ray", "spark"])
# The addresses and names of the recorded workers, so that what is said of them is read.
PODS = [
    *(WorkerPod(f"w{end}", f"127.87.11.{end}") for end in (2, 3)),
    *(WorkerPod(f"worker-{end}", f"127.124.77.{end}") for end in (2, 3)),
]
HOLE = "@number@"
HUGE = "9" * 400
LARGE = ("1e308", "-1e308", HUGE, f"-{HUGE}", "9" * 5000, "1e400", "NaN", "Infinity", "-Infinity", str(2**63))
SMALL = ("5e-324", "1e-300", "-1", "0", "0.5", "3")
NUMBERS = st.sampled_from((*LARGE, *SMALL, '"5"', '"many"', "true", "null", "[]", "{}"))


def ray() -> Mapping[str, Any]:
    answers = json.loads((RECORDED / "ray-busy.json").read_text())
    return {path: answers[path.partition("?")[0]] for path in PATHS}


def spark() -> Mapping[str, Any]:
    folder = RECORDED / "spark-4.3.0"
    names = {"/json/": "master", "/executors": "executors", "/stages?status=active": "stages"}
    return {end: json.loads((folder / f"{name}.json").read_text()) for end, name in names.items()}


def dask() -> Mapping[str, Any]:
    workers = {"w2": {"tasks": 3, "bytes_held": 1200}, "w3": {"tasks": 0, "bytes_held": 0}}
    return {"compute-grid.json": {"workers": workers, "pending_tasks": 40, "wanted_workers": 7}}


GOOD: Mapping[str, Callable[[], Mapping[str, Any]]] = {"dask": dask, "ray": ray, "spark": spark}


def with_holes(value: Any) -> Any:
    """Where it has a number, a place for another one."""
    if isinstance(value, dict):
        return {key: with_holes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_holes(item) for item in value]
    return HOLE if isinstance(value, int | float) and not isinstance(value, bool) else value


def filled(answer: Any, numbers: Sequence[str]) -> bytes:
    first, *others = json.dumps(with_holes(answer)).split(f'"{HOLE}"')
    return "".join([first, *(n + text for n, text in zip(cycle(numbers), others, strict=False))]).encode()


class Said:
    """An answer with status 200, and the context manager that gives it."""

    def __init__(self, body: bytes) -> None:
        self.status = 200
        self.content = SimpleNamespace(iter_any=self._chunks)
        self._body = body

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def __aenter__(self) -> "Said":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Head:
    """In place of a session: whatever is asked, by the end of its address."""

    timeout = aiohttp.ClientTimeout(total=5)

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self._answers = answers

    def get(self, url: str | URL, **_: object) -> Said:
        return Said(next(body for end, body in self._answers.items() if str(url).endswith(end)))


async def read(name: str, answers: Mapping[str, bytes]) -> ClusterReport | None:
    """None for silence; what it raises else is what this is about."""
    session: Any = Head(answers)
    try:
        return await framework(name).ask(session, "10.0.0.9", spec(of=cluster(name)), PODS)
    except FrameworkSilent as error:
        assert str(error).endswith("."), "a sentence"
        return None


@FRAMEWORKS
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=12))
@example(numbers=["1e308"])
@example(numbers=[HUGE])
@example(numbers=["5e-324"])
async def test_any_numbers_are_read_or_refused_in_a_sentence(name: str, numbers: list[str]) -> None:
    report = await read(name, {end: filled(answer, numbers) for end, answer in GOOD[name]().items()})
    if report is not None:
        counts = [report.pending_tasks, report.wanted_workers]
        counts += [count for worker in report.workers.values() for count in (worker.tasks, worker.bytes_held)]
        assert all(isinstance(count, int) for count in counts)


@FRAMEWORKS
@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe",
        b'{"workers": {"\xff": {"tasks": 1}}, "pending_tasks": 1, "wanted_workers": 1}',
        b'{"workers": [{"host": "\xff"}]}',
        b'{"x": ' + b"[" * 100_000,
        b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"[" * 900 + b"]" * 900,
        b"9" * 5000,
        b"null",
    ],
    ids=["no text", "name no text", "host no text", "endless", "nested", "lists", "long", "null"],
)
async def test_unusable_answer_is_silence(name: str, body: bytes) -> None:
    assert await read(name, {"": body}) is None


# --- Over HTTP ---

HEAD_IP = f"127.{os.getpid() // 250 % 250 + 2}.{os.getpid() % 250 + 2}.1"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def head(name: str, answer: Answer) -> AsyncIterator[None]:
    """A head's pod that answers everything so."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, HEAD_IP, framework(name).ui_port).start()
        yield
    finally:
        await runner.cleanup()


async def ask(name: str, *, seconds: float = 60) -> ClusterReport:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as http, asyncio.timeout(60):
        return await framework(name).ask(http, HEAD_IP, spec(of=cluster(name)), PODS)


def well(name: str) -> Answer:
    answers = GOOD[name]()

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(next(body for end, body in answers.items() if request.path_qs.endswith(end)))

    return answer


def says(body: str, status: int = 200) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(text=body, status=status, content_type="application/json")

    return answer


async def hangs(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"[" * 2**20)


async def elsewhere(request: web.Request) -> web.StreamResponse:
    """Followed, this would be said to be a 404."""
    if request.path == "/elsewhere":
        return web.Response(status=404)
    return web.Response(status=302, headers={"Location": "/elsewhere"})


@FRAMEWORKS
async def test_head_is_asked_where_its_framework_answers(name: str) -> None:
    async with head(name, well(name)):
        report = await ask(name)
    assert report == await read(name, {end: json.dumps(body).encode() for end, body in GOOD[name]().items()})


@pytest.mark.parametrize(
    ("answer", "dask", "ray", "spark"),
    [
        (says("{}", 500), "cannot be asked: 500", "did not answer: 500", "status 500"),
        (says("{"), "something unexpected", "not JSON", "something else than expected"),
        (elsewhere, "something unexpected", "not JSON", "status 302"),
        (endless, "longer than 8 MiB", "longer than 32 MiB", "longer than 8 MiB"),
        (hangs, *["did not answer"] * 3),
        (None, "cannot be asked", "did not answer: Cannot connect", "cannot be reached"),
    ],
    ids=["broken", "not JSON", "elsewhere", "endless", "hangs", "not there"],
)
@FRAMEWORKS
async def test_head_without_a_useful_answer_is_silent(
    name: str, answer: Answer | None, dask: str, ray: str, spark: str
) -> None:
    with pytest.raises(FrameworkSilent, match={"dask": dask, "ray": ray, "spark": spark}[name]):
        if answer is None:
            await ask(name)
        else:
            async with head(name, answer):
                await ask(name, seconds=0.3 if answer is hangs else 60)


@pytest.mark.parametrize("useless", [hangs, says("", 502), says("{}")])
async def test_useless_driver_answer_leaves_the_knowledge_of_master(useless: Answer) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return await (useless if request.path.startswith("/proxy/") else well("spark"))(request)

    async with head("spark", answer):
        report = await ask("spark", seconds=4 if useless is hangs else 60)
    held = {"worker-2": WorkerReport(1), "worker-3": WorkerReport(1)}
    assert report == ClusterReport(held, pending_tasks=0, wanted_workers=2)
