"""Posts to an address that a person has typed, from inside our network: so nothing private is reached, and of an answer only its status
is told. No redirect is followed."""

import asyncio
import hashlib
import hmac
import ssl
from collections.abc import Iterable

import aiohttp
from yarl import URL

from grid.core.egress import Block
from grid.core.translation import gettext as _
from grid.edge.guarded_connector import GuardedConnector
from grid.notifications.letters import SENT, SendResult

SECONDS = 10.0  # for all of it
SIGNATURE = "X-Hub-Signature-256"  # as GitHub signs, so that receivers and libraries know it
_GONE = 410


def signature(secret: str, body: bytes) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


class Poster:
    """Posts; `close` it. Private addresses are called when `allowed`, public ones unless `denied`; `tls` is a test's own authority."""

    def __init__(
        self,
        allowed: Iterable[Block],
        denied: Iterable[Block] = (),
        *,
        tls: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self._connections = GuardedConnector(allowed, denied, name="webhook")
        self._tls = tls
        self._seconds = seconds

    def close(self) -> None:
        self._connections.close()

    async def post(self, url: str, secret: str, body: bytes, *, event: str, message: str) -> SendResult:
        """Post the body and return what became of it."""
        permitted: list[bool] = []  # of the addresses that the name leads to
        host = URL(url).host or ""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "compute-grid",
            "X-Compute-Grid-Event": event,
            "X-Compute-Grid-Delivery": message,
            SIGNATURE: signature(secret, body),
        }
        connector = self._connections.connector(permitted)
        try:
            async with asyncio.timeout(self._seconds), aiohttp.ClientSession(connector=connector) as session:
                request = session.post(url, data=body, headers=headers, allow_redirects=False, ssl=self._tls or True)
                async with request as answer:
                    status = answer.status
        except TimeoutError:
            return SendResult(
                _("{host} did not answer within {seconds:.0f} seconds.", host=host, seconds=self._seconds)
            )
        except aiohttp.ClientConnectorCertificateError:
            return SendResult(_("The certificate of {host} is not valid.", host=host))
        except aiohttp.ClientConnectorDNSError:
            return SendResult(_("The name {host} leads to no address.", host=host))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if permitted and not any(permitted):
                return SendResult(
                    _("{host} leads to a private or excepted address: ask an admin to allow it.", host=host), True
                )
            return SendResult(_("{host} cannot be reached ({error}).", host=host, error=type(error).__name__))
        return _result(host, status)


def _result(host: str, status: int) -> SendResult:
    if 200 <= status < 300:
        return SENT
    if 300 <= status < 400:
        return SendResult(
            _(
                "{host} redirects ({status}), which is not followed. Enter the address that it leads to.",
                host=host,
                status=status,
            ),
            True,
        )
    return SendResult(_("{host} answered with status {status}.", host=host, status=status), status == _GONE)
