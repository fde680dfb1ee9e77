"""Logs: what the shim writes, what a reader gets, over HTTPS as the API server asks for it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given, strategies as st

from grid.sandbox.kubelet.certificate import serving_context
from grid.sandbox.kubelet.logfiles import LogOptions, last_lines, read_log
from grid.sandbox.kubelet.server import NodeServer
from grid.sandbox.kubelet.shim import Log
from tests.sandbox.kubelet.support import World, pod
from tests.support.waiting import eventually

_ADDRESS = "127.47.255.254"


async def collect(directory: Path, options: LogOptions | None = None) -> bytes:
    return b"".join([piece async for piece in read_log(directory, options or LogOptions(), lambda: True)])


def total_size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def written(directory: Path, *chunks: bytes, limit: int = 10**6, files: int = 3) -> Path:
    log = Log(str(directory), limit, files)
    for chunk in chunks:
        log.take("stdout", chunk)
    log.close()
    return directory


@given(text=st.binary(max_size=400).filter(lambda data: b"\n" not in data[-1:]), cut=st.integers(0, 400))
async def test_printed_text_returns_however_it_was_split(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, cut: int
) -> None:
    directory = written(tmp_path_factory.mktemp("log"), text[:cut], text[cut:])
    assert await collect(directory) == (text + b"\n" if text else b"")


async def test_an_overlong_line_is_put_together_again(tmp_path: Path) -> None:
    text = b"x" * 50_000 + b"\nshort\n"
    assert await collect(written(tmp_path, text)) == text


@given(lines=st.integers(0, 30), wanted=st.integers(0, 35))
async def test_log_tail_spans_rotated_files(tmp_path_factory: pytest.TempPathFactory, lines: int, wanted: int) -> None:
    texts = [f"line {number}\n".encode() for number in range(lines)]
    directory = written(tmp_path_factory.mktemp("log"), *texts, limit=400, files=100)
    expected = texts[len(texts) - wanted :] if wanted < len(texts) else texts
    assert await collect(directory, LogOptions(tail_lines=wanted)) == b"".join(expected if wanted else [])
    assert last_lines(directory, wanted) == [text.decode().rstrip() for text in (expected if wanted else [])]


async def test_a_log_keeps_its_size_and_its_newest_lines(tmp_path: Path) -> None:
    texts = [f"line {number:04}\n".encode() for number in range(1000)]
    written(tmp_path, *texts, limit=1000, files=3)
    assert total_size(tmp_path) <= 3000
    kept = await collect(tmp_path)
    assert kept.endswith(b"line 0999\n")
    assert kept.splitlines() == [text.strip() for text in texts][-len(kept.splitlines()) :]


async def test_following_reader_sees_everything_across_rotations(tmp_path: Path) -> None:
    log = Log(str(tmp_path), 500, 50)
    over = False
    got = bytearray()

    async def follow() -> None:
        async for piece in read_log(tmp_path, LogOptions(follow=True), lambda: over):
            got.extend(piece)

    reading = asyncio.create_task(follow())
    texts = [f"line {number}\n".encode() for number in range(100)]
    for number, text in enumerate(texts):
        log.take("stdout", text)
        if number % 20 == 0:
            await asyncio.sleep(0.05)
    log.close()
    over = True
    await asyncio.wait_for(reading, 10)
    assert bytes(got) == b"".join(texts)


async def test_times_limits_and_a_beginning_can_be_asked_for(tmp_path: Path) -> None:
    written(tmp_path, b"one\ntwo\n")
    stamped = (await collect(tmp_path, LogOptions(timestamps=True))).splitlines()
    assert [line.split(b" ", 1)[1] for line in stamped] == [b"one", b"two"]
    moment = datetime.fromisoformat(stamped[0].split()[0].decode())
    assert abs(moment - datetime.now(UTC)) < timedelta(minutes=1)
    assert await collect(tmp_path, LogOptions(limit_bytes=5)) == b"one\nt"
    assert await collect(tmp_path, LogOptions(since=datetime.now(UTC) + timedelta(hours=1))) == b""
    assert await collect(tmp_path, LogOptions(since=datetime.now(UTC) - timedelta(hours=1))) == b"one\ntwo\n"


@dataclass
class Site:
    world: World
    url: str
    session: aiohttp.ClientSession

    async def get(self, path: str, token: str = "the-token") -> tuple[int, str]:
        async with self.session.get(self.url + path, headers={"Authorization": f"Bearer {token}"}, ssl=False) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def site(world: World) -> AsyncIterator[Site]:
    server = NodeServer(serving_context(world.directory), world.clock, token="the-token")
    await server.start()
    port = await server.add(_ADDRESS, world.kubelet)
    async with aiohttp.ClientSession() as session:
        yield Site(world, f"https://{_ADDRESS}:{port}", session)
    await server.remove(_ADDRESS)
    await server.stop()


async def test_log_of_current_and_previous_container_is_served(site: Site) -> None:
    world = site.world
    script = "if test -e /v/again; then echo second; sleep 60; else touch /v/again; echo first; exit 1; fi"
    await world.run(pod("web", script, mounts={"/v": {"emptyDir": {}}}, restartPolicy="Always"))
    await eventually(lambda: world.log("web") == "second")
    await world.ready("web")
    assert await site.get("/containerLogs/default/web/run") == (200, "second\n")
    assert await site.get("/containerLogs/default/web/run?previous=true") == (200, "first\n")


async def test_following_ends_when_the_container_does(site: Site) -> None:
    world = site.world
    await world.run(pod("job", "echo one; while ! test -e go; do sleep 0.05; done; echo two"))
    await world.ready("job")
    following = asyncio.create_task(site.get("/containerLogs/default/job/run?follow=true"))
    await asyncio.sleep(0.2)  # by then it follows; if it does not, it gets the same
    (world.attempt("job").directory / "root" / "go").touch()
    assert await following == (200, "one\ntwo\n")


async def test_a_log_that_is_not_there_is_explained(site: Site) -> None:
    await site.world.run(pod("typo", "echo hi", container={"image": "nope:1"}))
    await site.world.reason("typo", "ImagePullBackOff")
    waiting = 'container "run" in pod "typo" is waiting to start: ImagePullBackOff'
    assert await site.get("/containerLogs/default/typo/run") == (400, waiting)
    previous = 'previous terminated container "run" in pod "typo" not found'
    assert await site.get("/containerLogs/default/typo/run?previous=true") == (400, previous)
    assert (await site.get("/containerLogs/default/typo/other"))[0] == 404
    assert (await site.get("/containerLogs/default/absent/run"))[0] == 404
    assert (await site.get("/containerLogs/default/typo/run?tailLines=x"))[0] == 400


async def test_nobody_without_the_token_is_answered(site: Site) -> None:
    for path in ("/containerLogs/default/x/run", "/stats/summary", "/metrics/resource", "/metrics/cadvisor"):
        for token in ("a-guess", ""):
            assert (await site.get(path, token=token))[0] == 401, path


def test_certificate_is_made_once_and_remade_when_damaged(tmp_path: Path) -> None:
    assert isinstance(serving_context(tmp_path), ssl.SSLContext)
    first = (tmp_path / "kubelet.crt").read_bytes()
    serving_context(tmp_path)
    assert (tmp_path / "kubelet.crt").read_bytes() == first
    assert (tmp_path / "kubelet.key").stat().st_mode & 0o077 == 0
    (tmp_path / "kubelet.crt").write_text("rubbish")
    serving_context(tmp_path)
    assert (tmp_path / "kubelet.crt").read_bytes() != first
