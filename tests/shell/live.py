"""Websockets of live pages in tests: as a logged-in person, through the whole stack of the web process or a part of it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from dashboard.shell.pages.live import TOO_SLOW
from grid.asgi import application
from grid.models import User

_CHANGE = re.compile(r'hx-target="\[id=&quot;(.*?)&quot;\]" hx-swap="(\w+)"')


class Socket:
    """One browser's connection."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator

    async def message(self, *, within: float = 30.0) -> str:
        output = await self._communicator.receive_output(timeout=within)
        assert output["type"] == "websocket.send", output
        text: str = output["text"]
        return text

    async def message_about(self, needle: str, *, within: float = 30.0) -> str:
        """The next message that contains `needle`; what comes before it is passed over."""
        while needle not in (text := await self.message(within=within)):
            pass
        return text

    async def is_silent(self, seconds: float = 0.4) -> bool:
        silent: bool = await self._communicator.receive_nothing(timeout=seconds, interval=0.05)
        return silent

    async def close_code(self, *, within: float = 30.0) -> int:
        """Passes over messages that come before the close."""
        while True:
            output = await self._communicator.receive_output(timeout=within)
            if output["type"] == "websocket.close":
                code: int = output["code"]
                return code


def changed(message: str) -> list[tuple[str, str]]:
    """What a message does, as (id, swap)."""
    return _CHANGE.findall(message)


def cookie_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


@asynccontextmanager
async def connection(
    path: str,
    user: User | None = None,
    *,
    app: Any = application,
    origin: str = settings.DASHBOARD_ORIGIN,
    cookie: str = "",
) -> AsyncIterator[Socket | None]:
    """A socket, or None when the server refuses; with `user` logged in, or with that session's `cookie`."""
    if user is not None:
        cookie = await sync_to_async(cookie_of)(user)
    headers = [(b"host", b"127.0.0.1:8000")]
    if origin:
        headers.append((b"origin", origin.encode()))
    if cookie:
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    address, _, query = path.partition("?")
    scope = {
        "type": "websocket",
        "path": address,
        "query_string": query.encode(),
        "headers": headers,
        "subprotocols": [],
    }
    untyped: Any = ApplicationCommunicator
    communicator = untyped(app, scope)
    await communicator.send_input({"type": "websocket.connect"})
    answer = await communicator.receive_output(timeout=30)
    try:
        yield Socket(communicator) if answer["type"] == "websocket.accept" else None
    finally:
        await communicator.send_input({"type": "websocket.disconnect", "code": 1000})
        await communicator.wait(timeout=30)


@asynccontextmanager
async def connected(path: str, user: User, *, app: Any = application) -> AsyncIterator[Socket]:
    """A socket that the server must accept."""
    async with connection(path, user, app=app) as socket:
        assert socket is not None, f"{user} is refused at {path}"
        yield socket


class Browser:
    """Takes messages only when it is let; drives the application without a queue between."""

    def __init__(self, path: str, app: Any, cookie: str) -> None:
        self.taken: list[dict[str, Any]] = []
        self.open = asyncio.Event()
        self.sending = asyncio.Event()
        self._from_browser: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._from_browser.put_nowait({"type": "websocket.connect"})
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": [(b"cookie", f"grid_session={cookie}".encode())],
        }
        self.running = asyncio.create_task(app(scope, self._from_browser.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "websocket.send":
            self.sending.set()
            await self.open.wait()
        self.taken.append(message)

    def is_let_go(self) -> bool:
        """Whether the server has closed, because nothing was taken."""
        return any(message.get("code") == TOO_SLOW for message in self.taken)

    async def leave(self) -> None:
        self._from_browser.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait_for(self.running, 30)


class Clock:
    """A clock that a test moves; both kinds of time go on together."""

    def __init__(self, now: datetime) -> None:
        self._start = now
        self.seconds = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return 1000.0 + self.seconds
