"""Requests to check the cluster's API: a web process asks, with an entry in the audit log; the leading controller runs and records them."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from grid.audit.entries import write_entry
from grid.core.errors import rejection
from grid.core.translation import gettext as _
from grid.core.wording import one_line
from grid.models import ApiCheckRun, User
from grid.platformhealth.apicheckresults import ApiCheckResult
from grid.platformhealth.apichecks.scratch import namespace_of

KEPT_FOR = timedelta(days=30)
_LONGEST = 2000


def ask(data_plane: str, installation: str, user: User, *, is_shared: bool, now: datetime) -> ApiCheckRun:
    """Record the request. Raise Rejected while another has not ended. `installation` is the namespace of executions."""
    token = secrets.token_hex(4)
    namespace = installation if is_shared else namespace_of(installation, token)
    run = ApiCheckRun(
        data_plane=data_plane,
        asked_by=user,
        asked_by_name=user.get_username(),
        asked_at=now,
        is_shared=is_shared,
        token=token,
        namespace=namespace,
    )
    try:
        with transaction.atomic():
            run.save(force_insert=True)
            write_entry(user, run, {"check": ["", namespace]}, at=now)
    except IntegrityError as error:
        raise rejection(_("Another check of the API has not ended yet; wait until it has."), "running") from error
    return run


def unfinished(data_plane: str) -> QuerySet[ApiCheckRun]:
    """Return the one that has not ended, and those whose objects are still to be deleted."""
    return ApiCheckRun.objects.filter(Q(ended_at=None) | Q(is_clean=False), data_plane=data_plane)


def open_runs(data_plane: str) -> list[ApiCheckRun]:
    return list(unfinished(data_plane).order_by("pk"))


def begin(run: ApiCheckRun, now: datetime) -> bool:
    """Note that it is run, before anything is made. Return False when somebody else has begun it."""
    free = ApiCheckRun.objects.filter(pk=run.pk, started_at=None, ended_at=None)
    return bool(free.update(started_at=now, is_clean=False))


def note_results(run: ApiCheckRun, results: Sequence[ApiCheckResult]) -> None:
    ApiCheckRun.objects.filter(pk=run.pk, ended_at=None).update(results=msgspec.to_builtins(results))


def end(run: ApiCheckRun, now: datetime, trouble: str = "", *, needs_shared: bool = False) -> None:
    unended = ApiCheckRun.objects.filter(pk=run.pk, ended_at=None)
    unended.update(ended_at=now, trouble=one_line(trouble)[:_LONGEST], needs_shared=needs_shared)


def note_clean(run: ApiCheckRun, left: str = "") -> None:
    """Note that nothing more is to be deleted; `left` is a sentence about what could not be."""
    with transaction.atomic():
        stored = ApiCheckRun.objects.select_for_update().get(pk=run.pk)
        stored.trouble = one_line(f"{stored.trouble} {left}")[:_LONGEST]
        stored.is_clean = True
        stored.save(update_fields=["trouble", "is_clean"])


def purge(now: datetime, at_most: int) -> int:
    """Delete those that ended a month ago; see `grid.controller.housekeeping`."""
    old = ApiCheckRun.objects.filter(ended_at__lt=now - KEPT_FOR, is_clean=True)
    ids = list(old.values_list("pk", flat=True)[:at_most])
    ApiCheckRun.objects.filter(pk__in=ids).delete()
    return len(ids)
