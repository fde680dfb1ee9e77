"""Admits queued executions: takes a snapshot, lets `quota` decide, reserves slots in one transaction, and writes why the others wait. Two
processes may run this at the same time and no slot is given twice; see `snapshot.take` and `snapshot.lock_unchanged` for why."""

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from grid.announcements.maintenance import last_end
from grid.configuration import OVER_QUOTA_TIMEOUT, value_of
from grid.core.backoff import Backoff
from grid.database.trouble import TroubleLog
from grid.database.turns import PersonTurns
from grid.executions import lifecycle
from grid.executions.context import Context
from grid.executions.lifecycle import Transition
from grid.models import Execution, LastAdmission, QueueOrder, State
from grid.observability import telemetry
from grid.queue import quota, snapshot, takeover
from grid.queue.gate import CLOCK_STOPS
from grid.queue.quota import Decisions, Deferred
from grid.queue.snapshot import Queue, Unit

logger = logging.getLogger(__name__)

UNLOCKED_ATTEMPTS = 3
ADMITTED = Transition(State.DEPLOYING, "admitted", values={})
AT_ONCE = 5  # units of one person, some milliseconds


@dataclass(frozen=True, slots=True)
class AdmissionRefusal:
    """Why a unit waits, or that it has waited too long (`is_late`), which is not written yet."""

    unit: Unit
    why: Deferred
    is_late: bool
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class Admission:
    """Ids of what was admitted, in order, a workspace or job and its cluster one after the other; and what is to be told to others."""

    admitted: Sequence[str] = ()
    refusals: Sequence[AdmissionRefusal] = ()


def admit_next(data_plane: str, *, now: datetime) -> Admission:
    """Admit executions to the data plane. A long queue takes a tenth of a second to decide about, for which nothing is locked. What was
    decided is carried out if the slots are as they were then; if they change again and again, the queue is locked at last while it is
    decided about."""
    if not Execution.objects.in_data_plane(data_plane).queued().exists():
        return Admission()
    for _attempt in range(UNLOCKED_ATTEMPTS):
        queue = snapshot.peek(data_plane, now=now)
        decisions = quota.admit(queue.snapshot)
        if not decisions.admitted:
            return Admission((), _refusals(queue, decisions, now))
        with transaction.atomic():
            if snapshot.lock_unchanged(data_plane, queue, decisions.admitted):
                return _carry_out(queue, decisions, now)
    with transaction.atomic():
        queue = snapshot.take(data_plane, now=now)
        return _carry_out(queue, quota.admit(queue.snapshot), now)


def _carry_out(queue: Queue, decisions: Decisions, now: datetime) -> Admission:
    admitted = [row for id in decisions.admitted for row in _reserve(queue.units[id], now)]
    served = {(row.owner_id, tier) for row in admitted for tier in snapshot.tiers_of(row)}
    LastAdmission.objects.bulk_create(
        [LastAdmission(user_id=user, tier_id=tier, at=now) for user, tier in sorted(served)],
        update_conflicts=True,
        unique_fields=["user", "tier"],
        update_fields=["at"],
    )
    if left := queue.orders.keys() & {row.pk for row in admitted}:  # which wait no longer
        QueueOrder.objects.filter(pk__in=left).delete()
    transaction.on_commit(partial(telemetry.asked_for_slots, "admitted", len(admitted)))
    return Admission([row.pk for row in admitted], _refusals(queue, decisions, now))


def _refusals(queue: Queue, decisions: Decisions, now: datetime) -> list[AdmissionRefusal]:
    """Return what is to be written: the end of what has waited too long, and of the others the reason, if it is another one."""
    timeout = timedelta(seconds=value_of(OVER_QUOTA_TIMEOUT))
    opened_at = max(filter(None, (last_end(now), takeover.last_end(now))), default=None)
    refusals = []
    for id, refused in decisions.refused.items():
        unit, order = queue.units[id], queue.orders.get(id)
        # Being held does not count, nor does what was before the end of maintenance or of a takeover.
        released_at = order.released_at if order is not None else None
        since = max(at for at in (unit[0].state_since, released_at, opened_at) if at is not None)
        is_late = refused.code not in CLOCK_STOPS and now - since > timeout
        if is_late or not all(_is_written(row, refused) for row in unit):
            refusals.append(AdmissionRefusal(unit, refused, is_late, timeout))
    return refusals


def write_refusals(refusals: Iterable[AdmissionRefusal], *, now: datetime) -> None:
    """Write each to its whole unit in a transaction of its own; what has changed since it was decided about is left as it is."""
    for refusal in refusals:
        with transaction.atomic():
            if not all(_wrote(row, refusal, now) for row in refusal.unit):
                transaction.set_rollback(True)


def _reserve(unit: Unit, now: datetime) -> Unit:
    """Admit every execution of the unit atomically; return () if any revision changed."""
    with transaction.atomic():
        fields = {"slots_reserved_at": now}
        for row in unit:
            if not lifecycle.enter(row.pk, ADMITTED, revision=row.revision, left=row.state, now=now, fields=fields):
                transaction.set_rollback(True)
                return ()
    return unit


def _wrote(row: Execution, refusal: AdmissionRefusal, now: datetime) -> bool:
    refused = refusal.why
    if refusal.is_late:
        waited = {"seconds": refusal.timeout.total_seconds(), "kind": row.kind, "for": refused.stored}
        change = Transition(State.ERROR, "over_quota_timeout", level="Warning", values=waited)
        transaction.on_commit(partial(telemetry.asked_for_slots, "timed_out"))
        return lifecycle.enter(row.pk, change, revision=row.revision, left=row.state, now=now)
    if _is_written(row, refused):
        return True
    if row.reason != refused.code:  # else it only moved in the queue
        transaction.on_commit(partial(telemetry.asked_for_slots, "deferred"))
    columns = dict(zip(("reason", "reason_values", "message"), refused.stored, strict=True))
    return lifecycle.update(row.pk, columns, revision=row.revision, now=now)


def _is_written(row: Execution, refused: Deferred) -> bool:
    return [row.reason, row.reason_values, row.message] == refused.stored


class Superseded(Exception):
    """A later admission has decided anew."""


class WaitReasonWriter:
    """Writes why executions wait, beside the controller's poll: in a long queue each admission changes the place of hundreds. What an
    earlier admission decided and is not written yet is dropped. It is written in turn by owner, a few in each look at the database, so that
    neither the admission of others nor a login waits for it."""

    def __init__(self, context: Context, troubles: TroubleLog, rng: random.Random) -> None:
        self._context, self._troubles, self._rng = context, troubles, rng
        self._latest: Sequence[AdmissionRefusal] = ()
        self._turns = PersonTurns[int]()
        self._has_changed = asyncio.Event()

    def put(self, refusals: Sequence[AdmissionRefusal]) -> None:
        self._latest = refusals
        self._has_changed.set()

    async def run(self) -> None:
        """Write what is put, for ever. What fails is decided, and put, again."""
        backoff = Backoff(rng=self._rng)
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            try:
                await self.write()
                backoff.reset()
            except Exception as error:
                if not self._troubles.handles(error):
                    logger.exception("not written why executions wait")
                await asyncio.sleep(backoff.next())

    async def write(self) -> None:
        """Write what was put last, until something else is."""
        latest, by_owner = self._latest, dict[int, list[AdmissionRefusal]]()
        for refusal in latest:
            by_owner.setdefault(refusal.unit[0].owner_id, []).append(refusal)
        due = list[tuple[int, list[AdmissionRefusal]]]()
        for owner, own in by_owner.items():
            due += ((owner, own[start : start + AT_ONCE]) for start in range(0, len(own), AT_ONCE))

        async def write(some: Sequence[AdmissionRefusal]) -> None:
            if self._latest is not latest:
                raise Superseded  # at once: whoever was not served yet comes first in what is written next
            await self._context.due_work(write_refusals, some, now=self._context.clock())

        with suppress(Superseded):
            await self._turns.serve(due, write, at_most=len(due))
