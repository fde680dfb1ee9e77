"""The session engine (SESSION_ENGINE): sessions in our own table, which end when they are idle or old, and can be listed.

The limits are the central configuration's and are read at each check, so a change applies at once. A cookie's key is never stored: the
table's keys are digests of it (`stored_key`), and all functions here that take or return keys mean the digests.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError
from django.db import Error, IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from grid import configuration as centralconfig
from grid.accounts.backend import DEMO_GROUP
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.database.prepared import Prepared
from grid.edge.limits import BodyRefused
from grid.edge.refusals import Refusal
from grid.models import Session, User

# Written at most this often, so that a page costs no write.
SEEN_PRECISION = timedelta(minutes=1)
_ADDRESS, _AGENT = "address", "agent"  # in the session's data
_AGENT_LENGTH = 200
_UNKNOWN = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "session-unknown",
    _("Nothing was saved: the database cannot say now who you are. Wait a moment and send it again."),
    retry_after=5,
)


def stored_key(session_key: str) -> str:
    """Return the table's key of the session whose cookie holds `session_key`: 160 bits of its SHA-256, as long as Django's column."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:40]


def _within_limits(now: datetime) -> Q:
    """Return the filter for sessions within both limits, without a request and in any case, as they are set now; in one query."""
    return _after(*_limits(now))


def _limits(now: datetime) -> tuple[datetime, datetime, datetime]:
    idle, absolute = centralconfig.values_of(centralconfig.SESSION_IDLE, centralconfig.SESSION_ABSOLUTE)
    return now, now - timedelta(seconds=absolute), now - timedelta(seconds=idle)


def _after(now: Any, begun: Any, used: Any) -> Q:
    return Q(expire_date__gt=now, created_at__gt=begun, seen_at__gt=used)


_LIVING = Prepared(4, lambda key, *limits: Session.objects.filter(_after(*limits), pk=key).order_by())


class SessionStore(SessionBase):
    """The store behind request.session in Django, Channels and the admin."""

    seen_at: datetime | None = None  # of the loaded session
    _is_touch_due: bool | None = None

    def load(self) -> dict[str, Any]:
        """Return the session's data; {} without a key when it has ended. Loading does not count as use: see `touch`."""
        row = next(iter(_LIVING(stored_key(self.session_key or ""), *_limits(timezone.now()))), None)
        if row is None:
            self._session_key = None
            return {}
        self.seen_at = row.seen_at
        return self.decode(row.session_data)

    def exists(self, session_key: str) -> bool:
        return Session.objects.filter(pk=stored_key(session_key)).exists()

    def create(self) -> None:
        while True:
            self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        """Save the session. Raise UpdateError when it has ended in the meantime: a late request must not bring it back."""
        if self.session_key is None:
            self.create()
            return
        values = self._columns(self._get_session(no_load=must_create))  # type: ignore[attr-defined]
        key, now = stored_key(self.session_key), timezone.now()
        if not must_create:
            if not Session.objects.filter(pk=key).update(**values):
                raise UpdateError
            return
        try:
            with transaction.atomic():
                Session.objects.create(session_key=key, created_at=now, seen_at=now, **values)
        except IntegrityError as error:
            raise CreateError from error
        self.seen_at = now

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key:
            Session.objects.filter(pk=stored_key(key)).delete()

    @classmethod
    def clear_expired(cls) -> None:
        purge(timezone.now())

    def is_touch_due(self, now: datetime) -> bool:
        """Return whether `touch` writes; decided once, for on the event loop it may not."""
        if self._is_touch_due is None and self.seen_at is not None:
            self._is_touch_due = self.seen_at <= now - SEEN_PRECISION
        return bool(self._is_touch_due)

    def touch(self, now: datetime) -> None:
        """Record that somebody uses the loaded session."""
        if self.session_key and self.is_touch_due(now):
            touch([stored_key(self.session_key)], now)

    def _columns(self, data: Mapping[str, Any]) -> dict[str, Any]:
        user_id = data.get(SESSION_KEY)
        return {
            "session_data": self.encode(dict(data)),
            "expire_date": self.get_expiry_date(),
            "user_id": int(user_id) if user_id else None,
            "auth_hash": data.get(HASH_SESSION_KEY, ""),
            "address": data.get(_ADDRESS, ""),
            "agent": data.get(_AGENT, ""),
        }


@receiver(user_logged_in)
def note_browser(sender: type[User], request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Store address and browser of the login in the session, for the person's list of sessions."""
    request.session[_ADDRESS] = request.META.get("REMOTE_ADDR", "")[:45]
    agent = request.META.get("HTTP_USER_AGENT", "")[: 2 * _AGENT_LENGTH]
    request.session[_AGENT] = "".join(filter(str.isprintable, agent))[:_AGENT_LENGTH]


_LIMITS = {"idle": centralconfig.SESSION_IDLE, "absolute": centralconfig.SESSION_ABSOLUTE}


class SessionUser(msgspec.Struct, frozen=True, gc=False):
    pk: int
    username: str
    is_superuser: bool
    groups: tuple[str, ...] = ()


def valid_users(session_keys: Collection[str], groups: Sequence[str] = ()) -> dict[str, SessionUser]:
    """Return stored key -> user for the logged-in sessions, with those of the groups that the user is in: within both limits, the account
    active, the password unchanged. One query, however many are asked for, and no models, because all open pages ask each second."""
    if not session_keys:
        return {}
    now = timezone.now()
    rows = Session.objects.filter(pk__in=set(session_keys), user__is_active=True, expire_date__gt=now)
    if not settings.DEMO:
        rows = rows.exclude(user__groups__name=DEMO_GROUP)
    in_group = User.groups.through.objects.filter(user=OuterRef("user"))
    annotated: dict[str, Exists | Subquery] = {name: Exists(in_group.filter(group__name=name)) for name in groups}
    annotated |= {name: centralconfig.stored_override(limit) for name, limit in _LIMITS.items()}
    users = {}
    columns = ("pk", "auth_hash", "seen_at", "created_at", "user_id", "user__username", "user__password")
    for row in rows.annotate(**annotated).values(*columns, "user__is_superuser", *annotated):
        if not any(constant_time_compare(row["auth_hash"], valid) for valid in _auth_hashes(row["user__password"])):
            continue
        idle, absolute = (
            timedelta(seconds=centralconfig.value_with(limit, row[name])) for name, limit in _LIMITS.items()
        )
        if row["seen_at"] > now - idle and row["created_at"] > now - absolute:
            own = tuple(name for name in groups if row[name])
            users[row["pk"]] = SessionUser(row["user_id"], row["user__username"], row["user__is_superuser"], own)
    return users


async def holds(session_key: str) -> bool:
    """Return whether somebody is logged in with the session of that cookie. Raise BodyRefused where that cannot be known now."""
    stored = stored_key(session_key)
    try:
        return stored in await database.background.run(valid_users, [stored])
    except Error as error:
        raise BodyRefused(_UNKNOWN, value=type(error).__name__) from error


def living_sessions(now: datetime) -> QuerySet[Session]:
    return Session.objects.filter(_within_limits(now))


def of_user(user: User, now: datetime) -> QuerySet[Session]:
    """Return the sessions in which that person is logged in; those of an older password do not count."""
    return living_sessions(now).filter(user=user, auth_hash=user.get_session_auth_hash())


def end(user: User, session_key: str) -> bool:
    deleted, _ = Session.objects.filter(pk=session_key, user=user).delete()
    return deleted > 0


def end_others(user: User, session_key: str) -> int:
    count, _ = Session.objects.filter(user=user).exclude(pk=session_key).delete()
    return count


def touch(session_keys: Collection[str], now: datetime) -> None:
    """Record that these sessions are in use; only those are written whose last use is a minute old."""
    Session.objects.filter(pk__in=set(session_keys), seen_at__lte=now - SEEN_PRECISION).update(seen_at=now)


def purge(now: datetime, at_most: int | None = None) -> int:
    ended = Session.objects.exclude(_within_limits(now))
    if at_most is not None:
        ended = Session.objects.filter(pk__in=list(ended.values_list("pk", flat=True)[:at_most]))
    deleted, _ = ended.delete()
    return deleted


@lru_cache(maxsize=4096)  # those of all open pages are asked for each second
def _auth_hashes(password: str) -> tuple[str, ...]:
    user = User(password=password)  # Django makes a session's hash of this field alone
    return (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
