"""Changes people's e-mail addresses: a new one is used once its owner, logged in, has followed the link in the letter that is sent to it.

The address in use is told when another one is asked for, and when it is replaced or removed. Two accounts may have the same address, so no
answer here tells whether an address is known. Where the installation sends no e-mail an address is used for none, and is stored as typed.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from grid.audit.entries import write_entry
from grid.core.errors import Problem, Rejected
from grid.core.translation import gettext as _
from grid.models import Delivery, EmailChange, User
from grid.notifications.channels import sends_mail
from grid.notifications.letters import ADDRESS_CHANGED, CONFIRM_ADDRESS, Payload, SendResult, payload_of

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
        raise Rejected([Problem("email", sentence, "too_many")])
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
