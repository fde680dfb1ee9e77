"""Why a server could not be asked, in words without a class or an address of the error."""

import errno
import json
import socket
import ssl

import aiohttp
import pytest
import requests

from grid.core.errors import why_unreached


def raised_from(outer: Exception, cause: Exception | None) -> Exception:
    outer.__cause__ = cause
    return outer


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "no answer in time"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 9)"), "connection refused"),
        (raised_from(aiohttp.ClientPayloadError(), socket.gaierror(-2, "unknown")), "its name leads to no address"),
        (raised_from(requests.ConnectionError("http://ada:key@p"), ssl.SSLCertVerificationError()), "its certificate is not valid"),
        (ssl.SSLError("WRONG_VERSION_NUMBER"), "its TLS is not as expected"),
        (aiohttp.ServerDisconnectedError(), "the connection broke"),
        (OSError(), "the connection broke"),
        (EOFError(), "the connection broke"),
        (json.JSONDecodeError("no", "{", 0), "the answer is not understood"),
    ],
)  # fmt: skip
def test_unreached_server_is_explained_by_its_cause(error: Exception, words: str) -> None:
    assert why_unreached(error) == words


def test_refused_prometheus_is_explained_without_its_address() -> None:
    with pytest.raises(requests.ConnectionError) as raised:
        requests.get("http://ada:key@127.0.0.1:9/", timeout=5)
    assert why_unreached(raised.value) == "connection refused"
