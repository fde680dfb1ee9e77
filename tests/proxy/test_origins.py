"""Which application answers is decided by the Host header alone."""

import pytest

from dashboard.proxy.origins import TwoOrigins
from dashboard.proxy.upstream import Message, Receive, Scope, Send


async def nothing() -> Message:
    return {}


async def nowhere(message: Message) -> None:
    raise AssertionError("nothing is sent here")


@pytest.mark.parametrize(
    ("kind", "host", "expected"),
    [
        ("http", "localhost:8001", "workspaces"),
        ("websocket", "LOCALHOST:8001", "workspaces"),
        ("http", "127.0.0.1:8000", "dashboard"),
        ("websocket", "127.0.0.1:8000", "dashboard"),
        ("http", "localhost:8000", "dashboard"),
        ("http", "", "dashboard"),
        ("lifespan", "localhost:8001", "dashboard"),
    ],
)
async def test_the_host_header_decides(kind: str, host: str, expected: str) -> None:
    asked: list[str] = []

    async def dashboard(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append("dashboard")

    async def workspaces(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append("workspaces")

    split = TwoOrigins(dashboard=dashboard, workspaces=workspaces, workspace_origin="http://localhost:8001")
    await split({"type": kind, "headers": [(b"host", host.encode())]}, nothing, nowhere)
    assert asked == [expected]
