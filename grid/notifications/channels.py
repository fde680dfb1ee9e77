"""Where a person can be told beside the page, by e-mail or a webhook, and tests of both; and how an e-mail address is changed.

A new address is used once its owner, logged in, has followed the link in the letter that is sent to it. The address in use is told when
another one is asked for, and when it is replaced or removed. Two accounts may have the same address, so no answer here tells whether an
address is known. Where the installation sends no e-mail an address is used for none, and is stored as typed.
"""

import secrets
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac
from yarl import URL

from grid.audit.entries import write_entry
from grid.core.egress import Block, may_be_called, read_blocks
from grid.core.errors import rejection
from grid.core.translation import gettext as _
from grid.database.encryption import encrypt
from grid.models import AuditEntry, Delivery, EmailChange, User, WebhookTarget
from grid.notifications.letters import ADDRESS_CHANGED, CONFIRM_ADDRESS, TEST, Payload, SendResult, payload_of

MOST_TESTS = 5  # of a channel within TESTS_WITHIN: whoever changes his address could write to anybody
TESTS_WITHIN = timedelta(minutes=10)
_URL_LENGTH = 500
_NO_PASSWORD = _(
    "Leave out the name and password: whoever reads the address would have them. A secret signs what is posted."
)


def callable_blocks() -> tuple[Collection[Block], Collection[Block]]:
    """Return the private addresses that webhooks may lead to, and the public ones that they may not, as the settings say."""
    return read_blocks("", settings.WEBHOOK_PRIVATE)[0], read_blocks("", settings.EGRESS_EXCEPT)[0]


def sends_mail() -> bool:
    return bool(settings.EMAIL_HOST and settings.DEFAULT_FROM_EMAIL)


def external_channels(user: User) -> Collection[Delivery.Channel]:
    is_set_up = {
        Delivery.Channel.EMAIL: sends_mail() and bool(user.email),
        Delivery.Channel.WEBHOOK: WebhookTarget.objects.filter(user=user).exists(),
    }
    return [channel for channel, is_usable in is_set_up.items() if is_usable]


def set_target(user: User, url: str) -> str:
    """Store where a person's notifications are posted; return the new secret that signs them. Raise Rejected."""
    url = url.strip()
    if problem := _problem(url):
        raise rejection(problem, path="url")
    secret, host = secrets.token_urlsafe(32), _host(url)
    with transaction.atomic():
        before = _target_host(user)
        WebhookTarget.objects.update_or_create(user=user, defaults={"url": url, "secret": encrypt(secret)})
        write_entry(user, user, {"webhook": [before, _("{host}, a new secret", host=host) if before else host]})
    return secret


@transaction.atomic
def remove_target(user: User) -> None:
    """Forget the target; what waits to be posted is given up when it is due."""
    before = _target_host(user)
    WebhookTarget.objects.filter(user=user).delete()
    if before:
        write_entry(user, user, {"webhook": [before, ""]})


def _target_host(user: User) -> str:
    url = WebhookTarget.objects.select_for_update().filter(user=user).values_list("url", flat=True).first()
    return _host(url) if url else ""


def _host(url: str) -> str:
    """Return what an audit entry says of an address: its path and query may be a secret."""
    return URL(url).host or ""


def ask_for_test(user: User, channel: str, *, now: datetime) -> int:
    """Have a test sent through a channel, once; return the id of its delivery. Raise Rejected."""
    if channel not in external_channels(user):
        raise rejection(_("This channel is not set up for you."), "not_offered", path="channel")
    with transaction.atomic():
        list(User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk"))
        tests = Delivery.objects.filter(user=user, channel=channel, payload__event=TEST, at__gt=now - TESTS_WITHIN)
        if (count := tests.count()) >= MOST_TESTS:
            sentence = _("You have sent {count} tests within {minutes} minutes. Wait a few minutes.")
            sentence = sentence.format(count=count, minutes=TESTS_WITHIN.seconds // 60)
            raise rejection(sentence, "too_many", path="channel")
        sentence = _("{user} asked for it on the page of the account.", user=user.get_username())
        payload = payload_of(TEST, TEST, sentence, "/account/#notifications", now)
        write_entry(user, user, {"test": ["", Delivery.Channel(channel).label]}, action=AuditEntry.Action.SENT, at=now)
        return Delivery.objects.create(user=user, channel=channel, payload=payload, at=now, next_try_at=now).pk


def _problem(text: str) -> str:
    if not text:
        return _("Enter the address that notifications are posted to.")
    if len(text) > _URL_LENGTH:
        return _("An address has at most {longest} characters.", longest=_URL_LENGTH)
    if not text.isprintable() or " " in text:
        return _("An address has no blanks and no control characters.")
    try:
        url = URL(text)
        host = url.host or ""
    except ValueError:
        return _("This is no address. Write it like https://example.com/hook.")
    if url.scheme != "https" or not host:
        return _("Use an address that begins with https://.")
    if url.user or url.password:
        return _NO_PASSWORD
    # What a name leads to is looked at when it is called.
    is_number = ":" in host or host.replace(".", "").isdigit()
    if is_number and not may_be_called(host, *callable_blocks()):
        return _("This address is private or excepted. An admin can allow such addresses.")
    return ""


VALID_FOR = timedelta(days=3)
MOST_LETTERS = 5  # to new addresses within LETTERS_WITHIN: whoever changes his address could write to anybody
LETTERS_WITHIN = timedelta(hours=1)


def change_address(user: User, address: str, *, now: datetime) -> Mapping[str, list[str]]:
    """Change the address of a locked account, or ask its owner to confirm it; return what an audit entry says. Raise Rejected."""
    before = user.email
    if address == before:
        return {}
    if address and sends_mail():
        pending = EmailChange.objects.filter(user=user).first()
        if pending is not None and pending.address == address and now < pending.asked_at + VALID_FOR:
            return {}
        _ask(user, address, now)
        title = _("Another e-mail address was asked for")
        why = _("It replaces this one for {user} once it is confirmed.", user=user.get_username())
        _tell(user, before, title, why, now)
        return {"new_email": [pending.address if pending else "", address]}
    EmailChange.objects.filter(user=user).delete()
    _replace(user, address, now)
    return {"email": [before, address]}


def pending_change(user: User) -> EmailChange | None:
    return EmailChange.objects.filter(user=user).first()


@transaction.atomic
def send_again(user: User, *, now: datetime) -> bool:
    """Send another link, which replaces the earlier one; return False when no address waits. Raise Rejected."""
    pending = EmailChange.objects.filter(user=_locked(user.pk)).first()
    if pending is not None:
        _ask(user, pending.address, now)
    return pending is not None


@transaction.atomic
def call_off(user: User) -> bool:
    """Forget the address that waits; return False when none does."""
    pending = EmailChange.objects.filter(user=_locked(user.pk)).first()
    if pending is None:
        return False
    pending.delete()
    write_entry(user, user, {"new_email": [pending.address, ""]})
    return True


def change_of_link(user_id: int, token: str, *, now: datetime) -> EmailChange | None:
    """Return the change that a link confirms; None when it was used, replaced or called off, or is too old."""
    # The id is from an address: of accounts, unlike of their changes, a number that is too large for the database is none.
    users = User.objects.filter(pk=user_id, is_active=True)
    pending = EmailChange.objects.select_related("user").filter(user__in=users).first()
    if pending is None or now >= pending.asked_at + VALID_FOR:
        return None
    return pending if constant_time_compare(token, _token(pending)) else None


@transaction.atomic
def confirm(user: User, token: str, *, now: datetime) -> bool:
    """Use the address from now on; return False when the link does not work any more, of two at once for the second."""
    stored = _locked(user.pk)
    pending = change_of_link(stored.pk, token, now=now)
    if pending is None:
        return False
    before = stored.email
    pending.delete()
    _replace(stored, pending.address, now)
    write_entry(stored, stored, {"email": [before, pending.address]})
    return True


def letter_to_send(user_id: int, payload: Payload) -> tuple[str, Payload, SendResult | None]:
    """Return where a letter of ours goes, the letter with its link, and why it cannot be sent. No link is stored with a delivery."""
    if payload["event"] != CONFIRM_ADDRESS:
        return str(payload["to"]), payload, None
    pending = EmailChange.objects.select_related("user").filter(user=user_id, address=payload["to"]).first()
    if pending is None or pending.asked_at.isoformat() != payload["at"]:
        return "", payload, SendResult(_("The change of the address was called off, or its link replaced."), True)
    return pending.address, {**payload, "path": f"/account/email/{user_id}/{_token(pending)}/"}, None


def _locked(user_id: int) -> User:
    return User.objects.select_for_update(no_key=True).get(pk=user_id)


def _ask(user: User, address: str, now: datetime) -> None:
    letters = Delivery.objects.filter(user=user, payload__event=CONFIRM_ADDRESS, at__gt=now - LETTERS_WITHIN)
    if letters.count() >= MOST_LETTERS:
        sentence = _("You have asked for {count} links within an hour. Wait a little.", count=MOST_LETTERS)
        raise rejection(sentence, "too_many", path="email")
    pending, _unused = EmailChange.objects.update_or_create(user=user, defaults={"address": address, "asked_at": now})
    why = _(
        "{user} asked for notifications to be sent to this address. If that was not you, ignore this letter: nothing else is sent here.",
        user=user.get_username(),
    )
    _write(user, CONFIRM_ADDRESS, address, "", why, pending.asked_at)


def _replace(user: User, address: str, now: datetime) -> None:
    before, user.email = user.email, address
    user.save(update_fields=["email"])
    title = _("Your e-mail address was changed") if address else _("Your e-mail address was removed")
    _tell(user, before, title, _("Nothing more is sent to this one for {user}.", user=user.get_username()), now)


def _tell(user: User, address: str, title: str, why: str, now: datetime) -> None:
    if address and sends_mail():
        _write(user, ADDRESS_CHANGED, address, title, why, now)


def _write(user: User, event: str, address: str, title: str, sentence: str, now: datetime) -> None:
    payload = payload_of(event, title, sentence, "/account/", now) | {"to": address}
    Delivery.objects.create(user=user, channel=Delivery.Channel.EMAIL, payload=payload, at=now, next_try_at=now)


def _token(change: EmailChange) -> str:
    """Return the secret of the link; it is of this account, its present address, this new one, and this asking."""
    text = "\n".join([str(change.user_id), change.user.email, change.address, change.asked_at.isoformat()])
    return salted_hmac("grid.addresses", text, algorithm="sha256").hexdigest()
