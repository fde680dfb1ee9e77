"""Connections from a port of a Service to a port of a pod, in both directions, until both sides are done.

Buffers are bounded: a side that does not read makes the other one wait. The end of one direction is passed on and leaves the
other open; a broken connection breaks both sides. The pod sees the client's address, as on a real cluster.
A connection lives as long as its two sides, even if the Service changes meanwhile; `ForwardedConnections.close` ends all of them.
"""

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Sequence

from grid.sandbox.serviceproxy.endpoints import Backend

logger = logging.getLogger(__name__)

_BUFFER_BYTES = 64 * 1024
_BACKLOG = 512
_CONNECT_SECONDS = 5.0
_BREATHER_SECONDS = 0.2
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with zero seconds, so that closing sends a reset
_BIND_ADDRESS_NO_PORT = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)


class ForwardedConnections:
    """All connections that are being forwarded now."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, client: socket.socket, backends: Sequence[Backend]) -> None:
        task = asyncio.create_task(_forward(client, backends))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before it ran would not close the socket.
        task.add_done_callback(lambda _: client.close())

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Listener:
    """One port of one Service. It listens from its construction, which may raise OSError, until closed; connections go on."""

    def __init__(self, address: str, port: int, backends: Sequence[Backend], connections: ForwardedConnections) -> None:
        self._backends = backends
        self._connections = connections
        self._next = 0
        self._socket = _listening(address, port)
        self._task = asyncio.create_task(self._accept(), name=f"service {address}:{port}")

    def lead_to(self, backends: Sequence[Backend]) -> None:
        """Set the backends from the next connection on."""
        self._backends = backends

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._socket)
            except OSError as error:
                # Mostly the process is out of files, which others must close first, so an immediate retry is useless.
                logger.warning("service connections wait: %s", error)
                await asyncio.sleep(_BREATHER_SECONDS)
                continue
            self._connections.add(client, self._in_turn())

    def _in_turn(self) -> Sequence[Backend]:
        """Return all backends, rotated by one each time; the later ones are tried when the first cannot be reached."""
        if not self._backends:
            return ()
        self._next = (self._next + 1) % len(self._backends)
        return [*self._backends[self._next :], *self._backends[: self._next]]


def _listening(address: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


async def _forward(client: socket.socket, backends: Sequence[Backend]) -> None:
    client.setblocking(False)
    with client:
        backend = await _connect(client, backends)
        if backend is None:
            _break(client)
            return
        with backend:
            for side in (client, backend):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pumps = [asyncio.create_task(_pump(client, backend)), asyncio.create_task(_pump(backend, client))]
            try:
                await asyncio.gather(*pumps)
            except OSError:
                _break(client, backend)
            except asyncio.CancelledError:
                _break(client, backend)
                raise
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)


async def _connect(client: socket.socket, backends: Sequence[Backend]) -> socket.socket | None:
    """Connect to the first backend that answers; return None when none does."""
    loop = asyncio.get_running_loop()
    caller = client.getpeername()[0] if backends else ""
    for backend in backends:
        wanted = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            wanted.setblocking(False)
            wanted.setsockopt(socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)
            wanted.bind((caller, 0))
            async with asyncio.timeout(_CONNECT_SECONDS):
                await loop.sock_connect(wanted, backend)
        except (OSError, TimeoutError):
            wanted.close()
        except asyncio.CancelledError:
            wanted.close()
            raise
        else:
            return wanted
    return None


async def _pump(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    buffer = memoryview(bytearray(_BUFFER_BYTES))
    while count := await loop.sock_recv_into(source, buffer):
        await loop.sock_sendall(target, buffer[:count])
    target.shutdown(socket.SHUT_WR)


def _break(*sides: socket.socket) -> None:
    """Make the close of these sockets send a reset, so that the other end sees a broken connection."""
    for side in sides:
        with contextlib.suppress(OSError):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
