"""A stage with notifications of every event, new and read, one of them as long and hostile as it can be."""

from datetime import timedelta

from asgiref.sync import sync_to_async
from django.utils import timezone

from grid.models import Notification, NotificationEvent, User
from grid.runtime.notified import notified
from tests.browser.server import Stage

LONG = (
    "Its pod is gone: its node was removed, or somebody deleted it. The project's files are kept; launch it again. " * 3
)


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
