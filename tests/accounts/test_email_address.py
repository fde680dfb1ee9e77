"""A new e-mail address is used once its owner has followed the link in the letter to it, and the one in use is told."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from grid.models import AuditEntry, Delivery, EmailChange, User
from grid.notifications import channels
from grid.notifications.deliveries import record_result, take_due
from grid.notifications.sender import send
from tests.conftest import People, client_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime", "mail_server")]
OLD, NEW = "alice@old.example", "alice@new.example"
CONFIRM = "/account/email/confirm/"


@pytest.fixture
def mail_server(settings: Settings) -> None:
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.com", "grid@example.com"


@pytest.fixture
def alice(people: People) -> Client:
    User.objects.filter(pk=people.owner.pk).update(email=OLD)
    return client_of(people.owner)


def ask(client: Client, address: str = NEW) -> str:
    return client.post("/account/", {"name": "", "email": address}, follow=True).content.decode()


def letters(now: datetime | None = None) -> dict[str, Any]:
    """Send what is due, as the controller does; return the letters that arrived by their address."""
    mail.outbox.clear()
    at = now or timezone.now()
    while parcels := take_due("email", busy=(), at_most=9, now=at):
        for parcel in parcels:
            result = parcel.problem or send(parcel.address, parcel.payloads, parcel.message)
            record_result(parcel, result, now=at)
    return {letter.to[0]: letter for letter in mail.outbox}


def link_in(letter: Any) -> str:
    [path] = re.findall(r"/account/email/\d+/[0-9a-f]{64}/", letter.body)
    return str(path)


def address_of(people: People) -> str:
    return User.objects.get(pk=people.owner.pk).email


def test_address_is_used_only_after_its_link_was_followed(people: People, alice: Client) -> None:
    assert "A link was sent to alice@new.example." in ask(alice)
    page = alice.get("/account/").content.decode()
    assert "waits to be confirmed" in page and f"Until then {OLD} stays in use." in page
    sent = letters()
    assert set(sent) == {OLD, NEW}
    assert "Another e-mail address was asked for" in sent[OLD].subject
    assert NEW not in sent[OLD].body and "/account/email/" not in sent[OLD].body
    link = link_in(sent[NEW])
    answer = alice.get(link)
    assert (answer.status_code, answer["Location"]) == (302, CONFIRM), "the token is in no address that is shown"
    shown = alice.get(CONFIRM)
    assert NEW in shown.content.decode() and link not in shown.content.decode()
    assert address_of(people) == OLD, "looking at a link uses nothing"
    assert alice.post(CONFIRM)["Location"] == "/account/"
    assert address_of(people) == NEW
    assert "Your e-mail address was changed" in letters()[OLD].subject
    assert [entry.changes for entry in AuditEntry.objects.filter(object_type="user").order_by("pk")] == [
        {"new_email": ["", NEW]},
        {"email": [OLD, NEW]},
    ]


def test_link_works_once_and_no_stored_row_holds_it(people: People, alice: Client) -> None:
    ask(alice)
    link = link_in(letters()[NEW])
    assert link not in str(list(Delivery.objects.values_list("payload", flat=True)))
    assert link.split("/")[-2] not in str(EmailChange.objects.values())
    alice.get(link)
    alice.post(CONFIRM)
    assert alice.get(link).status_code == 410
    assert alice.post(CONFIRM).status_code == 410


def test_only_the_person_who_asked_can_confirm(people: People, alice: Client) -> None:
    ask(alice)
    link = link_in(letters()[NEW])
    stranger = client_of(people.stranger)
    stranger.get(link)
    for answer in (stranger.get(CONFIRM), stranger.post(CONFIRM)):
        assert answer.status_code == 403
        assert "alice" not in answer.content.decode()
    visitor = Client()
    assert visitor.get(link)["Location"] == CONFIRM
    assert visitor.get(CONFIRM)["Location"] == f"/login/?next={CONFIRM}"
    visitor.post("/login/", {"username": "alice", "password": "alice-password"})
    assert visitor.post(CONFIRM)["Location"] == "/account/", "a browser that logs in later keeps the link"
    assert address_of(people) == NEW


@pytest.mark.parametrize("path", ["", "0" * 64 + "/", "x/"])
def test_unsent_email_link_is_gone_and_leaves_no_session(people: People, alice: Client, path: str) -> None:
    visitor = Client()
    for id in (people.owner.pk, 9**9, 10**40):
        assert visitor.get(f"/account/email/{id}/{path or '-/'}").status_code == 410
    assert not visitor.cookies


def test_email_link_ends_by_newer_link_cancellation_or_age(people: People, alice: Client) -> None:
    ask(alice)
    first = link_in(letters()[NEW])
    alice.post("/account/email/send-again/")
    second = link_in(letters()[NEW])
    assert first != second
    assert [alice.get(link).status_code for link in (first, second)] == [410, 302]
    EmailChange.objects.update(asked_at=timezone.now() - timedelta(days=3))
    assert alice.get(second).status_code == 410
    assert alice.post(CONFIRM).status_code == 410
    assert "Its link is too old." in alice.get("/account/").content.decode()
    alice.post("/account/email/send-again/")
    third = link_in(letters()[NEW])
    alice.post("/account/email/cancel/")
    assert alice.get(third).status_code == 410
    assert address_of(people) == OLD
    assert "waits to be confirmed" not in alice.get("/account/").content.decode()


def test_email_link_ends_with_closed_account_or_new_password(people: People, alice: Client) -> None:
    ask(alice)
    link = link_in(letters()[NEW])
    User.objects.filter(pk=people.owner.pk).update(is_active=False)
    assert Client().get(link).status_code == 410
    User.objects.filter(pk=people.owner.pk).update(is_active=True)
    new = "a new and long password"
    form = {"old_password": "alice-password", "new_password1": new, "new_password2": new}
    assert alice.post("/account/password/", form).status_code == 302
    assert Client().get(link).status_code == 410
    assert not EmailChange.objects.exists()


def test_address_of_another_account_is_answered_like_any_other(people: People, alice: Client) -> None:
    """Addresses are not unique: nobody learns from an answer, or from its letters, whether one is known here."""
    User.objects.filter(pk=people.stranger.pk).update(email=NEW)
    known, sent = ask(alice), letters()
    EmailChange.objects.all().delete()
    other = ask(alice, "free@new.example")
    assert known.count("A link was sent to") == other.count("A link was sent to") == 1
    alice.get(link_in(letters()["free@new.example"]))
    assert alice.post(CONFIRM).status_code == 302
    assert set(sent) == {OLD, NEW}
    assert User.objects.get(pk=people.stranger.pk).email == NEW


def test_letters_to_strangers_are_bounded(people: People, alice: Client) -> None:
    for number in range(channels.MOST_LETTERS):
        ask(alice, f"victim{number}@new.example")
    answer = alice.post("/account/", {"name": "Kept?", "email": "victim9@new.example"})
    assert answer.status_code == 422
    assert "Wait a little." in answer.content.decode()
    assert User.objects.get(pk=people.owner.pk).get_full_name() == "", "a refused form stores nothing"
    page = alice.post("/account/email/send-again/", follow=True).content.decode()
    assert "Wait a little." in page
    assert Delivery.objects.filter(payload__event="confirm_address").count() == channels.MOST_LETTERS


def test_a_removed_address_is_gone_at_once_and_told(people: People, alice: Client) -> None:
    ask(alice)
    letters()
    ask(alice, "")
    assert (address_of(people), EmailChange.objects.count()) == ("", 0)
    assert "Your e-mail address was removed" in letters()[OLD].subject


def test_address_typed_by_admin_is_confirmed_by_its_owner(people: People, alice: Client, admin: Client) -> None:
    form = {"username": "alice", "email": NEW, "is_active": "on", "is_staff": "on"}
    form |= {"date_joined_0": "2026-03-04", "date_joined_1": "09:00:00"}
    assert admin.post(f"/admin/grid/user/{people.owner.pk}/change/", form).status_code == 302
    assert address_of(people) == OLD
    changes = list(AuditEntry.objects.filter(object_type="user").values_list("actor_name", "changes"))
    assert ("ada-admin", {"new_email": ["", NEW]}) in changes
    assert not any("email" in change for _, change in changes)
    alice.get(link_in(letters()[NEW]))
    alice.post(CONFIRM)
    assert address_of(people) == NEW
