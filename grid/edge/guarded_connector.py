"""Connections from inside our network to addresses that somebody has named, so that nothing private is reached that may not be.

The address that a connection is made to is checked when its socket is made, after the name was resolved: a name that leads elsewhere
a moment later changes nothing (DNS rebinding), and an address written in any other way is seen as what it is.
"""

import asyncio
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from grid.core.egress import Block, may_be_called

_RESOLVING = 8  # names that are resolved at once; a name server that hangs keeps no other thread of the process


class GuardedConnector:
    """Makes aiohttp's connectors; `close` it. `allowed` are private addresses that may be called, `denied` public ones that may not."""

    def __init__(self, allowed: Iterable[Block], denied: Iterable[Block] = (), *, name: str) -> None:
        self._allowed, self._denied = tuple(allowed), tuple(denied)
        self._threads = ThreadPoolExecutor(_RESOLVING, thread_name_prefix=f"{name} names")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def connector(self, permitted: list[bool]) -> aiohttp.TCPConnector:
        """Return a connector for one request. It adds to `permitted`, for each address that it tries, whether that may be called."""

        def connect(info: Any) -> socket.socket:
            family, kind, protocol, _, address = info
            permitted.append(may_be_called(str(address[0]), self._allowed, self._denied))
            if not permitted[-1]:
                raise OSError("an address that may not be called")
            return socket.socket(family, kind, protocol)

        return aiohttp.TCPConnector(
            resolver=_Resolver(self._threads), socket_factory=connect, use_dns_cache=False, force_close=True
        )


class _Resolver(AbstractResolver):
    """Resolves in threads of its own, because a name server may take its time."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM, family=family)
        addresses = await asyncio.get_running_loop().run_in_executor(self._threads, look_up)
        numeric = socket.AI_NUMERICHOST
        return [
            ResolveResult(hostname=host, host=str(address[0]), port=port, family=family, proto=protocol, flags=numeric)
            for family, _, protocol, _, address in addresses
        ]

    async def close(self) -> None:
        return None
