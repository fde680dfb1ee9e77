"""What the autoscaler did lately, told by cause: what it says of 200 pods in the same words is one line; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zlib import crc32

from dashboard.shell.viewmodels.element_ids import element_id
from dashboard.shell.viewmodels.events import headline_of
from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.kube.objects import Event

REGION = "activity"
EVENTS_READ = 200
LINES_SHOWN = 20
NAMED = 3  # objects of a line that are named; the others are counted


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """One cause. `at` is when it was told last; `objects` are the latest pods or nodes that it was told of, as (kind, namespace, name),
    and `count` says in words how many there are. `reason` and `message` are Kubernetes' own words."""

    at: datetime | None
    is_warning: bool
    headline: str
    reason: str
    message: str
    objects: tuple[tuple[str, str, str], ...]
    count: str


def activity(events: Sequence[Event]) -> list[Fragment]:
    """Return the region "activity", the latest cause first; `events` are the autoscaler's, oldest first."""
    causes: dict[tuple[str, str, str], list[Event]] = {}
    for event in reversed(events[-EVENTS_READ:]):
        causes.setdefault((event.reason, event.message.strip(), event.involved_object.kind), []).append(event)
    if not causes:
        empty = EmptyState(_("Nothing yet."), _("Scale-ups and removals of nodes appear here as they happen."))
        return [Fragment("activity-none", "shell/fragments/empty_item.html", empty, region=REGION)]
    return [
        Fragment(
            element_id("cause", reason, f"{crc32(f'{message} {kind}'.encode()):08x}"),
            "nodes/fragments/activity_item.html",
            _line(events),
            region=REGION,
        )
        for (reason, message, kind), events in list(causes.items())[:LINES_SHOWN]
    ]


def _line(events: Sequence[Event]) -> ActivityLine:
    latest = events[0]
    involved = (event.involved_object for event in events)
    objects = tuple(dict.fromkeys((about.kind, about.namespace, about.name) for about in involved))
    word = latest.involved_object.kind.lower() or "object"
    return ActivityLine(
        at=latest.last_seen,
        is_warning=latest.type != "Normal",
        headline=headline_of(latest) or latest.reason,
        reason=latest.reason,
        message=latest.message.strip(),
        objects=objects[:NAMED],
        count=plural(len(objects), word, f"{word}s") if len(objects) > 1 else "",
    )
