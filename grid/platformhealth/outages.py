"""Incidents that no leader records: of a web process that meets an outage while nobody leads, and of a controller that cannot work.

Nobody knows who will be there when it is over, so such an incident always has an end, which is moved on as long as it lasts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from grid.core.translation import gettext as _
from grid.models import PlatformIncident, PlatformReport

NOTE_SECONDS = 5.0
LEAST = timedelta(seconds=5)  # nobody notices a shorter outage
_GOES_ON = timedelta(seconds=4 * NOTE_SECONDS)  # since it was noted last
# What keeps a controller from leading, though another may lead, and what keeps the leader from its work.
CANDIDATE, LEADER = "controller-candidate", "controller-leader"


@dataclass(frozen=True, slots=True)
class Outage:
    """A part that does not work; its sentence begins with the kind of trouble, and a colon."""

    part: str
    sentence: str
    since: datetime


def note(data_plane: str, outage: Outage, now: datetime) -> None:
    """Record that the outage goes on, unless it is too short or a leader's incident of this part does. Several processes may note it."""
    if now - outage.since < LEAST:
        return
    kind = outage.sentence.partition(":")[0]
    with transaction.atomic():
        report = PlatformReport.objects.select_for_update().filter(pk=data_plane).first()  # one after the other
        if report is None and outage.part == "controller":  # none has led yet: all is only being started
            return
        present = _present(data_plane, (outage.part,), now).filter(Q(ended_at=None) | Q(sentence__startswith=kind))
        if present.exists():
            present.exclude(ended_at=None).update(ended_at=now)
            return
        PlatformIncident.objects.create(
            data_plane=data_plane,
            part=outage.part,
            name=_("API server") if outage.part == "api-server" else _("Controller"),
            sentence=outage.sentence,
            at=outage.since,
            ended_at=now,
        )


def present_failure(data_plane: str, now: datetime) -> Outage | None:
    """Return what a controller that runs lacks, as it noted itself; None when none says so."""
    incident = _present(data_plane, (LEADER, CANDIDATE), now).order_by("-part").first()
    return None if incident is None else Outage(incident.part, incident.sentence, incident.at)


def explains_absence(data_plane: str, since: datetime) -> bool:
    """Return whether an incident says why no controller worked after `since`."""
    parts = ("controller", LEADER, CANDIDATE)
    return PlatformIncident.objects.filter(data_plane=data_plane, part__in=parts, ended_at__gt=since).exists()


def _present(data_plane: str, parts: Sequence[str], now: datetime) -> QuerySet[PlatformIncident]:
    recent = Q(ended_at=None) | Q(ended_at__gte=now - _GOES_ON)
    return PlatformIncident.objects.filter(recent, data_plane=data_plane, part__in=parts)
