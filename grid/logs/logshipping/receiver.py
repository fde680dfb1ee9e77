"""Posts lines to the receiver that the settings name. Its credential stands in a header, and nowhere else."""

import asyncio
import io
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import aiohttp
from django.conf import settings
from yarl import URL

from grid.core.egress import Block, read_blocks
from grid.core.translation import gettext as _
from grid.edge.guarded_connector import GuardedConnector
from grid.edge.refusals import cleaned
from grid.logs.logshipping.encoding import PATH, Verdict, encode, judge
from grid.logs.logshipping.lines import Portion

SECONDS = 15.0  # for all of a request
_LONGEST_ANSWER = 65536
_HIDDEN = "(hidden)"
# The address is the installation's own setting and mostly a private one, so only what hands out a machine's credentials is barred.
ANYWHERE = read_blocks("", ["0.0.0.0/0", "::/0"])[0]


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """Where lines go: `authorization` is the value of that header, a secret."""

    url: str
    authorization: str = field(default="", repr=False)
    tenant: str = ""
    authorities: str = ""

    @property
    def name(self) -> str:
        return _("Log receiver at {host}", host=URL(self.url).host)


def configured() -> ReceiverSettings | None:
    """Return what the settings name; None where executions' logs stay here."""
    if not settings.LOG_RECEIVER_URL:
        return None
    return ReceiverSettings(
        url=settings.LOG_RECEIVER_URL,
        authorization=settings.LOG_RECEIVER_AUTHORIZATION,
        tenant=settings.LOG_RECEIVER_TENANT,
        authorities=settings.LOG_RECEIVER_AUTHORITIES,
    )


class LogReceiver:
    """Posts; `close` it."""

    def __init__(
        self, receiver: ReceiverSettings, allowed: Iterable[Block] = ANYWHERE, *, seconds: float = SECONDS
    ) -> None:
        self.name = receiver.name
        self._receiver = receiver
        self._seconds = seconds
        self._tls: ssl.SSLContext | bool = True
        self._problem = ""
        if receiver.authorities:
            try:
                self._tls = ssl.create_default_context(cafile=receiver.authorities)
            except OSError as error:  # executions are worth more than their logs
                self._problem = _("GRID_LOG_RECEIVER_AUTHORITIES cannot be read ({error})", error=type(error).__name__)
        self._connections = GuardedConnector(allowed, name="log receiver")

    def close(self) -> None:
        self._connections.close()

    async def post(self, portions: Sequence[Portion], now: datetime) -> Verdict:
        """Post the lines and return what became of them."""
        receiver = self._receiver
        if self._problem:
            return Verdict("again", why=self._problem)
        # In a thread: a megabyte takes tens of milliseconds to encode, and the loop moves executions on.
        body = await asyncio.to_thread(encode, portions, now)
        headers = {"Content-Type": "application/json", "User-Agent": "compute-grid"}
        if receiver.authorization:
            headers["Authorization"] = receiver.authorization
        if receiver.tenant:
            headers["X-Scope-OrgID"] = receiver.tenant
        url, permitted = receiver.url.rstrip("/") + PATH, list[bool]()
        try:
            async with (
                asyncio.timeout(self._seconds),
                aiohttp.ClientSession(connector=self._connections.connector(permitted)) as session,
                session.post(
                    URL(url, encoded=True),
                    data=io.BytesIO(body),  # written in parts, between which others run
                    headers=headers,
                    allow_redirects=False,
                    ssl=self._tls,
                ) as answer,
            ):
                text = await answer.content.read(_LONGEST_ANSWER)
                while len(text) < _LONGEST_ANSWER and (more := await answer.content.read(_LONGEST_ANSWER - len(text))):
                    text += more
                status, retry_after = answer.status, answer.headers.get("Retry-After", "")
        except TimeoutError:
            return Verdict("again", why=_("no answer within {seconds:.0f} s", seconds=self._seconds))
        except aiohttp.ClientConnectorCertificateError:
            return Verdict("again", why=_("its certificate is not valid: see GRID_LOG_RECEIVER_AUTHORITIES"))
        except aiohttp.ClientConnectorDNSError:
            return Verdict("again", why=_("its name leads to no address"))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if permitted and not any(permitted):
                return Verdict("again", why=_("its name leads to an address that may not be called"))
            return Verdict("again", why=_("it cannot be reached ({error})", error=type(error).__name__))
        lines = sum(len(portion.lines) for portion in portions)
        return self._without_secrets(judge(status, text, retry_after, lines=lines))

    def _without_secrets(self, verdict: Verdict) -> Verdict:
        """Return the verdict with words that may be shown: a receiver may send back what it was sent. They are cut last, so that no part
        of the credential is left at their end."""
        why = verdict.why
        for secret in (self._receiver.authorization, self._receiver.authorization.rpartition(" ")[2]):
            why = why.replace(secret, _HIDDEN) if secret else why
        return Verdict(verdict.result, verdict.refused, cleaned(why, 240), verdict.wait)
