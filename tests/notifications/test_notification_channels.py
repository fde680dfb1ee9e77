"""One's notifications on their page, live, and outside of the dashboard by channels; what operators write to owners of executions."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from pytest_django.fixtures import Settings

from dashboard.notifications import page as pages, views as views
from dashboard.notifications.page import PAGE_LENGTH
from dashboard.notifications.records import mark_read
from dashboard.notifications.viewmodel import NO_ADDRESS, NO_SERVER, NO_WEBHOOK, latest_words
from grid.core.wording import one_line
from grid.database.encryption import decrypt
from grid.models import AuditEntry, Delivery, Execution, Notification, NotificationChoice, State, User, WebhookTarget
from grid.notifications.channels import set_target
from grid.notifications.outbox import MESSAGE_LONGEST, message_sentence, send_message
from grid.runtime import Runtime
from grid.runtime.written import notified
from tests.conftest import People, client_of
from tests.executions.executing import make_execution, make_project
from tests.queue.test_at_once import at_once
from tests.shell.live import changed, connected
from tests.support.builders import MOMENT
from tests.support.database import database_on_file
from tests.support.golden import assert_golden

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
ACCOUNT, WEBHOOK, TEST = "/account/", "/account/webhook/", "/account/notifications/test/"
URL = "https://hooks.example.org/alice"
MINUTE = timedelta(minutes=1)
LIST, READ, CHOICES = "/notifications/", "/notifications/read/", "/account/notifications/"
HOSTILE = "</li><script>alert(1)</script>\u202egnp"
PATH = "/executions/message/"
TEXT = "Save your work"


def outcome_of_test(client: Client, channel: str) -> str:
    answer = client.post(TEST, {"channel": channel})
    assert answer["Location"] == "/account/#notifications"
    return client.get(ACCOUNT).content.decode()


def test_unconfigured_channel_cannot_be_chosen_and_says_why(people: People, settings: Settings) -> None:
    shown = page(people.owner, ACCOUNT)
    assert NO_SERVER in shown
    assert NO_WEBHOOK in shown
    assert "failed-email" not in shown
    assert "failed-webhook" not in shown
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.com", "grid@example.com"
    assert NO_ADDRESS in page(people.owner, ACCOUNT)
    people.owner.email = "alice@example.com"
    people.owner.save()
    set_target(people.owner, URL)
    shown = page(people.owner, ACCOUNT)
    assert "To alice@example.com." in shown
    assert f"Posted to {URL}." in shown
    assert 'value="failed-email" aria-label="E-mail, when it has failed" checked' in shown
    assert 'value="failed-webhook" aria-label="Webhook, when it has failed">' in shown


def test_channel_choice_survives_while_channel_is_unavailable(people: People) -> None:
    set_target(people.owner, URL)
    client = client_of(people.owner)
    client.post("/account/notifications/", {"choice": ["failed-in_page", "failed-webhook", "failed-email"]})
    chosen = NotificationChoice.objects.get(event="failed")
    assert (chosen.in_page, chosen.email, chosen.webhook) == (True, True, True), "e-mail is the default, and no column"
    client.post("/account/webhook/remove/")
    client.post("/account/notifications/", {"choice": []})
    chosen.refresh_from_db()
    assert (chosen.in_page, chosen.webhook) == (False, True)


def test_webhook_secret_is_shown_once_to_its_owner(people: People) -> None:
    client = client_of(people.owner)
    answer = client.post(WEBHOOK, {"url": URL})
    assert answer["Cache-Control"].count("no-store") == 1
    target = WebhookTarget.objects.get()
    assert (target.user, target.url) == (people.owner, URL)
    secret = decrypt(target.secret)
    assert secret in answer.content.decode()
    for path in (ACCOUNT, WEBHOOK):
        assert secret not in page(people.owner, path)
        assert URL not in page(people.teammate, path)
    client_of(people.teammate).post("/account/webhook/remove/")
    assert WebhookTarget.objects.exists()
    client.post("/account/webhook/remove/")
    assert not WebhookTarget.objects.exists()


@pytest.mark.parametrize("url", ["", "x" * 3000, "https://example.com/\x00"])
def test_unusable_webhook_address_is_refused_at_its_field(people: People, url: str) -> None:
    answer = client_of(people.owner).post(WEBHOOK, {"url": url})
    assert answer.status_code == 422
    assert "field-error" in answer.content.decode()
    assert not WebhookTarget.objects.exists()


def test_a_hostile_address_stays_text(people: People) -> None:
    hostile = 'https://example.com/"><script>alert(1)</script>'
    shown = client_of(people.owner).post(WEBHOOK, {"url": hostile}).content.decode()
    shown += page(people.owner, ACCOUNT) + page(people.owner, WEBHOOK)
    assert "<script>alert" not in shown


def test_a_test_that_no_controller_sends_says_so(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "WAIT_SECONDS", 0.1)
    set_target(people.owner, URL)
    shown = outcome_of_test(client_of(people.owner), "webhook")
    assert "The test was not sent within 0 seconds. Either no controller runs" in shown
    assert "The latest waits to be sent." in shown
    assert Delivery.objects.get().payload["event"] == "test"


DELIVERIES = {
    "sent": Delivery(sent_at=MOMENT - 3 * MINUTE),
    "given up": Delivery(next_try_at=None, error="It hangs."),
    "to be tried again": Delivery(next_try_at=MOMENT + 4 * MINUTE, error="It hangs."),
    "waiting": Delivery(next_try_at=MOMENT),
}


def test_latest_delivery_outcome_is_worded() -> None:
    words = "\n".join(f"{name}: {latest_words(delivery, MOMENT)}" for name, delivery in DELIVERIES.items())
    assert_golden("words-of-deliveries", words, ending="txt")


def test_only_operators_can_choose_alert_notifications(people: People) -> None:
    assert 'value="alert-in_page"' in page(people.operator, "/account/")
    assert 'value="alert-in_page"' not in page(people.owner, "/account/")
    client_of(people.owner).post("/account/notifications/", {"choice": []})
    assert not NotificationChoice.objects.filter(event="alert").exists()
    client_of(people.operator).post("/account/notifications/", {"choice": []})
    assert not NotificationChoice.objects.get(event="alert").in_page


def test_webhook_changes_are_audited_with_the_host_only(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "WAIT_SECONDS", 0.1)
    client = client_of(people.owner)
    AuditEntry.objects.all().delete()
    for url in ("hooks.example.org/T0/hush", "hooks.example.org/T1/hush", "other.example.org/?key=hush"):
        secret = client.post(WEBHOOK, {"url": f"https://{url}"}).context["secret"]
        assert secret not in str(list(AuditEntry.objects.values_list("changes", flat=True)))
    client.post(TEST, {"channel": "webhook"})
    for _ in range(2):
        client.post("/account/webhook/remove/")
    client.post(TEST, {"channel": "webhook"})
    entries = AuditEntry.objects.order_by("pk")
    assert list(entries.values_list("actor_name", "object_id")) == [("alice", str(people.owner.pk))] * 5
    assert list(entries.values_list("action", "changes")) == [
        ("changed", {"webhook": ["", "hooks.example.org"]}),
        ("changed", {"webhook": ["hooks.example.org", "hooks.example.org, a new secret"]}),
        ("changed", {"webhook": ["hooks.example.org", "other.example.org, a new secret"]}),
        ("sent", {"test": ["", "Webhook"]}),
        ("changed", {"webhook": ["other.example.org", ""]}),
    ]


def test_choices_of_notifications_leave_an_entry_of_what_changes(people: People) -> None:
    client = client_of(people.owner)
    AuditEntry.objects.all().delete()
    chosen = ["failed-in_page", "started-in_page"]
    for _ in range(2):
        client.post("/account/notifications/", {"choice": chosen})
    entry = AuditEntry.objects.get()
    before, after = entry.changes["notifications"]
    assert set(after) == {"In the dashboard, when it has failed", "In the dashboard, when it runs"}
    assert "In the dashboard, when it runs" not in before and len(before) > 2


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


@pytest.fixture
def four(people: People) -> list[Execution]:
    """Two of the owner's, one of the team-mate's, and one that has ended."""
    project = make_project(people.owner, people.teammate)
    return [
        make_execution(people.owner, project, title="Explore"),
        make_execution(people.owner, project, title="Train", requested_at=MOMENT + timedelta(seconds=1)),
        make_execution(people.teammate, project, title="theirs <b>"),
        make_execution(people.teammate, project, title="ended-run", state=State.SUCCEEDED),
    ]


def notified_people() -> list[tuple[str, str, str]]:
    rows = Notification.objects.filter(event="message").order_by("user__username")
    return list(rows.values_list("user__username", "title", "sentence"))


def ids(executions: list[Execution]) -> list[str]:
    return [execution.pk for execution in executions]


def test_sentence_names_the_first_ten_executions() -> None:
    assert message_sentence("Save!", ["a"]) == "Save! This is about a."
    assert message_sentence("Save", list("abcdefghijkl")).endswith("about a, b, c, d, e, f, g, h, i, j and 2 more.")
    assert one_line(" Save\n\0it  now ") == "Save it now"


def test_owners_get_one_notification_and_audit_log_an_entry(people: People, four: list[Execution]) -> None:
    client = client_of(people.operator)
    page = client.get(PATH, {"id": ids(four)}).content.decode()
    assert "Write to the owners of 3 executions?" in page
    assert "It has already ended." in page
    assert "theirs &lt;b&gt;" in page
    for _ in range(2):
        assert client.post(PATH, {"id": ids(four), "reason": TEXT}).status_code == 302
    title = f"Message from {people.operator.username}"
    assert notified_people() == [
        (people.owner.username, title, "Save your work. This is about Explore and Train."),
        (people.teammate.username, title, "Save your work. This is about theirs <b>."),
    ], "a form that is sent twice is one message"
    entry = AuditEntry.objects.get(object_type="message")
    assert (entry.actor_name, entry.action, entry.object_name) == (people.operator.username, "sent", TEXT)
    assert sorted(entry.changes["executions"][1]) == sorted(ids(four[:3]))


@pytest.mark.parametrize("text", ["", " \n", "x" * (MESSAGE_LONGEST + 1)])
def test_empty_or_overlong_text_is_asked_for_again(people: People, four: list[Execution], text: str) -> None:
    answer = client_of(people.operator).post(PATH, {"id": ids(four), "reason": text})
    assert "Write a text of at most 300 characters." in answer.content.decode()
    assert notified_people() == []


def test_simultaneous_messages_are_one_for_ten_minutes(people: People, four: list[Execution], tmp_path: Path) -> None:
    def send(minutes: int = 0) -> Callable[[], int]:
        at = MOMENT + timedelta(minutes=minutes)
        return lambda: send_message(ids(four), TEXT, by=people.operator, now=at)

    with database_on_file(tmp_path / "grid.sqlite3"):
        at_once(send(), send(), send())
        assert len(notified_people()) == 2
        assert send(11)() == 2
