"""The proxy between real servers on loopback: streaming, websockets, and nothing for whoever has no grant."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from datetime import datetime

import aiohttp
import pytest
import uvicorn
from aiohttp import web

from dashboard.proxy.app import WorkspaceProxy
from dashboard.proxy.gate import Target
from dashboard.proxy.grants import Passage, digest

ORIGIN = "http://workspaces.test:8001"
COOKIE = {"Cookie": "grid_workspace_abc=s1; grid_session=dashboard; theme=dark"}


class OpenToOneSecret:
    """A gate that knows one execution, `abc`, its ticket `t1` for the opener `o1` and its secret `s1`."""

    def __init__(self) -> None:
        self.address: Target | None = None
        self.is_open = True

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        return "s1" if (execution_id, ticket, opener) == ("abc", "t1", "o1") else None

    async def passage(self, execution_id: str, secret: str) -> Passage | None:
        if not self.is_open or (execution_id, secret) != ("abc", "s1"):
            return None
        return Passage(execution_id="abc", state="preparing", message="Its image is pulled.", port=1)

    def target(self, passage: Passage) -> Target | None:
        return self.address


class UserServer:
    """The program in the pod: says what it was sent, streams when told to, echoes on a websocket."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.left = asyncio.Event()
        self.close_code: int | None = None

    def application(self) -> web.Application:
        app = web.Application(client_max_size=2**30)
        app.router.add_get("/w/abc/ws", self.websocket)
        app.router.add_get("/w/abc/stream", self.stream)
        app.router.add_route("*", "/w/abc/{tail:.*}", self.report)
        return app

    async def report(self, request: web.Request) -> web.Response:
        body = await request.read()
        answer = web.json_response(
            {
                "method": request.method,
                "target": request.raw_path,
                "headers": {name.lower(): value for name, value in request.headers.items()},
                "length": len(body),
            }
        )
        answer.headers["Set-Cookie"] = "grid_session=forged; Path=/"
        return answer

    async def stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        try:
            await self.release.wait()
            await response.write(b"second")
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise
        return response

    async def websocket(self, request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(protocols=["v1.kernel"])
        await ws.prepare(request)
        async for message in ws:
            if message.type is aiohttp.WSMsgType.TEXT:
                if message.data == "close 4001":
                    await ws.close(code=4001)
                else:
                    await ws.send_str(f"{request.headers['Authorization']} {message.data}")
            elif message.type is aiohttp.WSMsgType.BINARY:
                await ws.send_bytes(message.data[::-1])
        self.close_code = ws.close_code
        self.left.set()
        return ws


@pytest.fixture
async def pod() -> AsyncIterator[tuple[UserServer, Target]]:
    server = UserServer()
    runner = web.AppRunner(server.application(), handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield server, Target("127.0.0.1", runner.addresses[0][1])
    server.release.set()
    await runner.cleanup()


@pytest.fixture
def gate() -> OpenToOneSecret:
    return OpenToOneSecret()


@pytest.fixture
async def browser(gate: OpenToOneSecret, pod: tuple[UserServer, Target]) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the proxy, itself on a real socket."""
    gate.address = pod[1]
    proxy = WorkspaceProxy(
        gate=gate,
        origin=ORIGIN,
        dashboard_origin="https://grid.test",
        token=lambda execution_id: f"token-of-{execution_id}",
        recheck_seconds=0.01,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(proxy, lifespan="off", log_level="error", ws="websockets-sansio")
        server = uvicorn.Server(config)
        with contextlib.suppress(asyncio.CancelledError):
            task = asyncio.create_task(server.serve(sockets=[listener]))
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with aiohttp.ClientSession(base, cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield session
        server.should_exit = True
        await task
        await proxy.close()


async def test_a_ticket_becomes_a_cookie_for_that_execution_only(browser: aiohttp.ClientSession) -> None:
    opener = {"Cookie": "grid_opener_abc=o1"}
    async with browser.get("/w/abc/__grid_open__?ticket=t1", headers=opener, allow_redirects=False) as answer:
        assert answer.status == 303
        assert answer.headers["Location"] == "/w/abc/"
        cookie, forgotten = answer.headers.getall("Set-Cookie")
        assert forgotten.startswith("grid_opener_abc=; Path=/w/abc/; Max-Age=0;")
        assert cookie.startswith("grid_workspace_abc=s1; Path=/w/abc/;")
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie


async def test_opening_begins_with_an_opener_that_stays_in_the_browser(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/w/abc/__grid_begin__", allow_redirects=False) as answer:
        assert answer.status == 303
        name, _, rest = answer.headers["Set-Cookie"].partition("=")
        opener = rest.partition(";")[0]
        assert name == "grid_opener_abc"
        assert "Path=/w/abc/; Max-Age=60; HttpOnly; SameSite=Lax" in rest
        assert answer.headers["Location"] == f"https://grid.test/executions/abc/opening/?opener={digest(opener)}"
    async with browser.get("/w/abc/__grid_begin__", allow_redirects=False) as answer:
        assert opener not in answer.headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/w/abc/", {}),
        ("/w/abc/", {"Cookie": "grid_workspace_abc=wrong"}),
        ("/w/other/", {"Cookie": "grid_workspace_other=s1"}),
        ("/w/abc/__grid_open__?ticket=wrong", {}),
        ("/w/abc/__grid_open__?ticket=t1", {}),
        ("/w/abc/__grid_open__?ticket=t1", {"Cookie": "grid_opener_abc=another; grid_opener_other=o1"}),
        ("/w/a;b/__grid_begin__", {}),
        ("/w/a%0d%0ab/__grid_begin__", {}),
        ("/w/%2f%2fevil.test/__grid_begin__", {}),
        ("/w/abc/__grid_open__", COOKIE),
        ("/", COOKIE),
        ("/w/", COOKIE),
        ("/infrastructure/", COOKIE),
    ],
)
async def test_without_a_grant_every_address_gives_the_same_403(
    browser: aiohttp.ClientSession, path: str, headers: dict[str, str]
) -> None:
    async with browser.get("/w/nonsense/") as answer:
        expected = await answer.text()
    async with browser.get(path, headers=headers) as answer:
        assert answer.status == 403
        assert await answer.text() == expected


async def test_a_request_reaches_the_pod_unchanged_but_for_identity(browser: aiohttp.ClientSession) -> None:
    async with browser.put(
        "/w/abc/files/a%2Fb%20c?x=%26&y", data=b"z" * 300_000, headers={**COOKIE, "Authorization": "token stolen"}
    ) as answer:
        seen = await answer.json()
    assert seen["method"] == "PUT"
    assert seen["target"].startswith("/w/abc/files/a%2Fb%20c?x=%26&y")
    assert seen["length"] == 300_000
    assert seen["headers"]["authorization"] == "token token-of-abc"
    assert seen["headers"]["cookie"] == "theme=dark"


async def test_user_code_cannot_forge_the_dashboards_cookie(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/w/abc/", headers=COOKIE) as answer:
        assert answer.status == 200
        assert "Set-Cookie" not in answer.headers


async def test_an_answer_is_streamed_while_it_is_made(
    browser: aiohttp.ClientSession, pod: tuple[UserServer, Target]
) -> None:
    async with browser.get("/w/abc/stream", headers=COOKIE) as answer:
        assert await answer.content.readexactly(5) == b"first"
        pod[0].release.set()
        assert await answer.content.read() == b"second"


async def test_an_endless_answer_ends_when_the_reader_leaves(
    browser: aiohttp.ClientSession, pod: tuple[UserServer, Target]
) -> None:
    answer = await browser.get("/w/abc/stream", headers=COOKIE)
    assert await answer.content.readexactly(5) == b"first"
    answer.close()
    await asyncio.wait_for(pod[0].left.wait(), 10)


async def test_an_endless_answer_ends_when_the_right_to_it_ends(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret, pod: tuple[UserServer, Target]
) -> None:
    async with browser.get("/w/abc/stream", headers=COOKIE) as answer:
        assert await answer.content.readexactly(5) == b"first"
        gate.is_open = False
        with pytest.raises(aiohttp.ClientPayloadError):
            await asyncio.wait_for(answer.content.read(), 10)
    await asyncio.wait_for(pod[0].left.wait(), 10)


async def test_websocket_messages_pass_both_ways_with_the_chosen_protocol(browser: aiohttp.ClientSession) -> None:
    async with browser.ws_connect("/w/abc/ws", headers=COOKIE, origin=ORIGIN, protocols=["other", "v1.kernel"]) as ws:
        assert ws.protocol == "v1.kernel"
        await ws.send_str("hello")
        assert await ws.receive_str(timeout=10) == "token token-of-abc hello"
        await ws.send_bytes(b"abc" * 100_000)
        assert await ws.receive_bytes(timeout=10) == b"cba" * 100_000


async def test_a_close_code_of_the_pod_reaches_the_browser(browser: aiohttp.ClientSession) -> None:
    async with browser.ws_connect("/w/abc/ws", headers=COOKIE, origin=ORIGIN) as ws:
        await ws.send_str("close 4001")
        assert (await ws.receive(timeout=10)).type is aiohttp.WSMsgType.CLOSE
        assert ws.close_code == 4001


async def test_a_browser_that_leaves_ends_the_pods_websocket_and_is_no_failure_of_the_program(
    browser: aiohttp.ClientSession, pod: tuple[UserServer, Target], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dashboard.proxy")
    ws = await browser.ws_connect("/w/abc/ws", headers=COOKIE, origin=ORIGIN)
    await ws.close()
    await asyncio.wait_for(pod[0].left.wait(), 10)
    async with browser.get("/w/abc/", headers=COOKIE) as answer:
        assert answer.status == 200
    assert [record.getMessage() for record in caplog.records if record.name.startswith("dashboard.")] == []


@pytest.mark.parametrize(
    ("headers", "origin"),
    [(COOKIE, "http://evil.test"), (COOKIE, "http://workspaces.test:8000"), (COOKIE, None), ({}, ORIGIN)],
)
async def test_a_websocket_needs_the_grant_and_our_own_origin(
    browser: aiohttp.ClientSession, headers: dict[str, str], origin: str | None
) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await browser.ws_connect("/w/abc/ws", headers=headers, origin=origin)
    assert refused.value.status == 403


@pytest.mark.parametrize(
    ("method", "origin", "status"),
    [
        ("POST", ORIGIN, 200),
        ("POST", "http://workspaces.test:9999", 403),
        ("DELETE", "null", 403),
        ("GET", "http://workspaces.test:9999", 200),
    ],
)
async def test_a_page_of_another_port_changes_nothing_in_the_owners_name(
    browser: aiohttp.ClientSession, method: str, origin: str, status: int
) -> None:
    async with browser.request(method, "/w/abc/api/contents", headers={**COOKIE, "Origin": origin}) as answer:
        assert answer.status == status


async def test_an_open_websocket_is_closed_when_the_right_to_it_ends(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret
) -> None:
    async with browser.ws_connect("/w/abc/ws", headers=COOKIE, origin=ORIGIN) as ws:
        gate.is_open = False
        await ws.receive(timeout=10)
        assert ws.close_code == 1008


async def test_the_owner_is_told_why_a_workspace_is_not_there_yet(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret
) -> None:
    gate.address = None
    async with browser.get("/w/abc/", headers=COOKIE) as answer:
        assert answer.status == 503
        assert "This execution is preparing. Its image is pulled." in await answer.text()


async def test_the_owner_is_told_that_the_program_does_not_answer(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        gate.address = Target("127.0.0.1", unused.getsockname()[1])
    async with browser.get("/w/abc/", headers=COOKIE) as answer:
        assert answer.status == 502
        assert "did not answer" in await answer.text()
