"""What each framework's head is asked over HTTP, and what is said of a head that gives no useful answer."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import ClusterReport, FrameworkSilent, WorkerReport
from tests.clusters.cluster_specs import cluster, spec
from tests.clusters.frameworks.test_any_answer import FRAMEWORKS, GOOD, PODS
from tests.clusters.frameworks.test_any_answer import ask as read

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
    sentence = {"dask": dask, "ray": ray, "spark": spark}[name]
    with pytest.raises(FrameworkSilent, match=sentence):
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
