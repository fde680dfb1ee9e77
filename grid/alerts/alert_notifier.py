"""Notifies operators and admins of alerts: once when one fires, once when it is over, and of many at once in one message.

The leading controller looks every ten seconds, tells what it finds at the next look, and at most once a minute: a broken node makes many
alerts fire within seconds. What is told is marked in the transaction of its notifications, so it is told once, whoever is killed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from grid.accounts.backend import OPERATORS
from grid.alerts.silences import silence_of, silences_in_force
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import as_sentence, listed, listed_up_to, one_line
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.models import Alert, User
from grid.notifications.outbox import tell_of_alerts

LOOK_SECONDS = 10.0
GAP = timedelta(minutes=1)  # between two messages
MOST = 2000  # alerts that are looked at together, silenced ones among them
NAMED = 10
_UNTOLD = Q(told_at=None, ended_at=None)
_ENDS_UNTOLD = Q(ended_at__isnull=False, end_told_at=None)


def has_unsent(now: datetime) -> bool:
    """Return whether operators have to be told of anything, or an end has to be marked as nothing to tell."""
    return any(_unsent(now))


@transaction.atomic
def tell_operators(*, now: datetime) -> int:
    """Notify operators and admins of what fires and what is over and was not told yet; return how many alerts that were."""
    firing, over, quiet = _unsent(now, for_update=True)
    Alert.objects.filter(pk__in=[alert.pk for alert in firing]).update(told_at=now)
    Alert.objects.filter(pk__in=[alert.pk for alert in (*over, *quiet)]).update(end_told_at=now)
    if not firing and not over:
        return 0
    first = (firing or over)[0]
    path = f"/alerts/#alert-{first.pk}" if len(firing) + len(over) == 1 else "/alerts/"
    may_operate = Q(is_superuser=True) | Q(groups__name=OPERATORS)
    for user in User.objects.filter(may_operate, is_active=True).distinct().order_by("pk"):
        tell_of_alerts(user, title_of(firing, over), sentence_of(firing, over), path=path, now=now)
    return len(firing) + len(over)


def title_of(firing: Sequence[Alert], over: Sequence[Alert]) -> str:
    """Return what has happened, without a full stop; pure."""
    parts = []
    if firing:
        several = ngettext("{count} alert fires", "{count} alerts fire", len(firing))
        parts.append(_("{alert} fires", alert=_name(firing[0])) if len(firing) == 1 else several)
    if over:
        several = ngettext("{count} alert is over", "{count} alerts are over", len(over))
        parts.append(_("{alert} is over", alert=_name(over[0])) if len(over) == 1 else several)
    return listed(parts)


def sentence_of(firing: Sequence[Alert], over: Sequence[Alert]) -> str:
    """Return what is wrong: of one alert its own words, of several their names; pure."""
    if len(firing) == 1 and not over:
        words = [firing[0].annotations.get(name, "") for name in ("summary", "description")]
        sentences = [as_sentence(one_line(text)) for text in words if text.strip()]
        return " ".join(sentences) or _("The rule does not say more.")
    parts = [_("Firing: {alerts}.", alerts=_named(firing))] if firing else []
    if over:
        parts.append(_("Over: {alerts}.", alerts=_named(over)))
    return " ".join(parts)


def _name(alert: Alert) -> str:
    return one_line(alert.name)[:100]


def _named(alerts: Sequence[Alert]) -> str:
    """Return the names, each once and the most frequent first, with how many of it there are."""
    counts = Counter(sorted(map(_name, alerts))).most_common()
    return listed_up_to(NAMED, [name if count == 1 else f"{name} ({count})" for name, count in counts])


def _untold() -> QuerySet[Alert]:
    return Alert.objects.filter(_UNTOLD | _ENDS_UNTOLD)


def _unsent(now: datetime, *, for_update: bool = False) -> tuple[list[Alert], list[Alert], list[Alert]]:
    """Return what fires and what is over to tell operators, and what is over that they never knew, which has to be marked all the same."""
    rows = Alert.objects.select_for_update() if for_update else Alert.objects
    alerts = list(rows.filter(_UNTOLD | _ENDS_UNTOLD).order_by("started_at", "pk")[:MOST])
    silences = silences_in_force(now) if alerts else ()
    firing, over, quiet = list[Alert](), list[Alert](), list[Alert]()
    for alert in alerts:
        is_silenced = silence_of(alert.labels, silences) is not None
        if alert.ended_at is not None:
            (quiet if is_silenced or alert.told_at is None else over).append(alert)
        elif not is_silenced:
            firing.append(alert)
    return firing, over, quiet


class AlertNotifier:
    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._is_waiting = False
        self._told_at: datetime | None = None

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("alert notices", LOOK_SECONDS, self.run_once, work=lambda now: _untold())

    async def run_once(self) -> None:
        """Tell what was there at the run before, with what has come since, unless something was told within the last minute."""
        now = self._clock()
        if not self._is_waiting:
            self._is_waiting = await self._database(has_unsent, now)
        elif self._told_at is None or not timedelta(0) <= now - self._told_at < GAP:
            self._is_waiting = False
            if await self._database(tell_operators, now=now):
                self._told_at = now
