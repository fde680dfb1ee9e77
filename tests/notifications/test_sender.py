"""The sender beside the controller: who is slow delays nobody else, and no failure, of a server or the database, ends or loses anything."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

import pytest
from django.db import OperationalError
from pytest_django.fixtures import Settings

from grid.database.trouble import TroubleLog
from grid.models import Delivery, User, WebhookTarget
from grid.notifications.channels import remove_target
from grid.notifications.deliveries import LEASE, record_result
from grid.notifications.letters import SENT, Payload, SendResult
from grid.notifications.sender import Mailer, Poster, Sender
from tests.controller.world import World, in_world
from tests.notifications.test_deliveries import EMAIL, ada, eve, mail_server, waiting
from tests.platformhealth.test_running import running
from tests.support.shop import NOW
from tests.support.virtual import cancelled, loop_time, passes, repeat, until

__all__ = ["ada", "eve", "mail_server"]  # fixtures

P = ParamSpec("P")
T = TypeVar("T")
pytestmark = pytest.mark.django_db


async def at_once(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    return work(*args, **kwargs)


class Outside(Mailer, Poster):
    """Mail and web servers; `takes` says in seconds how long each address takes, `answers` what becomes of it."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, str, UUID | str]] = []
        self.takes: dict[str, float] = {}
        self.answers: dict[str, SendResult | Exception] = {}

    async def send(self, address: str, payloads: Sequence[Payload], message: UUID) -> SendResult:
        return await self._take(address, message)

    async def post(self, url: str, secret: str, body: bytes, *, event: str, message: str) -> SendResult:
        return await self._take(url, message)

    async def _take(self, address: str, message: UUID | str) -> SendResult:
        self.seen.append((loop_time(), address, message))
        await asyncio.sleep(self.takes.get(address, 0.01))
        answer = self.answers.get(address, SENT)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        pass


def clock() -> datetime:
    return NOW + timedelta(seconds=loop_time())


def sender(outside: Outside, database: Any = at_once) -> Sender:
    troubles = TroubleLog(loop_time)
    return Sender(database, clock, troubles, random.Random(1), mailer=lambda: outside, poster=lambda: outside)


@asynccontextmanager
async def sending(outside: Outside, database: Any = at_once) -> AsyncIterator[None]:
    task = asyncio.create_task(repeat(sender(outside, database).periodic()))
    yield
    await cancelled(task)


async def sent_once(sender: Sender) -> None:
    await sender.run_once()
    await asyncio.gather(*sender._under_way.values())
    await sender.aclose()


def left() -> int:
    return Delivery.objects.filter(next_try_at__isnull=False).count()


@in_world
async def test_a_server_that_is_slow_delays_nobody_else(ada: User, eve: User) -> None:
    outside = Outside()
    outside.takes["https://slow.example.com/"] = 10
    for _ in range(5):
        waiting(eve)
        waiting(ada)
    waiting(ada, EMAIL)
    async with sending(outside):
        await until(lambda: not Delivery.objects.filter(user=ada, next_try_at__isnull=False).exists(), within=2)
        await until(lambda: left() == 0, within=60)
    slow = [at for at, address, _ in outside.seen if address == "https://slow.example.com/"]
    assert all(later - earlier > 9.99 for earlier, later in itertools.pairwise(slow)), "one at a time"
    assert len(outside.seen) == 11


@in_world
async def test_unforeseen_error_is_an_ordinary_failure(ada: User) -> None:
    outside = Outside()
    outside.answers["https://example.com/hook"] = ZeroDivisionError()
    waiting(ada)
    await sent_once(sender(outside))
    assert Delivery.objects.get().error == "It could not be sent; the controller’s log says why. Tell an admin."


@in_world
async def test_webhook_to_excluded_address_is_not_called(ada: User, settings: Settings) -> None:
    settings.EGRESS_EXCEPT = ["93.184.216.0/24"]
    WebhookTarget.objects.update(url="https://93.184.216.34/")
    waiting(ada)
    await sent_once(Sender(at_once, clock, TroubleLog(loop_time), random.Random(1)))
    assert "93.184.216.34 leads to a private or excepted address" in Delivery.objects.get().error


@in_world
async def test_delivery_killed_before_recording_repeats_with_same_id(ada: User) -> None:
    outside = Outside()
    waiting(ada)
    first = sender(outside)
    outside.takes["https://example.com/hook"] = 1
    await first.run_once()
    await passes(0.5)
    await first.aclose()
    assert left() == 1
    async with sending(outside):
        await passes(LEASE.total_seconds() - 10)
        assert len(outside.seen) == 1, "the first might still be at it"
        await until(lambda: left() == 0, within=20)
    assert len(outside.seen) == 2
    assert len({message for _, _, message in outside.seen}) == 1


@in_world
@pytest.mark.parametrize("sends", [0, 1], ids=["no statement works", "it was sent"])
async def test_database_outage_loses_and_repeats_nothing(ada: User, sends: int) -> None:
    outside, is_away = Outside(), True

    async def database(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if is_away and (work is record_result or not sends):
            raise OperationalError("the connection is lost")
        return work(*args, **kwargs)

    waiting(ada)
    async with sending(outside, database):
        await passes(60)
        assert (left(), len(outside.seen)) == (1, sends)
        is_away = False
        await until(lambda: left() == 0, within=60)
    assert len(outside.seen) == 1


@in_world
async def test_two_senders_send_it_once(ada: User, eve: User) -> None:
    outside = Outside()
    for _ in range(10):
        waiting(ada)
        waiting(eve)
        waiting(eve, EMAIL)
    async with sending(outside), sending(outside):
        await until(lambda: left() == 0, within=120)
    messages = [message for _, _, message in outside.seen]
    assert len(messages) == len(set(messages)) == 21


@in_world
async def test_the_controllers_own_loop_takes_what_is_due(ada: User) -> None:
    waiting(ada)
    remove_target(ada)
    async with running(World()):
        await until(lambda: left() == 0, within=5)
    assert Delivery.objects.get().error == "You have removed the webhook."
