"""One's notifications: on their page, as a number in the frame, and live; nobody sees or changes another's."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dashboard.notifications import page as pages
from dashboard.notifications.page import PAGE_LENGTH
from dashboard.notifications.records import mark_read
from grid.models import Notification, NotificationChoice, User
from grid.runtime import Runtime
from grid.runtime.written import notified
from tests.conftest import People
from tests.shell.browsing import client_of
from tests.shell.live import changed, connected
from tests.support.builders import MOMENT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
LIST, READ, CHOICES = "/notifications/", "/notifications/read/", "/account/notifications/"
HOSTILE = "</li><script>alert(1)</script>\u202egnp"


def tell(user: User, title: str = "Train", *, minutes: int = 0, **columns: Any) -> Notification:
    columns = {"event": "failed", "sentence": "It ended with exit code 1.", "path": "/executions/abc/"} | columns
    return Notification.objects.create(user=user, title=title, at=MOMENT + timedelta(minutes=minutes), **columns)


def page(user: User, path: str = LIST) -> str:
    return client_of(user).get(path).content.decode()


def unread(user: User) -> int:
    return Notification.objects.filter(user=user, read_at__isnull=True).count()


def test_list_has_only_own_notifications_with_newest_first(people: People) -> None:
    tell(people.owner, "Older")
    tell(people.owner, HOSTILE, minutes=1, sentence=HOSTILE)
    tell(people.teammate, "Of somebody else")
    shown = page(people.owner)
    assert "<script>alert" not in shown
    assert shown.index("&lt;script&gt;alert(1)") < shown.index("Older")
    assert "Of somebody else" not in shown
    assert "2 unread notifications." in shown
    assert 'href="/executions/abc/"' in shown


def test_single_and_all_notifications_can_be_marked_read(people: People) -> None:
    first, _, _ = (tell(people.owner) for _ in range(3))
    client = client_of(people.owner)
    client.post(READ, {"notification": first.pk})
    assert unread(people.owner) == 2
    client.post(READ, {"notification": "all"})
    assert unread(people.owner) == 0
    assert "Everything is read." in page(people.owner)


def test_nobody_marks_anothers_as_read(people: People) -> None:
    row = tell(people.owner)
    for other in (people.teammate, people.stranger, people.operator, people.admin):
        client_of(other).post(READ, {"notification": row.pk})
        client_of(other).post(READ, {"notification": "all"})
    assert unread(people.owner) == 1


def test_a_long_list_has_pages(people: People) -> None:
    for number in range(PAGE_LENGTH + 1):
        tell(people.owner, f"Number {number}.", minutes=number)
    assert "Number 0." not in page(people.owner)
    assert 'href="?page=2"' in page(people.owner)
    assert "Number 0." in page(people.owner, f"{LIST}?page=2")
    for odd in ("0", "-3", "x", "9" * 40):
        assert "Number 50." in page(people.owner, f"{LIST}?page={odd}")


def test_page_frame_has_number_of_unread_notifications(people: People) -> None:
    assert "bell-count" not in page(people.owner, "/help/")
    tell(people.owner)
    tell(people.teammate)
    assert page(people.owner, "/help/").count("Notifications, 1 unread") == 4  # tooltip and name of two bells
    mark_read(people.owner.pk)
    assert "bell-count" not in page(people.owner, "/help/")


def test_the_account_shows_the_choices_and_stores_them(people: People) -> None:
    box = '<input type="checkbox" name="choice" value="{}" aria-label="{}"{}>'
    failed = ("failed-in_page", "In the dashboard, when it has failed")
    started = ("started-in_page", "In the dashboard, when it runs")
    shown = page(people.owner, "/account/")
    assert box.format(*failed, " checked") in shown
    assert box.format(*started, "") in shown
    client_of(people.owner).post(CHOICES, {"choice": ["started-in_page", "no-such"]})
    shown = page(people.owner, "/account/")
    assert box.format(*failed, "") in shown
    assert box.format(*started, " checked") in shown
    assert not NotificationChoice.objects.exclude(user=people.owner).exists()
    # The page has no column for what is not offered: nobody has chosen to do without it.
    assert NotificationChoice.objects.get(event="failed").email is True


@pytest.mark.asyncio
async def test_notification_changes_the_bell(runtime: Runtime, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "REST_SECONDS", 0.01)
    async with connected("/live/home/", people.owner) as socket:
        await socket.message()
        await asyncio.sleep(0.2)
        await sync_to_async(tell)(people.owner, HOSTILE)
        runtime.hub.publish(notified(str(people.owner.pk)))
        message = await socket.message_about("bell")
        assert [id for id, _ in changed(message)] == ["bell", "bell-small", "toast"]
        assert "Notifications, 1 unread" in message
        assert "<script>alert" not in message
        await sync_to_async(mark_read)(people.owner.pk)
        runtime.hub.publish(notified(str(people.owner.pk)))
        message = await socket.message_about("bell")
        assert [id for id, _ in changed(message)] == ["bell", "bell-small"], "what was read is no news"


@pytest.mark.asyncio
async def test_open_list_shows_new_notifications_and_remote_reads(runtime: Runtime, people: People) -> None:
    old = await sync_to_async(tell)(people.owner, "Old")
    async with connected("/live/notifications/", people.owner) as socket:
        await socket.message_about("Old")
        new = await sync_to_async(tell)(people.owner, HOSTILE, minutes=1)
        runtime.hub.publish(notified(str(people.owner.pk)))
        message = await socket.message_about(f"notification-{new.pk}")
        assert ("notifications", "afterbegin") in changed(message), "it is the first"
        assert "2 unread notifications." in message
        assert "<script>alert" not in message
        await sync_to_async(mark_read)(people.owner.pk, [old.pk])
        runtime.hub.publish(notified(str(people.owner.pk)))
        message = await socket.message_about(f"notification-{old.pk}")
        assert "1 unread notification." in message
