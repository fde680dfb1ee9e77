"""Posts to an address that a person has typed, from inside our network: so nothing private is reached, and nothing is told of an answer
but its status.

The address that a connection is made to is checked when its socket is made, after the name was resolved: a name that leads elsewhere
a moment later changes nothing (DNS rebinding), and an address written in any other way is seen as what it is. No redirect is followed.
"""

import asyncio
import hashlib
import hmac
import socket
import ssl
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from grid.egress import Block, may_be_called
from grid.launch.notifications.results import SENT, SendResult

SECONDS = 10.0  # for all of it
SIGNATURE = "X-Hub-Signature-256"  # as GitHub signs, so that receivers and libraries know it
_RESOLVING = 8  # names that are resolved at once; a name server that hangs keeps no other thread of the process
_GONE = 410


def signature(secret: str, body: bytes) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


class Poster:
    """Posts; `close` it. `allowed` are private addresses that an admin allows, `denied` public ones that are never called; `tls` is for
    tests with an authority of their own.
    """

    def __init__(
        self,
        allowed: Iterable[Block],
        denied: Iterable[Block] = (),
        *,
        tls: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self._allowed, self._denied = tuple(allowed), tuple(denied)
        self._tls = tls
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(_RESOLVING, thread_name_prefix="webhook names")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def post(self, url: str, secret: str, body: bytes, *, event: str, message: str) -> SendResult:
        """Post the body and return what became of it."""
        permitted: list[bool] = []  # of the addresses that the name leads to

        def connect(info: Any) -> socket.socket:
            family, kind, protocol, _, address = info
            permitted.append(may_be_called(str(address[0]), self._allowed, self._denied))
            if not permitted[-1]:
                raise OSError("an address that may not be called")
            return socket.socket(family, kind, protocol)

        host = URL(url).host or ""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "compute-grid",
            "X-Compute-Grid-Event": event,
            "X-Compute-Grid-Delivery": message,
            SIGNATURE: signature(secret, body),
        }
        connector = aiohttp.TCPConnector(
            resolver=_Resolver(self._threads), socket_factory=connect, use_dns_cache=False, force_close=True
        )
        try:
            async with asyncio.timeout(self._seconds), aiohttp.ClientSession(connector=connector) as session:
                status = await self._status(session, url, body, headers)
        except TimeoutError:
            return SendResult(f"{host} did not answer within {self._seconds:.0f} seconds.")
        except aiohttp.ClientConnectorCertificateError:
            return SendResult(f"The certificate of {host} is not valid.")
        except aiohttp.ClientConnectorDNSError:
            return SendResult(f"The name {host} leads to no address.")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if permitted and not any(permitted):
                return SendResult(f"{host} leads to a private or excepted address: ask an admin to allow it.", True)
            return SendResult(f"{host} cannot be reached ({type(error).__name__}).")
        return _result(host, status)

    async def _status(self, session: aiohttp.ClientSession, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        tls = True if self._tls is None else self._tls
        async with session.post(url, data=body, headers=headers, allow_redirects=False, ssl=tls) as answer:
            return answer.status


def _result(host: str, status: int) -> SendResult:
    if 200 <= status < 300:
        return SENT
    if 300 <= status < 400:
        return SendResult(
            f"{host} redirects ({status}), which is not followed. Enter the address that it leads to.", True
        )
    return SendResult(f"{host} answered with status {status}.", status == _GONE)


class _Resolver(AbstractResolver):
    """Resolves in threads of its own, because a name server may take its time."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        def look_up() -> list[Any]:
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)

        found = await asyncio.get_running_loop().run_in_executor(self._threads, look_up)
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for family, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        return None
