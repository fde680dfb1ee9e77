"""Turns Kubernetes events into lines of a history; pure."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id, namespaced
from grid.core.translation import gettext as _
from grid.kube.objects import Event

_WORDS = {
    "TriggeredScaleUp": _("A pod makes the pool grow"),
    "NotTriggerScaleUp": _("Scale-up would not help"),
    "ScaledUpGroup": _("The pool grows"),
    "FailedToScaleUpGroup": _("The pool could not grow"),
    "ScaleDown": _("A node is removed"),
    "ScaleDownEmpty": _("An empty node is removed"),
    "ScaleDownFailed": _("A node could not be removed"),
}


class EventLine(ViewModel, frozen=True, gc=False):
    """One event. `headline` is for people, `reason` is Kubernetes' own word; `about` is "Kind/name"."""

    id: str
    at: datetime | None
    is_warning: bool
    headline: str
    reason: str
    message: str
    about_kind: str
    about_namespace: str
    about_name: str
    reporter: str
    times: int


def headline_of(event: Event) -> str:
    """Return what the event means in words; "" for what has none."""
    return _WORDS.get(event.reason, "")


def event_line(event: Event, *, prefix: str = "event") -> EventLine:
    about = event.involved_object
    return EventLine(
        id=element_id(prefix, namespaced(event.metadata.namespace, event.metadata.name)),
        at=event.last_seen,
        is_warning=event.type != "Normal",
        headline=headline_of(event),
        reason=event.reason,
        message=event.message.strip(),
        about_kind=about.kind,
        about_namespace=about.namespace,
        about_name=about.name,
        reporter=event.reporter,
        times=event.times,
    )


def history(events: Sequence[Event]) -> list[Fragment]:
    """Return an object's own events for the region "events", newest first; `events` are oldest first."""
    lines = [msgspec.structs.replace(event_line(event), about_kind="", about_name="") for event in reversed(events)]
    if not lines:
        empty = EmptyState(_("No events."), _("No recent events. Kubernetes keeps them for about an hour."))
        return [Fragment("events-none", "shell/fragments/empty_item.html", empty, region="events")]
    return [Fragment(line.id, "shell/fragments/event_item.html", line, region="events") for line in lines]
