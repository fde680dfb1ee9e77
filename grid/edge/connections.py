"""The open connections of a server: their limits, and the sweep that closes late ones.

One sweep for all of them is cheaper than several timers for each, and is as exact as these limits need.
"""

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from grid.core.translation import gettext as _
from grid.edge.refusals import Refusal

logger = logging.getLogger(__name__)

_EVERYBODY = ""
_IPV6_SITE = 64  # bits: the smallest network that a provider gives one customer


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of a server's connections; times are in seconds, sizes in bytes."""

    head_seconds: float = 10.0  # from connecting, or from its first byte, until the whole head of a request is here
    body_idle_seconds: float = 20.0  # without receiving a byte of a body that is being read
    send_seconds: float = 60.0  # for the client to read most of the waiting output, about 64 KiB
    linger_seconds: float = 5.0  # for the client to read our refusal, while its input is discarded
    url_bytes: int = 8 * 2**10
    head_bytes: int = 32 * 2**10
    headers: int = 100
    waiting_requests: int = 16  # sent on one connection before the first is answered
    connections: int = 4096
    connections_of_address: int = 512
    arriving_bytes: int = 256 * 2**20  # of all websockets' incomplete messages together

    @property
    def sweep_seconds(self) -> float:
        return min(1.0, min(self.head_seconds, self.body_idle_seconds, self.send_seconds, self.linger_seconds) / 4)


def client_key(address: str) -> str:
    """Return the key that stands for one client: an IPv4 address, or the /64 network of an IPv6 address."""
    return _key_of(address[:64])


@lru_cache(4096)  # each request asks
def _key_of(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_SITE), strict=False))


def matcher(networks: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether an address is in one of the networks. Raise ValueError for what is no address or network."""
    known = [ipaddress.ip_network(network) for network in networks]

    def matches(address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in known)

    return matches


class Counts(Counter[Hashable]):
    """A counter by key; a key whose count is 0 takes no memory. Counter's own `update` would take five times as long."""

    def remove(self, key: Hashable) -> None:
        if (left := self.get(key, 0) - 1) > 0:
            self[key] = left
        else:
            self.pop(key, None)

    def held(self, keys: Sequence[Hashable]) -> "_Held":
        """Return a context in which each of these is counted once more."""
        return _Held(self, keys)


class _Held:
    """Each request enters one: a generator would take thrice as long."""

    __slots__ = ("_counts", "_keys")

    def __init__(self, counts: Counts, keys: Sequence[Hashable]) -> None:
        self._counts, self._keys = counts, keys

    def __enter__(self) -> None:
        for key in self._keys:
            self._counts[key] = self._counts.get(key, 0) + 1

    def __exit__(self, *_exception: object) -> None:
        for key in self._keys:
            self._counts.remove(key)


class Connection(Protocol):
    def cut_if_late(self, now: float) -> None: ...


class Connections:
    """The open connections, counted by client; addresses for which `is_proxy` is true stand for many people and have no limit."""

    def __init__(self, limits: ConnectionLimits, *, is_proxy: Callable[[str], bool]) -> None:
        self.limits, self._is_proxy = limits, is_proxy
        self._open: dict[asyncio.BaseTransport, tuple[Connection, str]] = {}
        self._counts = Counts()
        self.arriving = 0  # bytes of incomplete messages; each websocket adds and subtracts its own
        self._sweep: asyncio.TimerHandle | None = None

    def enter(self, transport: asyncio.BaseTransport, connection: Connection, address: str) -> Refusal | None:
        """Count and watch the connection, or return why it is refused. A protocol that takes a connection over enters again."""
        if transport in self._open:
            self._open[transport] = connection, self._open[transport][1]
            return None
        whose = _EVERYBODY if self._is_proxy(address) else client_key(address)
        most = self.limits.connections_of_address
        if len(self._open) >= self.limits.connections:
            return _too_many(self.limits.connections, _("here"))
        if whose and self._counts[whose] >= most:
            return _too_many(most, _("from your address"))
        self._open[transport] = connection, whose
        self._counts[whose] += 1
        if self._sweep is None:
            self._sweep_later()
        return None

    def leave(self, transport: asyncio.BaseTransport) -> None:
        if transport in self._open:
            _connection, whose = self._open.pop(transport)
            self._counts.remove(whose)

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(self.limits.sweep_seconds, self._sweep_now)

    def _sweep_now(self) -> None:
        self._sweep = None
        if not self._open:
            return
        self._sweep_later()
        now = asyncio.get_running_loop().time()
        for connection, _unused in list(self._open.values()):
            try:
                connection.cut_if_late(now)
            except Exception:
                logger.exception("connection not looked at")


def _too_many(most: int, where: str) -> Refusal:
    sentence = _("{most} connections are open {where}, which is the limit. Wait a few seconds and reload this page.")
    sentence = sentence.format(most=most, where=where)
    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too-many-connections", sentence, retry_after=5)
