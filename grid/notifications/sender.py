"""Sends what leaves the page, as a task of the leading controller for which nothing waits.

Several messages are under way at once, one of a person's through each channel, so a server that is slow delays nobody else.
"""

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from django.conf import settings

from grid.core.backoff import Backoff
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.database.trouble import TroubleLog
from grid.database.turns import PersonTurns
from grid.models import Delivery
from grid.notifications.channels import callable_blocks
from grid.notifications.deliveries import Parcel, record_result, take_due
from grid.notifications.letters import Payload, SendResult, webhook_body
from grid.notifications.mail import Mailer
from grid.notifications.webhook import Poster

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
PAUSE_SECONDS = 0.25  # between two looks however much there is: others need the database too
# Messages that are under way at once.
ROOM: Mapping[str, int] = {Delivery.Channel.EMAIL: 4, Delivery.Channel.WEBHOOK: 20}


class MailsOut(Protocol):
    """Sends mail, as `mail.Mailer` does."""

    def send(self, address: str, payloads: Sequence[Payload], message: UUID) -> Awaitable[SendResult]: ...

    def close(self) -> None: ...


class PostsOut(Protocol):
    """Posts, as `webhook.Poster` does."""

    def post(self, url: str, secret: str, body: bytes, *, event: str, message: str) -> Awaitable[SendResult]: ...

    def close(self) -> None: ...


class Sender:
    """Sends what is due; `aclose` it afterwards."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        troubles: TroubleLog,
        rng: random.Random,
        *,
        mailer: Callable[[], MailsOut] = Mailer,
        poster: Callable[[], PostsOut] = lambda: Poster(*callable_blocks()),
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
        return PeriodicTask("notifications", LOOK_SECONDS, self.run_once, woken_by=self._has_ended, within=within)

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
                logger.info(
                    "notification not sent channel=%s user=%s reason=%s", parcel.channel, parcel.user_id, result.error
                )
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
            payload, message = parcel.payloads[0], parcel.message
            body = webhook_body(payload, message, settings.DASHBOARD_ORIGIN)
            event = str(payload["event"])
            return await self._poster.post(parcel.address, parcel.secret, body, event=event, message=str(message))
        except Exception as error:
            logger.exception("notification not sent channel=%s user=%s", parcel.channel, parcel.user_id)
            return SendResult(_("It could not be sent ({error}).", error=type(error).__name__))

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
