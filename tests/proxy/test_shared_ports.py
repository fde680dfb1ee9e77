"""An app on a shared port of a workspace through the proxy, on an origin of its own; below a path it is like a cluster's page."""

import socket

import aiohttp
import pytest

from dashboard.proxy.gate import Target
from grid.sharing.grants import Passage
from tests.proxy.support import COOKIE, ORIGIN, OpenToOneSecret, UserServer

PASSAGE = Passage("abc", "running", "", 8501, strips_prefix=True, is_shared_port=True)


@pytest.fixture
def gate(pod: tuple[UserServer, Target]) -> OpenToOneSecret:
    return OpenToOneSecret(known=PASSAGE, address=pod[1])


async def test_app_answers_at_root_of_own_origin(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/run?x=1", headers=COOKIE) as answer:
        seen = await answer.json()
    assert seen["target"] == "/run?x=1"
    assert seen["headers"]["cookie"] == "theme=dark"
    assert seen["headers"]["authorization"] == "token token-of-abc", "of the share, which opens nothing"
    async with browser.ws_connect("/ws", headers=COOKIE, origin=ORIGIN) as ws:
        await ws.send_str("hello")
        assert (await ws.receive_str(timeout=10)).endswith(" hello")


async def test_unanswered_port_page_says_how_to_start_program(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as shut:
        gate.address = Target("127.0.0.1", shut.getsockname()[1])
    async with browser.get("/", headers=COOKIE) as answer:
        page = await answer.text()
    assert answer.status == 502
    assert "Nothing answers on port 8501 of this workspace" in page
    assert "0.0.0.0 instead of 127.0.0.1" in page
