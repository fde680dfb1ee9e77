"""Sends what leaves the page, as a task of the leading controller for which nothing waits.

Several messages are under way at once, one of a person's through each channel, so a server that is slow delays nobody else.
"""

import asyncio
import contextlib
import functools
import hashlib
import hmac
import logging
import random
import smtplib
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from uuid import UUID

import aiohttp
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email
from yarl import URL

from grid.core.backoff import Backoff
from grid.core.egress import Block
from grid.core.errors import why_unreached
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.database.trouble import TroubleLog
from grid.database.turns import PersonTurns
from grid.edge.guarded_connector import GuardedConnector
from grid.models import Delivery
from grid.notifications.channels import callable_blocks
from grid.notifications.deliveries import Parcel, due_deliveries, record_result, take_due
from grid.notifications.letters import SENT, Payload, SendResult, mail_text, subject, webhook_body

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
PAUSE_SECONDS = 0.25  # between two looks however much there is: others need the database too
# Messages that are under way at once.
ROOM: Mapping[str, int] = {Delivery.Channel.EMAIL: 4, Delivery.Channel.WEBHOOK: 20}
AT_ONCE = 4
MAIL_SECONDS = 60.0  # for all of one mail; each step of the conversation has EMAIL_TIMEOUT
POST_SECONDS = 10.0  # for all of one post
SIGNATURE = "X-Hub-Signature-256"  # as GitHub signs, so that receivers and libraries know it
_GONE = 410
_NO_LOGIN = _("The mail server does not accept the name and password of this installation. Tell an admin.")
_NO_TLS = _("The mail server offers no TLS or no login, which this installation asks for. Tell an admin.")
_UNUSABLE = SendResult(_("The mail server takes no mail for this address. Correct it on your account."), True)


class Mailer:
    def __init__(self, *, seconds: float = MAIL_SECONDS) -> None:
        # Of its own: an SMTP server may take its time.
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mail")
        self._seconds = seconds

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def send(self, address: str, payloads: Sequence[Payload], message: UUID) -> SendResult:
        """Send one mail that tells all of these, and return what became of it."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds):
                return await loop.run_in_executor(self._threads, send, address, payloads, message)
        except TimeoutError:
            return SendResult(_("The mail server did not answer in time."))


def send(address: str, payloads: Sequence[Payload], message: UUID) -> SendResult:
    """Send one mail; the id of a repeated one is the same, so that readers of mail can tell."""
    try:
        validate_email(address)
    except ValidationError:
        return _UNUSABLE
    host = settings.DASHBOARD_ORIGIN.partition("://")[2].partition(":")[0]
    connection = get_connection()
    mail = EmailMessage(
        subject(payloads),
        mail_text(payloads, settings.DASHBOARD_ORIGIN),
        to=[address],
        connection=connection,
        headers={"Message-ID": f"<{message}@{host}>", "Auto-Submitted": "auto-generated"},
    )
    try:
        mail.send()
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        return _UNUSABLE if all(code >= 500 for code in codes) else SendResult(_("The mail server refused it for now."))
    except smtplib.SMTPAuthenticationError:
        return SendResult(_NO_LOGIN)
    except smtplib.SMTPResponseException as error:
        return SendResult(_("The mail server refused it ({code}). Tell an admin.", code=error.smtp_code))
    except smtplib.SMTPNotSupportedError:
        return SendResult(_NO_TLS)
    except OSError as error:  # SMTPException is one
        return SendResult(_("The mail server cannot be reached: {why}. Tell an admin.", why=why_unreached(error)))
    except ValueError:  # of a sender that is no address, or a password that SMTP cannot carry
        return SendResult(_("The sender or password in the settings for e-mail cannot be used. Tell an admin."))
    finally:
        connection.close()
    return SENT


class Poster:
    """Posts from inside our network to what a person has typed: private addresses only when `allowed`, public ones unless `denied`. No
    redirect is followed, and of an answer only its status is told. `close` it; `tls` is a test's own authority."""

    def __init__(
        self,
        allowed: Iterable[Block],
        denied: Iterable[Block] = (),
        *,
        tls: ssl.SSLContext | None = None,
        seconds: float = POST_SECONDS,
    ) -> None:
        self._connections = GuardedConnector(allowed, denied, name="webhook")
        self._tls = tls
        self._seconds = seconds

    def close(self) -> None:
        self._connections.close()

    async def post(self, url: str, secret: str, body: bytes, *, event: str, message: str) -> SendResult:
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
            late = _("{host} did not answer within {seconds:.0f} seconds.", host=host, seconds=self._seconds)
            return SendResult(late)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if permitted and not any(permitted):
                private = _("{host} leads to a private or excepted address: ask an admin to allow it.", host=host)
                return SendResult(private, True)
            return SendResult(_("{host} cannot be reached: {why}.", host=host, why=why_unreached(error)))
        return _result(host, status)


def _result(host: str, status: int) -> SendResult:
    if 200 <= status < 300:
        return SENT
    if 300 <= status < 400:
        redirects = _("{host} redirects ({status}), which is not followed. Enter the address that it leads to.")
        return SendResult(redirects.format(host=host, status=status), True)
    return SendResult(_("{host} answered with status {status}.", host=host, status=status), status == _GONE)


def signature(secret: str, body: bytes) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


class Sender:
    """Sends what is due; `aclose` it afterwards."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        troubles: TroubleLog,
        rng: random.Random,
        *,
        mailer: Callable[[], Mailer] = Mailer,
        poster: Callable[[], Poster] = lambda: Poster(*callable_blocks()),
    ) -> None:
        self._database = database
        self._clock = clock
        self._troubles = troubles
        self._rng = rng
        self._mailer = mailer()
        self._poster = poster()
        self._under_way: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._turns = {channel: PersonTurns[int]() for channel in ROOM}
        self._has_ended = asyncio.Event()

    def periodic(self) -> PeriodicTask:
        """Return the task, which also runs as soon as there is room again."""
        within = functools.partial(contextlib.aclosing, self)
        return PeriodicTask(
            "notifications", LOOK_SECONDS, self.run_once, woken_by=self._has_ended, within=within, work=due_deliveries
        )

    async def run_once(self) -> None:
        """Begin to send what is due and has room, and let others have the database."""
        for channel, room in ROOM.items():
            busy = [user for name, user in self._under_way if name == channel]
            if len(busy) >= room:
                continue
            parcels = await self._database(
                take_due, channel, busy=busy, at_most=room - len(busy), now=self._clock(), turns=self._turns[channel]
            )
            for parcel in parcels:
                self._under_way[channel, parcel.user_id] = asyncio.create_task(self._deliver(parcel))
        await asyncio.sleep(PAUSE_SECONDS)

    async def aclose(self) -> None:
        """Leave what is under way to the next sender."""
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        self._mailer.close()
        self._poster.close()

    async def _deliver(self, parcel: Parcel) -> None:
        try:
            result = await self._send(parcel)
            if not result.is_sent:
                about = (parcel.channel, parcel.user_id, result.error)
                logger.info("notification not sent channel=%s user=%s reason=%s", *about)
            await self._record(parcel, result)
        finally:
            del self._under_way[parcel.channel, parcel.user_id]
            self._has_ended.set()

    async def _send(self, parcel: Parcel) -> SendResult:
        if parcel.problem is not None:
            return parcel.problem
        try:
            if parcel.channel == Delivery.Channel.EMAIL:
                return await self._mailer.send(parcel.address, parcel.payloads, parcel.message)
            payload = parcel.payloads[0]
            body = webhook_body(payload, parcel.message, settings.DASHBOARD_ORIGIN)
            about = {"event": str(payload["event"]), "message": str(parcel.message)}
            return await self._poster.post(parcel.address, parcel.secret, body, **about)
        except Exception:
            logger.exception("notification not sent channel=%s user=%s", parcel.channel, parcel.user_id)
            return SendResult(_("It could not be sent; the controller’s log says why. Tell an admin."))

    async def _record(self, parcel: Parcel, result: SendResult) -> None:
        """Record the result; what was sent is recorded however long the database is away, or it would be sent again."""
        backoff = Backoff(rng=self._rng)
        while True:
            try:
                await self._database(record_result, parcel, result, now=self._clock())
            except Exception as error:
                if not self._troubles.handles(error):
                    logger.exception("not recorded whether a notification was sent")
                await asyncio.sleep(backoff.next())
            else:
                return
