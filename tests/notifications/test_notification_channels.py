"""Where one is told outside of the dashboard: what can be chosen, a webhook whose secret is shown once, tests that say what happened."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from dashboard.notifications import views as views
from dashboard.notifications.viewmodel import NO_ADDRESS, NO_SERVER, NO_WEBHOOK, latest_words
from grid.database.encryption import decrypt
from grid.models import AuditEntry, Delivery, NotificationChoice, WebhookTarget
from grid.notifications.channels import set_target
from tests.conftest import People, client_of
from tests.notifications.test_notifications_pages import page
from tests.support.builders import MOMENT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
ACCOUNT, WEBHOOK, TEST = "/account/", "/account/webhook/", "/account/notifications/test/"
URL = "https://hooks.example.org/alice"
MINUTE = timedelta(minutes=1)


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


@pytest.mark.parametrize(
    ("delivery", "words"),
    [
        (Delivery(sent_at=MOMENT - 3 * MINUTE), "The latest was sent 3 minutes ago."),
        (Delivery(next_try_at=None, error="It hangs."), "The latest was given up. It hangs."),
        (
            Delivery(next_try_at=MOMENT + 4 * MINUTE, error="It hangs."),
            "The latest was not sent yet. It hangs. It is tried again in 4 minutes.",
        ),
        (Delivery(next_try_at=MOMENT), "The latest waits to be sent."),
    ],
)
def test_latest_delivery_outcome_is_worded(delivery: Delivery, words: str) -> None:
    assert latest_words(delivery, MOMENT) == words


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
