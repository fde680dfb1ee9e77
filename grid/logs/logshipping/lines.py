"""Lines of logs that wait to be sent, within bounds, where they come from, and in the database how far each execution's log was sent."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from grid.core.labels import APP_COMPONENT, HEAD, KEYS, WORKER
from grid.executions.caches import execution_of
from grid.executions.manifests import CONTAINER
from grid.kube.objects import ContainerStatus, Pod
from grid.logs.logplace import CUT_BYTES, START, LogPlace, PlacedReading
from grid.models import Execution, ShippedLog
from grid.models.environment import Kind

_OVERHEAD = 200  # bytes of a line in memory beside its text


@dataclass(frozen=True, slots=True)
class LineSource:
    execution: str
    kind: str
    project: str
    user: str
    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """A line with its timestamp in UTC, with nine digits of the second and no zone; "" if none is known."""

    stamp: str
    text: str


@dataclass(frozen=True, slots=True)
class Portion:
    """Lines of one log, read together. Once sent, the log is sent up to `place`, which is forgotten with `is_last`."""

    source: LineSource
    lines: tuple[LoggedLine, ...]
    place: LogPlace
    is_last: bool = False

    @property
    def size(self) -> int:
        return _OVERHEAD + sum(len(line.text.encode()) + _OVERHEAD for line in self.lines)


class LineReading(PlacedReading):
    """Takes in new lines. `has_gap` when the log was rotated since the last reading; with `is_another` the place is of the run before."""

    def __init__(self, place: LogPlace, *, is_another: bool = False) -> None:
        super().__init__(place)
        self.lines: list[LoggedLine] = []
        self.has_gap = False
        self._is_sought = not is_another

    def new_line(self, stamp: str, text: bytes, *, is_too_long: bool) -> None:
        if self._is_sought:
            self._is_sought, self.has_gap = False, self._passed < self._start.lines
        is_cut = is_too_long or len(text) > CUT_BYTES
        # A program may write any bytes; JSON and the receivers take text without NUL.
        shown = text[:CUT_BYTES].decode(errors="replace").replace("\x00", "�").rstrip("\r")
        self.lines.append(LoggedLine(stamp, shown + " … (cut)" * is_cut))


class LineBuffer:
    """Portions that wait, at most so many bytes of them; the oldest make room for newer ones."""

    def __init__(self, most_bytes: int) -> None:
        self.size = 0
        self._most = most_bytes
        self._portions: deque[Portion] = deque()

    def __bool__(self) -> bool:
        return bool(self._portions)

    @property
    def is_half_full(self) -> bool:
        return self.size > self._most // 2

    @property
    def line_count(self) -> int:
        return sum(len(portion.lines) for portion in self._portions)

    def add(self, portion: Portion) -> Sequence[Portion]:
        self._portions.append(portion)
        self.size += portion.size
        dropped = list[Portion]()
        while self.size > self._most and len(self._portions) > 1:
            dropped.append(self._take())
        return dropped

    def take(self, most_bytes: int) -> Sequence[Portion]:
        """Take out the oldest portions, at least one and otherwise so many bytes."""
        taken, size = list[Portion](), 0
        while self._portions and (not taken or size + self._portions[0].size <= most_bytes):
            taken.append(self._take())
            size += taken[-1].size
        return taken

    def _take(self) -> Portion:
        portion = self._portions.popleft()
        self.size -= portion.size
        return portion


def halves(portions: Sequence[Portion]) -> Iterator[Sequence[Portion]]:
    """Yield the portions in two parts, a single one's lines likewise. Only its last part says how far the log was sent."""
    if len(portions) > 1:
        middle = len(portions) // 2
        yield portions[:middle]
        yield portions[middle:]
        return
    (whole,) = portions
    middle = len(whole.lines) // 2
    yield [Portion(whole.source, whole.lines[:middle], START)]
    yield [Portion(whole.source, whole.lines[middle:], whole.place, whole.is_last)]


def source_of(pod: Pod) -> LineSource:
    meta, labels = pod.metadata, pod.metadata.labels
    kind = labels.get(APP_COMPONENT, "")
    about = (
        Kind.CLUSTER.value if kind in (HEAD, WORKER) else kind,
        labels.get(KEYS.project, ""),
        labels.get(KEYS.user, ""),
    )
    return LineSource(execution_of(pod), *about, meta.namespace, meta.name, CONTAINER)


def has_run(pod: Pod) -> bool:
    status = _program(pod)
    return status is not None and (status.state.waiting is None or status.restart_count > 0)


def has_ended(pod: Pod) -> bool:
    """Return whether no more will be written."""
    status = _program(pod)
    is_last = status is not None and status.state.terminated is not None and pod.spec.restart_policy == "Never"
    return is_last or pod.status.phase in ("Succeeded", "Failed")


def restarts(pod: Pod) -> int:
    """Return how often the container was restarted; each run has a log of its own."""
    status = _program(pod)
    return status.restart_count if status is not None else 0


def _program(pod: Pod) -> ContainerStatus | None:
    return next((status for status in pod.status.container_statuses if status.name == CONTAINER), None)


@dataclass(slots=True)
class ShippingProgress:
    """What has become of an execution's lines since the last note; `places` is how far each pod's log was sent, None when it is gone."""

    sent: int = 0
    lost: int = 0
    places: dict[str, LogPlace | None] = field(default_factory=dict)


def read_places(executions: Collection[str]) -> Mapping[str, Mapping[str, LogPlace]]:
    rows = ShippedLog.objects.filter(pk__in=executions).values_list("pk", "places")
    return {id: {pod: LogPlace(*place) for pod, place in places.items()} for id, places in rows}


def note(progress: Mapping[str, ShippingProgress], *, now: datetime) -> None:
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
