"""Where a person can be told beside the page: by e-mail with a server and an address, by a webhook with a target; and tests of both."""

import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from yarl import URL

from grid.audit.entries import write_entry
from grid.core.egress import Block, may_be_called, read_blocks
from grid.core.errors import Problem, Rejected
from grid.core.translation import gettext as _
from grid.database.encryption import Undecryptable, encrypt, encrypt_again
from grid.models import AuditEntry, Delivery, User, WebhookTarget
from grid.notifications.letters import TEST, payload_of

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
    """Return the channels out of the page that a person can choose."""
    is_set_up = {
        Delivery.Channel.EMAIL: sends_mail() and bool(user.email),
        Delivery.Channel.WEBHOOK: WebhookTarget.objects.filter(user=user).exists(),
    }
    return [channel for channel, is_usable in is_set_up.items() if is_usable]


def set_target(user: User, url: str) -> str:
    """Store where a person's notifications are posted; return the new secret that signs them. Raise Rejected."""
    url = url.strip()
    if problem := _problem(url):
        raise Rejected([Problem("url", problem)])
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
    """Return the host of a person's target; "" without one."""
    url = WebhookTarget.objects.select_for_update().filter(user=user).values_list("url", flat=True).first()
    return _host(url) if url else ""


def _host(url: str) -> str:
    """Return what an audit entry says of an address: its path and query may be a secret."""
    return URL(url).host or ""


def encrypt_targets_again() -> tuple[int, int]:
    """Encrypt the secrets of all targets with the first key; return how many were, and how many cannot be read any more."""
    done = unreadable = 0
    for pk in WebhookTarget.objects.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            target = WebhookTarget.objects.select_for_update().filter(pk=pk).first()
            if target is None:
                continue
            try:
                target.secret = encrypt_again(target.secret)
            except Undecryptable:
                unreadable += 1
            else:
                target.save(update_fields=["secret"])
                done += 1
    return done, unreadable


def ask_for_test(user: User, channel: str, *, now: datetime) -> int:
    """Have a test sent through a channel, once; return the id of its delivery. Raise Rejected."""
    if channel not in external_channels(user):
        raise Rejected([Problem("channel", _("This channel is not set up for you."), "not_offered")])
    with transaction.atomic():
        list(User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk"))
        tests = Delivery.objects.filter(user=user, channel=channel, payload__event=TEST, at__gt=now - TESTS_WITHIN)
        if (count := tests.count()) >= MOST_TESTS:
            sentence = _("You have sent {count} tests within {minutes} minutes. Wait a few minutes.")
            sentence = sentence.format(count=count, minutes=TESTS_WITHIN.seconds // 60)
            raise Rejected([Problem("channel", sentence, "too_many")])
        sentence = _("{user} asked for it on the page of the account.", user=user.get_username())
        payload = payload_of(TEST, TEST, sentence, "/account/#notifications", now)
        write_entry(user, user, {"test": ["", Delivery.Channel(channel).label]}, action=AuditEntry.Action.SENT, at=now)
        return Delivery.objects.create(user=user, channel=channel, payload=payload, at=now, next_try_at=now).pk


def _problem(text: str) -> str:
    """Return what is wrong with an address, as a sentence; "" when nothing is."""
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
