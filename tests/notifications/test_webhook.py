"""Posts to a real server that takes them, fails, hangs, redirects and lies; and none to where nobody outside may reach."""

import asyncio
import hashlib
import hmac
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import UUID

import pytest
import pytest_asyncio
from aiohttp import web

from grid.core.egress import may_be_called, read_blocks
from grid.notifications.letters import SENT, SendResult, webhook_body
from grid.notifications.sender import SIGNATURE, Poster
from tests.notifications.test_letters import payload
from tests.support.certificates import Certificate, certificate
from tests.support.http_server import Answer, serving

LOOPBACK, _ = read_blocks("", ["127.0.0.0/8", "::1/128"])
MESSAGE = UUID(int=7)
BODY = webhook_body(payload(), MESSAGE, "https://grid.example.com")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(Path(tmp_path_factory.mktemp("tls")))


@pytest_asyncio.fixture
async def poster(tls: Certificate) -> AsyncIterator[Callable[..., Poster]]:
    made = []

    def make(*, seconds: float = 5.0, allowed: bool = True, trusts: ssl.SSLContext | None = tls.client) -> Poster:
        made.append(Poster(LOOPBACK if allowed else (), tls=trusts, seconds=seconds))
        return made[-1]

    yield make
    for poster in made:
        poster.close()


async def post(poster: Poster, url: str) -> SendResult:
    return await poster.post(url, "secret", BODY, event="failed", message=str(MESSAGE))


def answering(status: int, **headers: str) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers=headers)

    return answer


async def test_post_is_signed_and_says_what_why_and_where(poster: Callable[..., Poster], tls: Certificate) -> None:
    async with serving(answering(204), tls=tls.server) as server:
        assert await post(poster(), f"{server.url}/hook?room=1") == SENT
    request, body = server.seen[0], server.bodies[0]
    expected = hmac.new(b"secret", body, hashlib.sha256).hexdigest()
    assert request.headers[SIGNATURE] == f"sha256={expected}"
    assert (request.method, request.path_qs) == ("POST", "/hook?room=1")
    assert request.headers["X-Compute-Grid-Event"] == "failed"
    assert request.headers["X-Compute-Grid-Delivery"] == str(MESSAGE)
    posted = json.loads(body)
    assert (posted["what"], posted["why"]) == ("Train has failed", payload()["sentence"])
    assert posted["url"] == "https://grid.example.com/executions/abc/"
    assert posted["next"]


@pytest.mark.parametrize(("status", "is_final"), [(500, False), (404, False), (410, True)])
async def test_refusal_is_told(poster: Callable[..., Poster], tls: Certificate, status: int, is_final: bool) -> None:
    async with serving(answering(status), tls=tls.server) as server:
        result = await post(poster(), server.url)
    assert result == SendResult(f"127.0.0.1 answered with status {status}.", is_final)


@pytest.mark.parametrize("status", [301, 307])
async def test_no_redirect_is_followed(poster: Callable[..., Poster], tls: Certificate, status: int) -> None:
    async with serving(answering(200), tls=tls.server) as other:
        async with serving(answering(status, Location=f"{other.url}/"), tls=tls.server) as server:
            result = await post(poster(), server.url)
        assert not other.seen
    assert result.is_final
    assert f"redirects ({status})" in result.error


async def test_hanging_or_dripping_server_is_abandoned_in_time(poster: Callable[..., Poster], tls: Certificate) -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async with serving(hang, tls=tls.server) as server:
        result = await post(poster(seconds=0.3), server.url)
    assert result == SendResult("127.0.0.1 did not answer within 0 seconds.")


async def test_a_long_answer_is_not_read(poster: Callable[..., Poster], tls: Certificate) -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 65536)

    async with serving(flood, tls=tls.server) as server:
        assert await post(poster(), server.url) == SENT


async def test_untrusted_certificate_gets_no_post(poster: Callable[..., Poster], tls: Certificate) -> None:
    async with serving(answering(200), tls=tls.server) as server:
        result = await post(poster(trusts=None), server.url)
        assert not server.seen
    assert result.error == "127.0.0.1 cannot be reached: its certificate is not valid."


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
async def test_private_address_is_never_called(poster: Callable[..., Poster], tls: Certificate, host: str) -> None:
    async with serving(answering(200), tls=tls.server) as server:
        result = await post(poster(allowed=False), server.url.replace("127.0.0.1", host))
        assert not server.seen
    assert not result.is_sent
    # The library refuses numbers that it takes for neither a name nor an address.
    assert (
        "private or excepted address" if host[0] in "l[" or host.count(".") == 3 else "cannot be reached"
    ) in result.error


async def test_name_is_checked_at_the_address_actually_called(
    poster: Callable[..., Poster], tls: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = []

    def rebinding(host: str, port: int, *args: object, **kwargs: object) -> list[object]:
        looked_up.append(host)
        address = "93.184.216.34" if len(looked_up) > 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async with serving(answering(200), tls=tls.server) as server:
        monkeypatch.setattr(socket, "getaddrinfo", rebinding)
        result = await post(poster(allowed=False), server.url.replace("127.0.0.1", "rebind.example.com"))
        assert not server.seen
    assert "leads to a private or excepted address" in result.error
    assert looked_up == ["rebind.example.com"], "and it is not asked again"


async def test_missing_address_and_closed_port_are_distinguished(poster: Callable[..., Poster]) -> None:
    assert (
        await post(poster(), "https://no-such.invalid/")
    ).error == "no-such.invalid cannot be reached: its name leads to no address."
    assert (await post(poster(), "https://127.0.0.1:9/")).error == "127.0.0.1 cannot be reached: connection refused."


@pytest.mark.parametrize(
    "address",
    [
        *("10.0.0.1", "172.16.3.4", "192.168.1.1", "127.0.0.1", "169.254.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
        *("255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"),
        *("::7f00:1", "::a9fe:a9fe", "::ffff:0:7f00:1", "fec0::1"),
        *("169.254.169.254", "fd00:ec2::254", "168.63.129.16", "ff02::1", "2002:7f00:1::", "localhost", ""),
    ],
)
def test_address_that_is_not_public_is_not_called(address: str) -> None:
    assert not may_be_called(address, ())


def test_admin_allows_private_addresses_but_never_metadata_services() -> None:
    allowed, mistakes = read_blocks("GRID_WEBHOOK_PRIVATE", ["10.1.0.0/16", "169.254.0.0/16", "x"])
    assert may_be_called("10.1.2.3", allowed)
    assert not may_be_called("10.2.2.3", allowed)
    assert not may_be_called("169.254.169.254", allowed)
    assert mistakes == ["GRID_WEBHOOK_PRIVATE names “x”, but that is no block of addresses such as 203.0.113.0/24."]
    denied, _ = read_blocks("GRID_EGRESS_EXCEPT", ["93.184.0.0/16", "10.1.9.0/24"])
    assert not may_be_called("93.184.216.34", allowed, denied)
    assert not may_be_called("::ffff:93.184.216.34", allowed, denied)
    assert not may_be_called("10.1.9.3", allowed, denied)
    assert may_be_called("93.184.216.34", ())
    assert may_be_called("2606:2800:220:1::1", ())
