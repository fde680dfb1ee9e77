"""Silences of alerts: which are in force, of what, and how operators start and end them.

A silence is in force from when its row is written: nobody is notified, and no page has a line. `silence_sync` passes it on to Alertmanager.
The caller checks rights.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from grid.alerts.webhook import LONGEST, MOST_NAMES
from grid.audit.entries import write_entry
from grid.core.errors import rejection
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, moment_words, one_line
from grid.models import Alert, AlertSilence, AuditEntry, User
from grid.models.platform import LONGEST_REASON

MINUTES = (60, 240, 1440)


def silences_in_force(now: datetime) -> Sequence[AlertSilence]:
    return list(AlertSilence.objects.in_force(now))


def silence_of(labels: Mapping[str, str], silences: Iterable[AlertSilence]) -> AlertSilence | None:
    """Return the silence that an alert with these labels is under longest; None for no silence. Pure."""
    matching = [each for each in silences if each.matchers and each.matchers.items() <= labels.items()]
    return max(matching, key=lambda silence: silence.until_at, default=None)


def silence_sentence(silence: AlertSilence) -> str:
    """Return until when nobody is told, who wants that, and why; pure."""
    values = {"author": silence.author_name, "until": moment_words(silence.until_at), "reason": silence.reason}
    return as_sentence(_("Silenced by {author} until {until}: {reason}", **values))


def matchers_for(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels by which a silence finds an alert: those that were stored whole. Pure."""
    return {name: value for name, value in labels.items() if value and len(value) < LONGEST}


@transaction.atomic
def start(alert: Alert, *, minutes: int, reason: str, by: User, now: datetime) -> AlertSilence:
    """Silence an alert, with an audit entry. Raise Rejected with a sentence when it cannot be silenced so."""
    reason = one_line(reason)
    if not reason or len(reason) > LONGEST_REASON:
        sentence = _("Say why in at most {longest} characters: other operators read it.", longest=LONGEST_REASON)
        raise rejection(sentence, path="reason")
    if minutes not in MINUTES:
        raise rejection(_("Choose for how long."), path="minutes")
    until = now + timedelta(minutes=minutes)
    # Of two operators at once the second sees the first one's silence.
    stored = Alert.objects.select_for_update(no_key=True).filter(pk=alert.pk, ended_at=None).first()
    if stored is None:
        raise rejection(_("This alert is over, so there is nothing to silence."))
    matchers = matchers_for(stored.labels)
    if not matchers or len(stored.labels) >= MOST_NAMES:
        sentence = _("This alert has labels too many or too long to be silenced from here. Silence it in Alertmanager.")
        raise rejection(sentence)
    other = silence_of(stored.labels, silences_in_force(now))
    if other is not None and other.until_at >= until - timedelta(minutes=1):
        raise rejection(silence_sentence(other))
    columns = {"name": stored.name, "author_name": by.get_username(), "created_at": now, "until_at": until}
    silence = AlertSilence.objects.create(matchers=matchers, reason=reason, **columns)
    until_words = _("until {until}", until=moment_words(until))
    changes = {"silenced": ["", until_words], "reason": ["", reason], "labels": ["", matchers]}
    write_entry(by, silence, changes, action=AuditEntry.Action.CREATED, at=now)
    return silence


@transaction.atomic
def end(id: int, *, by: User, now: datetime) -> bool:
    """End a silence now, whoever began it, with an audit entry; return False when it has ended already."""
    silence = AlertSilence.objects.select_for_update(no_key=True).in_force(now).filter(pk=id).first()
    if silence is None:
        return False
    was, silence.until_at, silence.ended_by_name = silence.until_at, now, by.get_username()
    silence.save(update_fields=["until_at", "ended_by_name"])
    changes = {"silenced": [_("until {until}", until=moment_words(at)) for at in (was, now)]}
    write_entry(by, silence, changes, action=AuditEntry.Action.ENDED, at=now)
    return True
