"""Lines of logs that wait to be sent, within bounds: a portion of one log at a time; pure."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grid.core.labels import APP_COMPONENT, HEAD, KEYS, WORKER
from grid.executions.caches import execution_of
from grid.executions.manifests import CONTAINER
from grid.kube.objects import ContainerStatus, Pod
from grid.logs.logplace import CUT_BYTES, START, LogPlace, PlacedReading
from grid.models.environment import Kind

_CUT = " … (cut)"
_OVERHEAD = 200  # bytes of a line in memory beside its text


@dataclass(frozen=True, slots=True)
class LineSource:
    """Where lines come from: a container of an execution's pod."""

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
    """Takes in the new lines of a log. `has_gap` when lines before them are gone: the log was rotated since it was read last. With
    `is_another` the place is in the log of the run before."""

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
        self.lines.append(LoggedLine(stamp, shown + _CUT * is_cut))


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
        """Add the portion; return those that had to make room."""
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


_ENDED = ("Succeeded", "Failed")


def source_of(pod: Pod) -> LineSource:
    """Return what a pod's lines are of."""
    labels = pod.metadata.labels
    kind = labels.get(APP_COMPONENT, "")
    return LineSource(
        execution=execution_of(pod),
        kind=Kind.CLUSTER.value if kind in (HEAD, WORKER) else kind,
        project=labels.get(KEYS.project, ""),
        user=labels.get(KEYS.user, ""),
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        container=CONTAINER,
    )


def has_run(pod: Pod) -> bool:
    """Return whether there is a log to read."""
    status = _program(pod)
    return status is not None and (status.state.waiting is None or status.restart_count > 0)


def has_ended(pod: Pod) -> bool:
    """Return whether no more will be written."""
    status = _program(pod)
    is_last = status is not None and status.state.terminated is not None and pod.spec.restart_policy == "Never"
    return is_last or pod.status.phase in _ENDED


def restarts(pod: Pod) -> int:
    """Return how often the container was restarted; each run has a log of its own."""
    status = _program(pod)
    return status.restart_count if status is not None else 0


def _program(pod: Pod) -> ContainerStatus | None:
    return next((status for status in pod.status.container_statuses if status.name == CONTAINER), None)
