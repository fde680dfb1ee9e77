"""Chooses the containers whose logs are shown, and says why there is no log; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Protocol
from urllib.parse import urlencode

from dashboard.logs.viewmodels.log_lines import LEVELS, LogRow, cursor_text, parse_cursor
from grid.core.labels import APP_COMPONENT, HEAD
from grid.core.translation import gettext as _
from grid.kube.objects import ContainerStatus, Pod

MAIN_CONTAINER = "run"
ALL = "all"  # the choice that shows the logs of all pods merged
MERGED_PODS = 24
_ENDED_PHASES = ("Succeeded", "Failed")


class LoggedExecution(Protocol):
    """What the log viewer knows of an execution; `has_members` is true of one that runs in several pods."""

    @property
    def id(self) -> str: ...
    @property
    def object_name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def is_final(self) -> bool: ...
    @property
    def has_members(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What a URL asks of a log; `before` and `after` are cursors, of which one at most is given."""

    pod: str = ""
    container: str = ""
    is_previous: bool = False
    q: str = ""
    level: str = ""
    before: str = ""
    after: str = ""

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> "LogQuery":
        before, after = (cursor_text(parse_cursor(query.get(name, ""))) for name in ("before", "after"))
        level = query.get("level", "")
        return cls(
            pod=query.get("pod", "")[:253],
            container=query.get("container", "")[:63],
            is_previous=query.get("previous") == "1",
            q=query.get("q", "").replace("\x00", "").strip()[:200],
            level=level if level in LEVELS else "",
            before=before,
            after="" if before else after,
        )

    @property
    def is_filter(self) -> bool:
        return bool(self.q or self.level)

    def query(self, **changed: Any) -> str:
        """Return the parameters of this query with the changes, without the empty ones."""
        parameters = {
            "previous" if name == "is_previous" else name: "1" if value is True else value
            for name, value in asdict(replace(self, **changed)).items()
            if value
        }
        return urlencode(parameters)


@dataclass(frozen=True, slots=True)
class LogSource:
    """The container whose log is shown, or the pods whose logs are merged; `pods` and `containers` are the choices."""

    namespace: str
    pod: str  # ALL for several
    container: str
    has_started: bool
    pods: tuple[str, ...]
    containers: tuple[str, ...]
    has_previous: bool = False  # an earlier run of the container, which was restarted
    is_previous: bool = False
    is_live: bool = False  # more may be written
    members: tuple[tuple[str, str], ...] = ()  # what is read: the short name that stands before each line, and the pod


@dataclass(frozen=True, slots=True)
class LogElsewhere:
    """Where all lines of an execution are, when its log is sent to a log receiver; `lost` lines are not there."""

    name: str
    url: str
    lost: int = 0


@dataclass(frozen=True, slots=True)
class LogView:
    page_url: str = ""  # the page that shows the log
    url: str = ""  # the log alone
    asked: LogQuery = field(default_factory=LogQuery)
    source: LogSource | None = None
    rows: Sequence[LogRow] = ()
    before: str = ""  # the cursor of what is earlier; "" when these lines are the first
    after: str = ""
    is_live: bool = False
    seconds: int = 2  # between two requests for newer lines
    has_gap: bool = False  # lines are missing before these
    is_hidden: bool = False  # from who asks; `problem` says why
    note: str = ""
    problem: str = ""
    why_empty: str = ""
    scope: str = ""  # which lines these are, in words
    elsewhere: LogElsewhere | None = None
    levels: ClassVar[Mapping[str, str]] = LEVELS

    @property
    def found_row(self) -> LogRow | None:
        """The last line that the knowledge base knows, of the newest ones: there the page jumps to."""
        if self.asked.before or self.asked.after:
            return None
        return next((row for row in reversed(self.rows) if row.finding), None)

    @property
    def filter_words(self) -> str:
        kind = LEVELS.get(self.asked.level, _("lines")).lower()
        words = _("Only {kind} with “{text}”.") if self.asked.q else _("Only {kind}.")
        return words.format(kind=kind, text=self.asked.q)

    @property
    def choices(self) -> str:
        """Return the query of this log without its place."""
        return self.asked.query(before="", after="")

    @property
    def newest_url(self) -> str:
        return f"{self.page_url}?tab=log&{self.choices}".rstrip("&") + "#log"

    @property
    def cleared_url(self) -> str:
        return f"{self.page_url}?tab=log&{self.asked.query(before='', after='', q='', level='')}".rstrip("&") + "#log"

    @property
    def earlier_url(self) -> str:
        return f"{self.page_url}?tab=log&{self.asked.query(before=self.before, after='')}#log"

    @property
    def download_url(self) -> str:
        return f"{self.url}?download=1&{self.asked.query(before='', after='', q='', level='')}".rstrip("&")


def all_source(pods: Sequence[Pod]) -> LogSource | None:
    """Return the source of all the cluster's pods merged, in which each pod is also a choice; None without pods."""
    if not pods:
        return None
    names = tuple(sorted((pod.metadata.name for pod in pods), key=lambda name: ("-head-" not in name, name)))
    started = [pod for pod in pods if _has_started(pod, MAIN_CONTAINER)]  # the head first, then the newest
    started.sort(key=lambda pod: str(pod.metadata.creation_timestamp or ""), reverse=True)
    started.sort(key=lambda pod: pod.metadata.labels.get(APP_COMPONENT) != HEAD)
    return LogSource(
        namespace=pods[0].metadata.namespace,
        pod=ALL,
        container=MAIN_CONTAINER,
        has_started=bool(started),
        pods=(ALL, *names),
        containers=(MAIN_CONTAINER,),
        is_live=any(pod.status.phase not in _ENDED_PHASES for pod in pods),
        members=_members(started),
    )


def log_source(pods: Sequence[Pod], asked: LogQuery, *, main: str) -> LogSource | None:
    """Return the requested pod, container and run where they exist, else the main pod and its main container; None without pods."""
    if not pods:
        return None
    by_name = {pod.metadata.name: pod for pod in sorted(pods, key=lambda pod: pod.metadata.name)}
    pod = by_name.get(asked.pod) or by_name.get(main) or next(iter(by_name.values()))
    first = [container.name for container in pod.spec.init_containers]
    containers = [*first, *(container.name for container in pod.spec.containers)]
    usual = MAIN_CONTAINER if MAIN_CONTAINER in containers else containers[-1] if containers else ""
    chosen = asked.container if asked.container in containers else usual
    status = _status(pod, chosen)
    has_previous = status is not None and (status.restart_count > 0 or bool(status.last_state.terminated))
    is_previous = has_previous and asked.is_previous
    has_ended = pod.status.phase in _ENDED_PHASES or (chosen in first and bool(status and status.state.terminated))
    return LogSource(
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        container=chosen,
        has_started=_has_started(pod, chosen),
        pods=tuple(by_name),
        containers=tuple(containers),
        has_previous=has_previous,
        is_previous=is_previous,
        is_live=not is_previous and not has_ended,
        members=(("", pod.metadata.name),),
    )


def _members(pods: Sequence[Pod]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a pod's short name ("head", or its random suffix; a second head has both) and its name."""
    members: dict[str, str] = {}
    for pod in pods:
        name = pod.metadata.name
        suffix = name.rpartition("-")[2]
        short = HEAD if pod.metadata.labels.get(APP_COMPONENT) == HEAD else suffix
        members[f"{short}-{suffix}" if short in members else short] = name
    return tuple(members.items())


def why_no_log(record: LoggedExecution) -> str:
    if record.is_final:
        return _("No log was kept: its program did not start, or wrote nothing.")
    if record.state == "stopping":
        return _("Its program has ended; its last lines appear here when the execution has ended.")
    return _("Its program has not started yet. The log appears here as soon as it writes something.")


def _has_started(pod: Pod, container: str) -> bool:
    status = _status(pod, container)
    return status is not None and bool(status.state.running or status.state.terminated or status.last_state.terminated)


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return next((status for status in statuses if status.name == container), None)
