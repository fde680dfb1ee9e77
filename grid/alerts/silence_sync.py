"""Synchronises silences with Alertmanager, and which alerts are over: retried every ten seconds until both sides agree.

A silence that somebody ended or lengthened in Alertmanager is so here, too; one that Alertmanager has lost is created again.

Alertmanager tells nobody of the end of an alert while it is silenced. So it is asked which alerts it knows, and what it no longer knows,
for long enough for Prometheus to repeat it, is over.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from django.conf import settings
from django.db.models import Q

from grid.alerts.alertmanager import AlertmanagerGone, AlertmanagerRefused, KnownSilence
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.models import Alert, AlertSilence

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
MISSING = timedelta(minutes=5)  # Prometheus repeats what fires each minute, also after a restart of Alertmanager
UNSURE = timedelta(hours=1)  # how long a silence that was ended here is looked for in Alertmanager in any case
HEARD = timedelta(minutes=30)  # between two notes that an alert is still known
ELSEWHERE = "somebody in Alertmanager"  # stored, and looked for
MOST = 500
_PROBLEM = 300


class AlertmanagerApi(Protocol):
    """What is asked of Alertmanager, as `alertmanager.Alertmanager` does it."""

    async def create_silence(
        self, matchers: dict[str, str], *, starts_at: datetime, ends_at: datetime, by: str, comment: str
    ) -> str: ...
    async def silences(self) -> Sequence[KnownSilence]: ...
    async def end_silence(self, id: str) -> None: ...
    async def fingerprints(self) -> frozenset[str]: ...


def silences_to_pass(now: datetime) -> list[AlertSilence]:
    """Return the silences in force, and those ended here that Alertmanager may still have, noted or because its answer came too late."""
    may_have = ~Q(alertmanager_id="") | ~Q(alertmanager_problem="") | Q(until_at__gt=now - UNSURE)
    rows = AlertSilence.objects.filter(Q(until_at__gt=now) | ~Q(ended_by_name="") & may_have)
    return list(rows.exclude(ended_by_name=ELSEWHERE).order_by("pk")[:MOST])


def note(id: int, **columns: object) -> None:
    AlertSilence.objects.filter(pk=id).update(**columns)


def note_gone(ids: Sequence[int], problem: str) -> None:
    AlertSilence.objects.filter(pk__in=ids).exclude(alertmanager_problem=problem).update(alertmanager_problem=problem)


def note_length(id: int, was: datetime, until: datetime) -> None:
    """Note that somebody gave a silence another end in Alertmanager, unless it was ended here meanwhile."""
    AlertSilence.objects.filter(pk=id, until_at=was, ended_by_name="").update(until_at=until, alertmanager_problem="")


def note_end_elsewhere(id: int, now: datetime) -> None:
    """Note that somebody ended a silence in Alertmanager, unless it was ended here meanwhile."""
    row = AlertSilence.objects.filter(pk=id, ended_by_name="")
    row.update(until_at=now, ended_by_name=ELSEWHERE, alertmanager_id="", alertmanager_problem="")


def note_known(fingerprints: frozenset[str], missing: dict[int, datetime], now: datetime) -> dict[int, datetime]:
    """Note which firing alerts Alertmanager knows, end those that it has not known for long, and return since when others are missing."""
    still: dict[int, datetime] = {}
    heard = []
    firing = Alert.objects.filter(ended_at=None).only("fingerprint", "name", "heard_at")
    for alert in firing.order_by("pk")[: 10 * MOST]:
        if alert.fingerprint in fingerprints:
            if now - alert.heard_at > HEARD:
                heard.append(alert.pk)
            continue
        since = missing.get(alert.pk, now)
        if now - since < MISSING or now - alert.heard_at < MISSING:
            still[alert.pk] = since
        elif Alert.objects.filter(pk=alert.pk, ended_at=None, heard_at=alert.heard_at).update(ended_at=now):
            logger.info("an alert is over, Alertmanager no longer knows it alert=%s", alert.name)
    Alert.objects.filter(pk__in=heard).update(heard_at=now)
    return still


class SilenceSynchronizer:
    """Passes silences on, and takes in those of Alertmanager."""

    def __init__(self, alertmanager: AlertmanagerApi, database: Database, clock: Callable[[], datetime]) -> None:
        self._alertmanager = alertmanager
        self._database = database
        self._clock = clock
        self._missing: dict[int, datetime] = {}

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("silences", LOOK_SECONDS, self.run_once)

    async def run_once(self) -> None:
        """Compare both sides once. Raise what Alertmanager says when it does not answer, or does not take it."""
        # While it does not answer, nothing is missing.
        missing, self._missing = self._missing, {}
        rows = await self._database(silences_to_pass, self._clock())
        try:
            await self._sync_all(rows)
        except (AlertmanagerGone, AlertmanagerRefused) as gone:
            await self._database(note_gone, [row.pk for row in rows], str(gone)[:_PROBLEM])
            raise
        known = await self._alertmanager.fingerprints()
        self._missing = await self._database(note_known, known, missing, self._clock())

    async def _sync_all(self, rows: Sequence[AlertSilence]) -> None:
        """Pass each silence on, and note why one is refused. Raise AlertmanagerGone at once: the others would only wait as long."""
        held = await self._alertmanager.silences() if rows else ()
        for row in rows:
            try:
                await self._pass(row, held)
            except AlertmanagerRefused as refused:
                await self._database(note, row.pk, alertmanager_problem=str(refused)[:_PROBLEM])

    async def _pass(self, row: AlertSilence, held: Sequence[KnownSilence]) -> None:
        """Make Alertmanager have what the row says, or the row what Alertmanager has."""
        now = self._clock()
        # A controller that was killed after it had asked knows only the comment; another installation may have the same Alertmanager.
        comment = f"{row.reason} ({settings.DASHBOARD_ORIGIN}/alerts/, silence {row.pk})"
        same = [known for known in held if known.id == row.alertmanager_id or known.comment == comment]
        active = [known.id for known in same if not known.is_over]
        if row.ended_by_name or row.until_at <= now:  # the clock of whoever ended it may be ahead
            for id in active:
                await self._alertmanager.end_silence(id)
            if row.alertmanager_id or row.alertmanager_problem:
                await self._database(note, row.pk, alertmanager_id="", alertmanager_problem="")
        elif row.alertmanager_id:
            await self._compare(row, next((known for known in same if known.id == row.alertmanager_id), None))
        else:
            id = (
                active[0]
                if active
                else await self._alertmanager.create_silence(
                    row.matchers, starts_at=now, ends_at=row.until_at, by=row.author_name, comment=comment
                )
            )
            await self._database(note, row.pk, alertmanager_id=id, alertmanager_problem="")

    async def _compare(self, row: AlertSilence, known: KnownSilence | None) -> None:
        if known is None:
            await self._database(note, row.pk, alertmanager_id="")
        elif known.is_over:
            await self._database(note_end_elsewhere, row.pk, self._clock())
        elif abs(known.ends_at - row.until_at) > timedelta(seconds=1):
            await self._database(note_length, row.pk, row.until_at, known.ends_at)
        elif row.alertmanager_problem:
            await self._database(note, row.pk, alertmanager_problem="")
