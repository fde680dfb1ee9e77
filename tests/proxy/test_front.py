"""A real nginx in front of a program: whom it answers, what it lets through, and what it says in the program's place."""

import asyncio
import io
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from dashboard.proxy.gate import Target
from grid.executions.front import (
    ADDRESS,
    PROBE_HEADER,
    PROGRAM_HOST,
    PROGRAM_SOCKET,
    STATUS_PATH,
    TOKEN_HEADER,
    USE_PATH,
    AuthProxySpec,
    IngressSpec,
    configuration,
    key_file,
    probe_key,
    token,
)
from grid.sandbox.needs import SYSTEM_PATH
from grid.workspaces.shutdown.observer import front_use
from tests.proxy.support import COOKIE, ORIGIN, OpenToOneSecret, UserServer, visiting
from tests.support.ports import free_ports

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}")
KEY = "key-of-abc"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: nginx-light)"),
]


async def nginx(folder: Path, text: str, port: int) -> "subprocess.Popen[bytes]":
    """Start nginx with that configuration, and return once it listens."""
    (folder / "nginx.conf").write_text(text)
    assert NGINX is not None
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: ASYNC220  it outlives the call
    while True:  # the test's own timeout ends it
        assert process.poll() is None, (folder / "log").read_text()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return process


@dataclass
class Front:
    """nginx as its container runs it; `log` is what it writes."""

    port: int
    program: Target
    folder: Path
    process: "subprocess.Popen[bytes] | None" = None
    ingress: IngressSpec | None = None
    upstream: Sequence[str] = ()  # as for a program that knows only ports, if not given
    is_any_answer_ready: bool = True
    loopback: str = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def target(self) -> Target:
        return Target("127.0.0.1", self.program.port, self.port)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def spec(self) -> AuthProxySpec:
        return AuthProxySpec(
            image="",
            port=self.port,
            cores="",
            memory="",
            body_mebibytes=1,
            page="http://grid.test/executions/abc/",
            ingress=self.ingress,
        )

    async def start(self) -> None:
        port = self.program.port
        upstream = self.upstream or (f"{PROGRAM_HOST}:{port} max_fails=0", f"{ADDRESS}:{port} max_fails=0 backup")
        text = configuration(self.spec, upstream=upstream, is_any_answer_ready=self.is_any_answer_ready)
        places = {ADDRESS: "127.0.0.1", PROGRAM_HOST: self.loopback, PROGRAM_SOCKET: str(self.folder / "web.sock")}
        for name, place in places.items():
            text = text.replace(name, place)
        (self.folder / "key.conf").write_text(key_file("abc", KEY))
        self.process = await nginx(self.folder, text, self.port)

    async def __aenter__(self) -> "Front":
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)


@pytest.fixture
async def front(pod: tuple[UserServer, Target], tmp_path: Path) -> AsyncIterator[Front]:
    async with Front(free_ports(1), pod[1], tmp_path) as running:
        yield running


@pytest.fixture
async def through(front: Front) -> AsyncIterator[aiohttp.ClientSession]:
    """A browser of the proxy, which goes through the front."""
    async with visiting(OpenToOneSecret(address=front.target)) as session:
        yield session


def valid(seconds: int = 60) -> dict[str, str]:
    return {TOKEN_HEADER: token("abc", KEY, int(time.time()) + seconds)}


async def test_only_valid_token_passes_and_refusal_hides_program(front: Front) -> None:
    later = int(time.time()) + 60
    hash_now, _, _ = token("abc", KEY, later).partition(",")
    refused = {
        "missing": {},
        "empty": {TOKEN_HEADER: ""},
        "expired": valid(-1),
        "forged": {TOKEN_HEADER: token("abc", "other key", later)},
        "for another pod": {TOKEN_HEADER: token("abd", KEY, later)},
        "with a later end": {TOKEN_HEADER: f"{hash_now},{later + 3600}"},
        "without an end": {TOKEN_HEADER: hash_now},
        "no number": {TOKEN_HEADER: f"{hash_now},x"},
    }
    async with aiohttp.ClientSession(front.url) as session:
        for which, headers in refused.items():
            for path in ("/", "/ws", STATUS_PATH, USE_PATH, "/nothing"):
                for method in ("GET", "POST", "DELETE"):
                    async with session.request(method, path, headers=headers) as answer:
                        seen = answer.status, await answer.text(), answer.headers["Server"]
                        assert seen == (403, "Open this from the dashboard.", "nginx"), (which, method, path)
        async with session.get("/", headers=valid()) as answer:
            assert answer.status == 200
    assert KEY not in front.log


async def test_requests_arrive_unchanged_and_without_the_token(through: aiohttp.ClientSession) -> None:
    target = "/a%2Fb//c/~?x=%20y&x=1;2"
    headers = {**COOKIE, TOKEN_HEADER: "mine", "X-Grid-Run": "crashed", "X_odd": "kept"}
    async with through.put(target, data=b"abc", headers=headers) as answer:
        seen = await answer.json()
    assert (seen["method"], seen["target"], seen["length"]) == ("PUT", target, 3)
    assert seen["headers"]["host"] == "abc.workspaces.test:8001"
    assert seen["headers"]["authorization"] == "token token-of-abc"
    assert seen["headers"]["x_odd"] == "kept"
    assert not {name for name in seen["headers"] if name.startswith("x-grid")}


async def test_body_over_the_limit_is_refused_with_sentence(through: aiohttp.ClientSession) -> None:
    async with through.post("/", data=b"x" * 2**20, headers=COOKIE) as answer:
        assert (answer.status, (await answer.json())["length"]) == (200, 2**20)
    async with through.post("/", data=io.BytesIO(b"x" * (2**20 + 1)), headers=COOKIE) as answer:
        assert (answer.status, await answer.text()) == (
            413,
            "The upload is larger than 1 MiB, which is the limit here. An admin can raise it.",
        )


@pytest.mark.parametrize(("has_crashed", "title"), [(False, "Starting"), (True, "The program has crashed")])
async def test_page_says_when_the_program_does_not_listen(tmp_path: Path, has_crashed: bool, title: str) -> None:
    port = free_ports(2)
    gate = OpenToOneSecret(address=Target("127.0.0.1", port + 1, port, has_crashed))
    async with (
        Front(port, Target("127.0.0.1", port + 1), tmp_path) as front,
        visiting(gate) as session,
        session.get("/x?secret=1", headers=COOKIE) as answer,
    ):
        text = await answer.text()
    assert answer.status == 502
    assert answer.content_type == "text/html"
    assert answer.headers["Cache-Control"] == "no-store"
    assert f"<h1>{title}</h1>" in text
    assert 'href="http://grid.test/executions/abc/"' in text
    assert "secret" not in front.log


async def test_nginx_counts_and_logs_requests_without_their_addresses(front: Front) -> None:
    async with aiohttp.ClientSession(front.url) as session:
        for _ in range(3):
            async with session.get("/x?secret=1", headers=valid()) as answer:
                assert answer.status == 200
        async with session.get(STATUS_PATH, headers=valid()) as answer:
            counted = (await answer.text()).splitlines()[2].split()
    assert int(counted[2]) == 4
    front.stop()  # which writes what is buffered
    assert front.log.count(" GET 200 ") == 3
    assert "secret" not in front.log


async def test_nginx_notes_human_use_but_not_open_tab_polls(front: Front) -> None:
    long_ago = 1_700_000_000
    by_person = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-User": "?1"}
    cases = [
        ("GET", "/x", {}, False),
        ("GET", "/", by_person, True),
        ("PUT", "/w/lab/api/workspaces/default", {}, False),
        ("POST", "/x", {}, True),
    ]
    async with aiohttp.ClientSession(front.url) as session:
        for method, path, headers, is_use in cases:
            front.stop()  # the first note within ten seconds counts, and this is a new one's
            await front.start()
            os.utime(front.folder / "used", (long_ago, long_ago))
            for _ in range(3):
                async with session.request(method, path, headers={**valid(), **headers}) as answer:
                    assert answer.status == 200
            async with session.head(USE_PATH, headers=valid()) as answer:
                use = front_use(answer.headers, datetime.now(UTC))
            assert use is not None
            assert not use.is_open
            assert (use.used_at.timestamp() > long_ago + 1) == is_use, (method, path)
    assert (front.folder / "used").read_bytes() == b".\n" * 2


async def test_program_on_unix_socket_is_reached_with_websockets(tmp_path: Path) -> None:
    front = Front(free_ports(1), Target("127.0.0.1", 1), tmp_path, upstream=(f"unix:{PROGRAM_SOCKET}",))
    runner = web.AppRunner(UserServer().application())
    await runner.setup()
    try:
        await web.UnixSite(runner, str(tmp_path / "web.sock")).start()
        async with front, visiting(OpenToOneSecret(address=front.target)) as session:
            async with session.get("/x", headers=COOKIE) as answer:
                seen = await answer.json()
            assert (seen["target"], seen["headers"]["host"]) == ("/x", "abc.workspaces.test:8001")
            async with session.ws_connect("/ws", headers={**COOKIE, "Origin": ORIGIN}) as ws:
                await ws.send_str("hello")
                assert await ws.receive_str() == "token token-of-abc hello"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("is_any", "expected"),
    [
        (True, {200: 200, 302: 204, 401: 204, 404: 204, 500: 204, 503: 204}),
        (False, {200: 200, 302: 204, 401: 401, 404: 404, 500: 500, 503: 503}),
    ],
)
async def test_the_kubelets_probe_learns_whether_the_program_answers(
    tmp_path: Path, is_any: bool, expected: dict[int, int]
) -> None:
    asked: list[tuple[str, str, str]] = []

    async def answer_as_told(request: web.Request) -> web.Response:
        asked.append((request.method, request.path_qs, request.headers.get(PROBE_HEADER, "")))
        return web.Response(status=int(request.query["status"]), headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer_as_told)
    runner = web.AppRunner(app)
    await runner.setup()
    upstream = (f"unix:{PROGRAM_SOCKET}",)
    front = Front(free_ports(1), Target("127.0.0.1", 1), tmp_path, upstream=upstream, is_any_answer_ready=is_any)
    try:
        async with front, aiohttp.ClientSession(front.url) as session:

            async def probe(status: int, key: str = probe_key("abc", KEY)) -> int:
                path = f"/ready?status={status}"
                async with session.get(path, headers={PROBE_HEADER: key}, allow_redirects=False) as answer:
                    return answer.status

            assert await probe(200) == 502
            await web.UnixSite(runner, str(tmp_path / "web.sock")).start()
            assert {status: await probe(status) for status in expected} == expected
            method = "OPTIONS" if is_any else "GET"
            assert asked == [(method, f"/ready?status={status}", "") for status in expected]
            for key in ("", "other", probe_key("abd", KEY), KEY):
                assert await probe(200, key) == 403
            assert len(asked) == len(expected)
    finally:
        await runner.cleanup()
    assert "ready" not in front.log
