"""A program in a pod, and a browser that asks for it through the proxy."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from dashboard.proxy.gate import Target
from tests.proxy.support import OpenToOneSecret, UserServer, visiting


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
def gate(pod: tuple[UserServer, Target]) -> OpenToOneSecret:
    return OpenToOneSecret(address=pod[1])


@pytest.fixture
async def browser(gate: OpenToOneSecret) -> AsyncIterator[aiohttp.ClientSession]:
    async with visiting(gate) as session:
        yield session
