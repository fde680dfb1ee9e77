"""Reads alerts for pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import Case, Q, QuerySet, When

from dashboard.alerts import viewmodel
from grid.alerts.silences import silence_of, silence_sentence, silences_in_force
from grid.core.regexes import Expression
from grid.models import Alert, AlertSilence

PER_PAGE = 50
MOST_FIRING = 200
MOST_SILENCES = 200
MOST_CRITICAL = 200  # that are looked at for the line on all pages
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_CURSOR = Expression(r"([0-9]{1,16})-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class AlertsRead:
    """What the page shows."""

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
