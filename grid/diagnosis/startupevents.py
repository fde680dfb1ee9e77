"""What the events of a pod say about its start: images, first starts of containers, waits for a node; pure.

An event may be missing, or stand for several of its kind; only the first of a kind counts, because later ones belong to restarts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median

from grid.core.regexes import Expression, RepeatedExpression
from grid.kube.objects import Event, Pod

# Smaller differences are the truncation to seconds, and the way of an event to the API server.
SKEW_LIMIT = timedelta(seconds=2)
# kubelet's pkg/kubelet/images/image_manager.go says both times: of the pull itself, and including the wait for pulls before it, which are
# never exactly alike. From a tenth on, the whole says nothing of how fast this image was pulled.
_WAIT_LEAST, _WAIT_SHARE = 0.5, 0.1
_OF_KUBELET = ("Pulling", "Pulled", "Created", "Started")
_CONTAINER = Expression(r"spec\.(?:containers|initContainers)\{(.+)\}")
_PULLED = Expression(r"^Successfully pulled image .+? in (\S+)(?: \((\S+) including waiting\))?")
_SIZE = Expression(r"Image size: (\d+) bytes")
_PART = RepeatedExpression(r"(\d+(?:\.\d+)?)(h|ms|m|s|µs|us|ns)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, slots=True)
class ImageEvents:
    """The image of one container, which is on the node. `wanted_at` is None when only its arrival is known, `size` when it is not known
    in bytes or nothing was pulled. `has_waited` when others' pulls came first."""

    container: str
    wanted_at: datetime | None
    there_at: datetime
    was_present: bool
    size: int | None = None
    has_waited: bool = False


@dataclass(frozen=True, slots=True)
class StartEvents:
    """The moments of one start. `skew` is how far the node's clock is ahead of the API server's, zero unless it is clearly so. `pulls` says
    since when images are pulled that are not there yet, by container."""

    images: Sequence[ImageEvents] = ()
    pulls: Mapping[str, datetime] = field(default_factory=dict)
    # By container the first; "" for events that name none.
    started: Mapping[str, datetime] = field(default_factory=dict)
    scheduled_at: datetime | None = None
    no_room_at: datetime | None = None
    scale_up_at: datetime | None = None
    skew: timedelta = timedelta()

    @property
    def pulling_at(self) -> datetime | None:
        """Since when an image that is not there yet is pulled."""
        return min(self.pulls.values(), default=None)

    def corrected(self, node_time: datetime | None) -> datetime | None:
        """Return a time of the node's clock as one of the API server's."""
        return None if node_time is None else node_time - self.skew


def start_events(events: Iterable[Event], pod: Pod | None = None) -> StartEvents:
    """Return what the events say, in whatever order they are; those about another pod of the same name are left out."""
    uid = pod.metadata.uid if pod is not None else ""
    of_pod = (event for event in events if not uid or event.involved_object.uid in ("", uid))
    own = [event for event in of_pod if _first_seen(event) is not None]
    skew, asked, arrived = _skew(own), _first(own, "Pulling"), _first(own, "Pulled")
    images = [_image(name, asked.get(name), arrival, skew) for name, arrival in arrived.items()]
    return StartEvents(
        images=sorted(images, key=lambda image: image.there_at),
        pulls={name: _at(pull, skew) for name, pull in asked.items() if name not in arrived},
        started={name: _at(event, skew) for name, event in _first(own, "Started").items()},
        scheduled_at=_moment(own, "Scheduled"),
        no_room_at=_moment(own, "FailedScheduling"),
        scale_up_at=_moment(own, "TriggeredScaleUp"),
        skew=skew,
    )


def go_seconds(text: str) -> float | None:
    """Return the seconds of a duration as Go writes it, such as 1m3.5s; None for other texts."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _image(container: str, asked: Event | None, arrived: Event, skew: timedelta) -> ImageEvents:
    at = _at(arrived, skew)
    if "already present on machine" in arrived.message:
        return ImageEvents(container, at, at, was_present=True)
    match, size = _PULLED.match(arrived.message), _SIZE.search(arrived.message)
    took = go_seconds(match[2] or match[1]) if match else None
    asked_at = _at(asked, skew) if asked is not None else None
    if asked_at is not None and asked_at > at:
        asked_at = None  # of a later pull; the first was lost
    if asked_at is None and took is not None:
        asked_at = at - timedelta(seconds=took)
    elif asked_at is not None and took is not None and asked is not None and asked.times == 1:
        at = asked_at + timedelta(seconds=took)  # exact, where both events are truncated to seconds
    own = go_seconds(match[1]) if match else None
    has_waited = took is not None and own is not None and took - own > max(_WAIT_LEAST, _WAIT_SHARE * took)
    known_size = int(size[1]) if size else None
    return ImageEvents(container, asked_at, at, was_present=False, size=known_size, has_waited=has_waited)


def _first(events: Iterable[Event], reason: str) -> dict[str, Event]:
    """Return the first event of this reason of each container, by its name."""
    firsts: dict[str, Event] = {}
    of_reason = [event for event in events if event.reason == reason]
    for event in sorted(of_reason, key=lambda event: (_at(event, timedelta()), event.metadata.name)):
        field_path = _CONTAINER.fullmatch(event.involved_object.field_path)
        firsts.setdefault(field_path[1] if field_path else "", event)
    return firsts


def _first_seen(event: Event) -> datetime | None:
    return event.first_timestamp or event.event_time or event.metadata.creation_timestamp


def _at(event: Event, skew: timedelta) -> datetime:
    at = _first_seen(event)
    assert at is not None, "events without any time are left out"
    return at - skew


def _moment(events: Iterable[Event], reason: str) -> datetime | None:
    """Return when the first event of this reason reached the API server, whose clock the pod's own times have."""
    times = (event.metadata.creation_timestamp or _first_seen(event) for event in events if event.reason == reason)
    return min((at for at in times if at is not None), default=None)


def _skew(events: Iterable[Event]) -> timedelta:
    """Estimate how far the node's clock is ahead: its events carry both its time and the API server's."""
    both = [
        (event.first_timestamp - event.metadata.creation_timestamp).total_seconds()
        for event in events
        if event.reason in _OF_KUBELET and event.first_timestamp and event.metadata.creation_timestamp
    ]
    skew = timedelta(seconds=median(both)) if both else timedelta()
    return skew if abs(skew) > SKEW_LIMIT else timedelta()
