"""Only our own host names are answered, only our own pages open websockets, and logs stay lines."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import SuspiciousOperation

from grid.edge.connections import client_key, matcher
from grid.edge.logs import ClientFaults, LineFormatter
from grid.edge.refusals import cleaned
from grid.edge.wrappers import OwnHosts
from tests.edge.serving import refusals
from tests.edge.test_limits import Asked, asked

OWN = {"host": "grid.example.com", "origin": "https://grid.example.com"}


async def answered(request: Asked) -> int:
    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    application = OwnHosts(inside, allowed=["grid.example.com", "127.0.0.1"], origin="https://grid.example.com")
    await application(request.scope, request.receive, request.send)
    return request.status


@pytest.mark.parametrize(
    ("host", "status"),
    [("grid.example.com", 200), ("GRID.example.com:443", 200), ("127.0.0.1:8000", 200)]
    + [(host, 400) for host in ("", "evil.example", "grid.example.com.evil", "a@grid.example.com", "[")],
)
async def test_only_known_host_names_are_answered(host: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    assert await answered(asked(headers={"host": host})) == status
    assert len(refusals(caplog.records)) == (status == 400)


async def test_a_request_with_two_hosts_is_refused() -> None:
    request = asked(headers={"host": "grid.example.com"})
    request.scope["headers"].append((b"host", b"grid.example.com"))
    assert await answered(request) == 400


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://grid.example.com", 200), ("https://grid.example.com:443", 200)]
    + [
        (origin, 403)
        for origin in (
            "",
            "null",
            "http://[",
            "http://grid.example.com",
            "https://grid.example.com:444",
            "https://evil.example",
            "\xff" * 5000,
        )
    ],
)
async def test_only_our_own_pages_open_websockets(origin: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    extensions: dict[str, Any] = {"websocket.http.response": {}}
    request = asked(type="websocket", headers={**OWN, "origin": origin}, extensions=extensions)
    assert await answered(request) == status
    lines = refusals(caplog.records)
    assert len(lines) == (status == 403) and all(len(line) < 400 for line in lines)


def test_text_of_client_is_kept_as_a_short_line() -> None:
    assert cleaned("a\nb\x1b[31m\x00") == "a\\nb\\x1b[31m\\x00"
    assert cleaned("a" * 5000) == "a" * 100 + "… (5000 characters)"


def line_of(error: Exception | None, status: int | None, message: str, *arguments: str) -> str:
    exc_info = (type(error), error, None) if error else None
    record = logging.LogRecord("x", logging.WARNING, "x", 1, message, arguments, exc_info)
    record.__dict__.update({"status_code": status, "request": SimpleNamespace(path="/login/\n")} if status else {})
    assert ClientFaults().filter(record)
    return LineFormatter("%(message)s").format(record)


def test_client_fault_is_a_single_line_without_traceback() -> None:
    fault = SuspiciousOperation("too many\nfields")
    assert line_of(fault, 400, "Bad request") == "Bad request path=/login/\\n reason=too many\\nfields"
    assert line_of(fault, 500, "Oops").splitlines()[1:] == [
        "django.core.exceptions.SuspiciousOperation: too many",
        "fields",
    ]
    assert line_of(None, None, "a\n%s", "b\n") == "a\\nb"


def test_address_and_ipv6_network_each_count_as_one_client() -> None:
    assert client_key("10.0.0.1") == client_key("::ffff:10.0.0.1") == "10.0.0.1"
    assert client_key("2001:db8::1") == client_key("2001:db8::ffff:2") != client_key("2001:db8:0:1::1")
    assert client_key("unknown") == "unknown"


def test_proxies_are_addresses_and_networks() -> None:
    is_proxy = matcher(["10.1.0.0/16", "::1"])
    assert is_proxy("10.1.2.3") and is_proxy("::1") and not is_proxy("10.2.0.1") and not is_proxy("unix")
    with pytest.raises(ValueError, match="does not appear"):
        matcher(["ingress"])
