"""Throttling of logins, over django-axes: how many wrong passwords are too many, who is locked out, and how a lock ends.

Wrong passwords are counted for each name and address, whether the name is an account or not. Three sums of these have a limit:

- of a name at one address: somebody guesses a password. The person at another address is not concerned.
- of one address: somebody tries many names.
- of one name, from all addresses: many machines guess one password. The person can still log in from addresses of earlier logins, so nobody
  can lock a person out of where they work.

A lock ends by itself after the cool-off, which failures during the lock do not prolong, or when an admin ends it.
"""

import ipaddress
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt, AccessLog
from django.db import transaction
from django.db.models import F, Max, Q, QuerySet, Sum
from django.http import HttpRequest
from django.utils import timezone

from grid import configuration as centralconfig
from grid.audit.entries import write_about
from grid.core.translation import gettext as _
from grid.edge.connections import client_key
from grid.models import AuditEntry, User

logger = logging.getLogger(__name__)

# How long after a login its address counts as the person's own.
_ADDRESS_IS_KNOWN_FOR = timedelta(days=90)
_NO_ADDRESS = "0.0.0.0"  # of requests without a network address, which count together


class Scope(StrEnum):
    NAME_AT_ADDRESS = "name at address"
    ADDRESS = "address"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class LockoutPolicy:
    limits: Mapping[Scope, int]
    cool_off: timedelta


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock in force; `name` or `address` is empty when it applies to any."""

    scope: Scope
    name: str
    address: str
    failures: int
    until: datetime


_FIELDS = {Scope.NAME_AT_ADDRESS: ("username", "ip_address"), Scope.ADDRESS: ("ip_address",), Scope.NAME: ("username",)}


def policy() -> LockoutPolicy:
    """Return the policy that the central configuration sets now, in one query."""
    pair, address, name, seconds = centralconfig.values_of(
        centralconfig.LOGIN_FAILURES_AT_ADDRESS,
        centralconfig.LOGIN_FAILURES_OF_ADDRESS,
        centralconfig.LOGIN_FAILURES_OF_NAME,
        centralconfig.LOGIN_COOL_OFF,
    )
    limits = {Scope.NAME_AT_ADDRESS: pair, Scope.ADDRESS: address, Scope.NAME: name}
    return LockoutPolicy(limits, timedelta(seconds=seconds))


def cool_off(request: HttpRequest | None = None) -> timedelta:
    """Return how long a lock lasts; django-axes calls this (AXES_COOLOFF_TIME)."""
    return policy().cool_off


def client_network(request: HttpRequest) -> str:
    """Return the client's IPv4 address, or the first address of its IPv6 network; django-axes calls this (AXES_CLIENT_IP_CALLABLE)."""
    address = client_key(request.META.get("REMOTE_ADDR", "")).partition("/")[0]
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return _NO_ADDRESS
    return address


def locks(now: datetime, rules: LockoutPolicy | None = None) -> list[Lock]:
    """Return all locks in force, newest first; those that these rules would make, if any are given."""
    in_force = _locks(AccessAttempt.objects.all(), now, rules or policy())
    return sorted(in_force, key=lambda lock: (lock.until, lock.name, lock.address), reverse=True)


def lock_of(name: str, address: str, now: datetime) -> Lock | None:
    """Return the lock that keeps that name from logging in at that address; the one that ends last when there are several."""
    rules = policy()
    attempts = AccessAttempt.objects.filter(Q(username=name) | Q(ip_address=address))
    concerning = [
        lock
        for lock in _locks(attempts, now, rules)
        if lock.name in ("", name)
        and lock.address in ("", address)
        and not (lock.scope is Scope.NAME and _is_known(name, address, now))
    ]
    return max(concerning, key=lambda lock: lock.until, default=None)


@transaction.atomic
def unlock(scope: Scope, name: str, address: str, *, actor: User) -> int:
    """Delete the failures behind a lock, with an audit entry, and return their number."""
    known = {"username": name, "ip_address": address}
    attempts = AccessAttempt.objects.filter(**{field: known[field] for field in _FIELDS[scope]})
    failures = attempts.aggregate(sum=Sum("failures_since_start"))["sum"] or 0
    attempts.delete()
    if failures:
        title = " at ".join(known[field] for field in _FIELDS[scope])
        action = AuditEntry.Action.UNLOCKED
        write_about(actor, ("login", title[:200], title), {"failures": [failures, 0]}, action=action)
    return failures


def purge(now: datetime, at_most: int) -> int:
    """Delete failures that no longer count, and logins too old to make an address known; return the number of rows."""
    deleted = 0
    for model, age in ((AccessAttempt, policy().cool_off), (AccessLog, _ADDRESS_IS_KNOWN_FOR)):
        old = model.objects.filter(attempt_time__lte=now - age).values_list("pk", flat=True)
        keys = list(old[: at_most - deleted])
        model.objects.filter(pk__in=keys).delete()
        deleted += len(keys)
    return deleted


class LockoutHandler(AxesDatabaseHandler):  # type: ignore[misc]
    """The handler that django-axes calls (AXES_HANDLER), which counts by our rules.
    Unlike django-axes' own it has a limit for each rule, keeps only name and address of what was sent, and after a right password forgets
    only that name's failures at that address: an attacker with an account must not be able to reset an address."""

    def is_locked(self, request: Any, credentials: dict[str, Any] | None = None) -> bool:
        """Return True when the login is locked, and keep the lock as the request's `login_lock`, for the answer."""
        request.login_lock = lock_of(_name(credentials), request.axes_ip_address, timezone.now())
        return request.login_lock is not None

    def user_login_failed(
        self, sender: object, credentials: dict[str, Any], request: Any = None, **kwargs: Any
    ) -> None:
        if request.axes_locked_out:
            return  # refused without checking the password: that must not prolong the lock
        with transaction.atomic():
            _count_failure(_name(credentials), request.axes_ip_address, timezone.now())
            _write_failure(_name(credentials), request.axes_ip_address)
        logger.info("wrong password address=%s", request.axes_ip_address)
        if self.is_locked(request, credentials):
            logger.warning("logins locked scope=%r address=%s", str(request.login_lock.scope), request.axes_ip_address)

    def reset_user_attempts(self, request: Any, credentials: dict[str, Any] | None = None) -> int:
        about = {"username": _name(credentials), "ip_address": request.axes_ip_address}
        return int(AccessAttempt.objects.filter(**about).delete()[0])


def _write_failure(name: str, address: str) -> None:
    """Write an audit entry; a name that is no account's is left out, because people type passwords there."""
    known = name if User.objects.filter(username=name).exists() else ""
    AuditEntry.objects.create(
        action=AuditEntry.Action.LOGIN_FAILED,
        object_type="login",
        object_id=known,
        object_name=_("{known} at {address}", known=known or _("an unknown name"), address=address)[:200],
    )


def _count_failure(name: str, address: str, now: datetime) -> None:
    AccessAttempt.objects.filter(attempt_time__lte=now - cool_off()).delete()
    about = {"username": name, "ip_address": address, "user_agent": ""}
    attempt, is_new = AccessAttempt.objects.get_or_create(**about, defaults={"failures_since_start": 1})
    if not is_new:
        more = F("failures_since_start") + 1
        AccessAttempt.objects.filter(pk=attempt.pk).update(failures_since_start=more, attempt_time=now)


def _locks(attempts: "QuerySet[Any]", now: datetime, rules: LockoutPolicy) -> Iterator[Lock]:
    counted = attempts.filter(attempt_time__gt=now - rules.cool_off)
    for scope, fields in _FIELDS.items():
        sums = counted.order_by().values(*fields)
        sums = sums.annotate(failures=Sum("failures_since_start"), last=Max("attempt_time"))
        for row in sums.filter(failures__gte=rules.limits[scope]):
            name, address = row.get("username", ""), row.get("ip_address", "")
            yield Lock(scope, name, address, row["failures"], row["last"] + rules.cool_off)


def _is_known(name: str, address: str, now: datetime) -> bool:
    since = now - _ADDRESS_IS_KNOWN_FOR
    return bool(AccessLog.objects.filter(username=name, ip_address=address, attempt_time__gt=since).exists())


def _name(credentials: Mapping[str, Any] | None) -> str:
    return str((credentials or {}).get("username") or "")
