"""A proxy between real servers on loopback, with a gate that knows one execution, `abc`."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import aiohttp
import uvicorn
from aiohttp import web

from dashboard.proxy.app import WorkspaceProxy
from dashboard.proxy.gate import CannotTell, Ending, GrantGate, Target
from grid.core.origins import Origins
from grid.sharing.grants import Passage

BASE = "http://workspaces.test:8001"
ORIGIN = "http://abc.workspaces.test:8001"
HOST = {"Host": "abc.workspaces.test:8001"}
COOKIE = {"Cookie": "grid_workspace=s1; grid_session=dashboard; theme=dark"}
APART = Origins(BASE)
PREPARING = Passage("abc", "preparing", "Its image is pulled.", 1)


@dataclass
class OpenToOneSecret(GrantGate):
    """Knows the execution `abc`, its ticket `t1` for the opener `o1` and its secret `s1`."""

    known: Passage = PREPARING
    address: Target | None = None
    answers: bool = True  # whether its database does
    is_open: bool = True
    ended: Ending = field(default_factory=Ending)
    used_by: list[Passage] = field(default_factory=list)

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        if not self.answers:
            raise CannotTell
        return "s1" if (execution_id, ticket, opener) == ("abc", "t1", "o1") else None

    async def passage(self, execution_id: str, secret: str) -> Passage | None:
        if not self.answers:
            raise CannotTell
        return self.known if self.is_open and (execution_id, secret) == ("abc", "s1") else None

    @contextlib.contextmanager
    def holding(self, execution_id: str, secret: str) -> Iterator[Ending]:
        yield self.ended

    def used(self, passage: Passage) -> None:
        self.used_by.append(passage)

    def target(self, passage: Passage) -> Target | None:
        return self.address

    def close(self) -> None:
        """The right to it ends."""
        self.is_open = False
        self.ended.set()


@contextlib.asynccontextmanager
async def visiting(
    gate: OpenToOneSecret, *, origins: Origins = APART, problem: str = "", headers: dict[str, str] | None = None
) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the proxy, itself on a real socket; without other `headers` it asks for `abc`'s origin."""

    async def problem_now() -> str:
        return problem

    proxy = WorkspaceProxy(
        gate=gate,
        origins=origins,
        dashboard_origin="https://grid.test",
        token=lambda execution_id: f"token-of-{execution_id}",
        front_key=lambda execution_id: f"key-of-{execution_id}",
        problem=problem_now,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(proxy, lifespan="off", log_level="error", ws="websockets-sansio"))
        with contextlib.suppress(asyncio.CancelledError):
            task = asyncio.create_task(server.serve(sockets=[listener]))
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(base, cookie_jar=jar, headers=HOST if headers is None else headers) as session:
            yield session
        server.should_exit = True
        await task
        await proxy.close()


class UserServer:
    """The program in the pod: says what it was sent, streams when told to, echoes on a websocket."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.left = asyncio.Event()
        self.close_code: int | None = None

    def application(self) -> web.Application:
        app = web.Application(client_max_size=2**30)
        app.router.add_get("/ws", self.websocket)
        app.router.add_get("/stream", self.stream)
        app.router.add_route("*", "/{tail:.*}", self.report)
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
        if "cookie" in request.query:
            answer.headers.add("Set-Cookie", request.query["cookie"])
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
