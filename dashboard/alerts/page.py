"""Alerts, live: the page for operators, auditors and admins, and the line about critical ones on the open pages of those who operate."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import Case, Q, QuerySet, When
from django.http import QueryDict
from django.utils import timezone

from dashboard.alerts import viewmodel
from dashboard.alerts.viewmodel import AlertLine, SilencesView, critical_fragment
from dashboard.shell.access import Viewer, may_observe, may_operate
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.periodic import Board
from dashboard.shell.viewmodels.live import Fragment, PageUpdate
from grid.alerts.silences import silence_of, silence_sentence, silences_in_force
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.kube.hub import Topic
from grid.models import Alert, AlertSilence
from grid.runtime import Runtime

PER_PAGE = 50
MOST_FIRING = 200
MOST_SILENCES = 200
MOST_CRITICAL = 200  # that are looked at for the line on all pages
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_CURSOR = Expression(r"([0-9]{1,16})-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class AlertsRead:
    firing: viewmodel.FiringView
    silences: tuple[viewmodel.SilenceLine, ...]
    ended: viewmodel.EndedView


def read_alerts(before: str, now: datetime) -> AlertsRead:
    """Return what fires, what somebody is needed for first, and a page of what is over: the one behind the cursor `before`."""
    has_alertmanager = bool(settings.ALERTMANAGER_URL)
    lines = tuple(viewmodel.silence_line(silence, now, has_alertmanager=has_alertmanager) for silence in _listed(now))
    return AlertsRead(_firing(silences_in_force(now), now), lines, _ended(before, now))


def critical_alerts(now: datetime) -> Sequence[viewmodel.AlertLine]:
    """Return what fires now, is critical and is not silenced, the latest first; what Alertmanager no longer tells of is left out."""
    rows = Alert.objects.filter(ended_at=None, severity__in=viewmodel.URGENT, heard_at__gt=now - viewmodel.SILENT)
    alerts = list(rows.order_by("-started_at", "-pk")[:MOST_CRITICAL])
    silences = silences_in_force(now) if alerts else ()
    return [viewmodel.alert_line(alert, now) for alert in alerts if silence_of(alert.labels, silences) is None]


def _listed(now: datetime) -> QuerySet[AlertSilence]:
    """Return what is in force, and what Alertmanager still has though it was ended here."""
    ended = ~Q(ended_by_name="") & ~Q(alertmanager_id="")
    return AlertSilence.objects.filter(Q(until_at__gt=now) | ended)[:MOST_SILENCES]


def _firing(silences: Sequence[AlertSilence], now: datetime) -> viewmodel.FiringView:
    rows = Alert.objects.filter(ended_at=None)
    # What somebody is needed for now is not to stand behind hundreds of others.
    first = Case(When(severity__in=viewmodel.URGENT, then=0), default=1)
    alerts = list(rows.order_by(first, "-started_at", "-pk")[: MOST_FIRING + 1])
    lines = []
    for alert in alerts[:MOST_FIRING]:
        silence = silence_of(alert.labels, silences)
        lines.append(viewmodel.alert_line(alert, now, silenced=silence_sentence(silence) if silence else ""))
    return viewmodel.FiringView(tuple(lines), rows.count() - MOST_FIRING if len(alerts) > MOST_FIRING else 0)


def _ended(before: str, now: datetime) -> viewmodel.EndedView:
    last = read_cursor(before)
    rows = Alert.objects.filter(ended_at__isnull=False).order_by("-ended_at", "-pk")
    if last is not None:
        rows = rows.filter(Q(ended_at__lt=last[0]) | Q(ended_at=last[0], pk__lt=last[1]))
    alerts = list(rows[: PER_PAGE + 1])
    return viewmodel.EndedView(
        tuple(viewmodel.alert_line(alert, now) for alert in alerts[:PER_PAGE]),
        older=cursor_of(alerts[PER_PAGE - 1]) if len(alerts) > PER_PAGE else "",
        is_later_page=last is not None,
        is_unknown_page=bool(before) and last is None,
    )


def cursor_of(alert: Alert) -> str:
    """Return what names the page after an alert that is over: its end and its key, so that it holds when the alert is deleted."""
    assert alert.ended_at is not None
    return f"{(alert.ended_at - _EPOCH) // _MICROSECOND}-{alert.pk}"


def read_cursor(text: str) -> tuple[datetime, int] | None:
    """Return the end and the key of the last alert that was shown; None for what is no cursor."""
    cursor = _CURSOR.fullmatch(text)
    return (_EPOCH + int(cursor[1]) * _MICROSECOND, int(cursor[2])) if cursor else None


LOOK_SECONDS = 10.0
KEPT_SECONDS = 5.0  # what one page has read serves all others meanwhile
SPREAD_SECONDS = 2.0
_LONGEST = 40  # of what names a page of the list; what is longer names none


class AlertsPage(LivePage[str, AlertsRead]):
    """The view is the cursor of a page of what is over, "" for the newest."""

    name = "alerts"
    refusal = _("Only operators, auditors and admins can see alerts.")
    rest_seconds = 1.0
    tick_seconds = 10.0  # nothing else tells of a new one

    def view(self, query: QueryDict) -> str:
        return str(query.get("before", ""))[:_LONGEST]

    def allowed(self, runtime: Runtime, viewer: Viewer, view: str) -> bool:
        return may_observe(viewer)

    def audience(self, viewer: Viewer) -> Hashable:
        return may_operate(viewer)

    async def read(self, runtime: Runtime, viewer: Viewer, view: str) -> AlertsRead:
        return await database.pages.run(read_alerts, view, timezone.now())

    def topics(self, runtime: Runtime, viewer: Viewer, view: str, facts: AlertsRead) -> Collection[Topic]:
        return ()

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: str, facts: AlertsRead, now: datetime
    ) -> Sequence[Fragment]:
        may_silence = may_operate(viewer)
        firing = replace(facts.firing, may_silence=may_silence)
        return [
            Fragment(
                "alert-silences", "alerts/fragments/alert_silences.html", SilencesView(facts.silences, may_silence)
            ),
            Fragment("alerts-firing", "alerts/fragments/alerts_firing.html", firing),
            Fragment("alerts-ended", "alerts/fragments/alerts_ended.html", facts.ended),
        ]


ALERTS = AlertsPage()
_board = Board[Sequence[AlertLine]](_("critical alerts"), critical_alerts, ())


async def alert_updates(runtime: Runtime, viewer: Viewer) -> AsyncIterator[Sequence[PageUpdate]]:
    """Yield the line about critical alerts whenever it changes, to those who operate; the first time always."""
    if not may_operate(viewer):
        return
    shown = None
    while True:
        await asyncio.sleep(LOOK_SECONDS + random.random() * SPREAD_SECONDS)
        fragment = critical_fragment(await _board.value(KEPT_SECONDS))
        if fragment != shown:
            shown = fragment
            yield [PageUpdate("replace", fragment.id, (fragment,))]
