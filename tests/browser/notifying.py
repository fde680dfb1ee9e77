"""A stage with notifications of every event, new and read, one of them as long and hostile as it can be."""

import asyncio
import random
import tempfile
import time
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

from aiohttp import web
from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone

from grid.core.egress import read_blocks
from grid.database.threads import background
from grid.database.trouble import TroubleLog
from grid.models import Notification, NotificationChoice, NotificationEvent, User, WebhookTarget
from grid.notifications.outbox import _Subject, _write
from grid.notifications.sender import Poster, Sender
from grid.runtime.written import notified
from tests.browser.server import Stage
from tests.support.http_server import certificate, serving
from tests.support.virtual import repeat

LONG = (
    "Its pod is gone: its node was removed, somebody deleted it, or the cluster was restored from a backup. "
    "The project's files are kept; launch it again. "
) * 3


async def notifications(stage: Stage) -> None:
    """Alice has some, and nobody else."""
    await sync_to_async(_notifications)()


async def none(stage: Stage) -> None:
    await Notification.objects.all().adelete()


def _notifications() -> None:
    Notification.objects.all().delete()
    alice, now = User.objects.get(username="alice"), timezone.now()
    for number, event in enumerate(NotificationEvent):
        Notification.objects.create(
            user=alice,
            event=event,
            title=f"Train model {number}",
            sentence="" if event is NotificationEvent.STARTED else "It ended with exit code 1. Look at its log.",
            path="/executions/abcdefghij/",
            at=now - timedelta(minutes=5 * number + 1),
            read_at=now if number > 2 else None,
        )
    Notification.objects.create(
        user=alice, event="failed", title="x" * 120, sentence=LONG, path="/help/", at=now - timedelta(hours=30)
    )


async def one_more(stage: Stage) -> None:
    """Alice gets another, and the pages are told: this server has no change feed."""
    alice = await User.objects.aget(username="alice")
    await Notification.objects.acreate(user=alice, event="failed", title="One more", sentence="No.", path="/help/")
    stage.runtime.hub.publish(notified(str(alice.pk)))


_SENDING = AsyncExitStack()
_BODIES: list[bytes] = []


async def sending(stage: Stage) -> str:
    """A server takes posts, and what a controller does with notifications is done; returns the server's address."""
    loopback, _ = read_blocks("", ["127.0.0.0/8", "::1/128"])
    tls = certificate(Path(tempfile.mkdtemp(dir=settings.VAR_DIR)))

    async def take(request: web.Request) -> web.StreamResponse:
        _BODIES.append(await request.read())
        return web.Response(status=500 if request.path == "/fails" else 204)

    server = await _SENDING.enter_async_context(serving(take, tls=tls.server))
    troubles = TroubleLog(time.monotonic)
    sender = Sender(
        background.run, timezone.now, troubles, random.Random(), poster=lambda: Poster(loopback, tls=tls.client)
    )
    task = asyncio.create_task(repeat(sender.periodic()))
    _SENDING.callback(task.cancel)
    return server.url.replace("127.0.0.1", "localhost")


async def posted(stage: Stage) -> list[str]:
    """Return the bodies of the posts so far."""
    return [body.decode() for body in _BODIES]


async def sends_no_more(stage: Stage) -> None:
    await _SENDING.aclose()
    _BODIES.clear()
    await WebhookTarget.objects.all().adelete()
    await NotificationChoice.objects.all().adelete()


async def fails(stage: Stage) -> None:
    """Something of Alice's fails, as far as those who are told are concerned."""
    await sync_to_async(_fails)()


def _fails() -> None:
    alice = User.objects.get(username="alice")
    _write(_Subject(alice, "Train model", "job", "/help/"), NotificationEvent.FAILED, "No.", timezone.now())
