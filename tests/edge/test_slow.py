"""A refused try at a password is answered late, everything else at once."""

import asyncio
from typing import Any

import pytest

from grid.edge.refusals import Message, Receive, Scope, Send
from grid.edge.wrappers import SlowRefusals


async def is_answered_at_once(status: int, path: str) -> bool:
    sent: list[Message] = []

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is asked for")

    scope: dict[str, Any] = {"type": "http", "path": path}
    answering = asyncio.ensure_future(SlowRefusals(answer, paths=["/login/"], seconds=60)(scope, receive, send))
    await asyncio.wait([answering], timeout=0.05)
    answering.cancel()
    return len(sent) == 2


@pytest.mark.parametrize(
    ("status", "path", "at_once"),
    [
        (429, "/login/", False),
        (503, "/login/", False),
        (200, "/login/", True),
        (302, "/login/", True),
        (503, "/readyz", True),
    ],
)
async def test_only_refused_password_attempts_have_to_wait(status: int, path: str, at_once: bool) -> None:
    assert await is_answered_at_once(status, path) is at_once
