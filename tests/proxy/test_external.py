"""What the proxy answers an ingress on https that passes on few of the visitor's headers, as Envoy does."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from dashboard.proxy.gate import Target
from grid.core.origins import Origins
from grid.executions.ingress import AUTH_PATH, auth_key
from tests.proxy.support import OpenToOneSecret, visiting

ORIGIN = "https://abc.workspaces.test"
COOKIE = {"Cookie": "__Host-grid_workspace=s1"}
ASKED = f"{AUTH_PATH}/abc/{auth_key('abc', 'key-of-abc')}"
FETCH = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
async def ingress() -> AsyncIterator[aiohttp.ClientSession]:
    gate = OpenToOneSecret(address=Target("127.0.0.1", 8888, front_port=19080))
    async with visiting(gate, origins=Origins("https://workspaces.test")) as session:
        yield session


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (FETCH, 200),
        ({"Origin": ORIGIN}, 200),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({}, 403),
        ({"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403),
        *(({"Origin": origin}, 403) for origin in ("https://abd.workspaces.test", "null", ORIGIN + ":444")),
        ({**FETCH, "Origin": "https://abd.workspaces.test"}, 403),
    ],
)
async def test_auth_request_without_visitor_is_refused(
    ingress: aiohttp.ClientSession, headers: dict[str, str], status: int
) -> None:
    async with ingress.get(f"{ASKED}/ws", headers={**COOKIE, **headers}) as answer:
        assert answer.status == status


async def test_method_comes_from_auth_request_and_not_visitor(ingress: aiohttp.ClientSession) -> None:
    link = {**COOKIE, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    forged = {"X-Original-Method": "GET", "X-Original-URL": f"{ORIGIN}/"}
    for method, status in (("GET", 200), ("POST", 403)):
        async with ingress.request(method, f"{ASKED}/x", headers={**link, **forged}) as answer:
            assert answer.status == status
