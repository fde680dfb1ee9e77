"""Remembers in the database how far each execution's log was sent, synchronously."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from grid.logs.logplace import LogPlace
from grid.models import Execution, ShippedLog


@dataclass(slots=True)
class ShippingProgress:
    """What has become of an execution's lines since the last note; `places` is how far each pod's log was sent, None when it is gone."""

    sent: int = 0
    lost: int = 0
    places: dict[str, LogPlace | None] = field(default_factory=dict)


def read_places(executions: Collection[str]) -> Mapping[str, Mapping[str, LogPlace]]:
    """Return how far the logs of the executions' pods were sent."""
    rows = ShippedLog.objects.filter(pk__in=executions).values_list("pk", "places")
    return {id: {pod: LogPlace(*place) for pod, place in places.items()} for id, places in rows}


def note(progress: Mapping[str, ShippingProgress], *, now: datetime) -> None:
    """Note it for each execution that there still is."""
    with transaction.atomic():
        there = Execution.objects.filter(pk__in=progress).order_by("pk").values_list("pk", flat=True)
        ShippedLog.objects.bulk_create([ShippedLog(execution_id=id, at=now) for id in there], ignore_conflicts=True)
        # Locked in one order, so that two leaders at once wait for each other and count each line.
        rows = list(ShippedLog.objects.select_for_update().filter(pk__in=progress).order_by("pk"))
        for row in rows:
            new = progress[row.pk]
            row.places = moved_on(row.places, new.places)
            row.sent, row.lost, row.at = row.sent + new.sent, row.lost + new.lost, now
        ShippedLog.objects.bulk_update(rows, ["places", "sent", "lost", "at"])


def moved_on(
    places: Mapping[str, Sequence[str | int]], new: Mapping[str, LogPlace | None]
) -> dict[str, Sequence[str | int]]:
    """Return the places with the newer ones among `new`; those of pods that are gone are left out."""
    kept = dict(places)
    for pod, place in new.items():
        if place is None:
            kept.pop(pod, None)
        elif pod not in kept or LogPlace(*kept[pod]).is_before(place):  # type: ignore[arg-type]
            kept[pod] = [place.second, place.lines, place.latest]
    return kept
