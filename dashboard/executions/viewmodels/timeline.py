"""An execution's timeline: its states, the cluster's events, and nodes that were added for it; pure.

A stored line and a live event may be the same event; only the live one is then shown, because its count is newer.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from dashboard.executions.viewmodels.execution import ExecutionRecord, Head, LifecycleLine
from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment, element_id
from dashboard.shell.viewmodels.states import state_word
from dashboard.starts.viewmodels.startup import start_text
from grid.core.reasons import Reader
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.kube.objects import Event, Node, true_condition

REGION = "timeline"
ITEMS_SHOWN = 200
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_HEADLINES = {
    "TriggeredScaleUp": _("New node requested"),
    "NotTriggerScaleUp": _("Scale-up would not help"),
    "Nominated": _("A node is chosen or being started"),
    "FailedScheduling": _("No node has room yet"),
    "Scheduled": _("Scheduled on a node"),
    "Pulling": _("Pulling the image"),
    "Pulled": _("Image pulled"),
    "Created": _("Container created"),
    "Started": _("Program started"),
    "Killing": _("Stopping the program"),
    "Unhealthy": _("The program does not answer yet"),
    "BackOff": _("Waiting before the next try"),
    "Failed": "Failed",
    "FailedMount": _("The files could not be attached"),
    "FailedAttachVolume": _("The files could not be attached"),
    "Preempted": _("Preempted by something more urgent"),
    "Evicted": _("Evicted from its node"),
    "TaintManagerEviction": _("Evicted from its node"),
    "NodeNotReady": _("Its node does not answer"),
    "OOMKilling": _("It used more memory than its tier has"),
    "Resized": _("The number of workers was changed by hand"),
    "HeadRestarted": _("The head was asked to restart"),
    "Shared": _("Who may open it was changed"),
    "AccessLost": _("Its owner no longer has access to the project"),
    "AccessRegained": _("Its owner has access to the project again"),
    "WithoutCluster": _("It continues without its cluster"),
    "StopAnnounced": _("About to be stopped"),
    "KeptLonger": _("Kept longer"),
    "StoppedByRule": _("Stopped by a rule"),
    "out_of_memory": _("It used more memory than its tier has"),
    "restarted": _("Program restarted"),
    "head_replaced": _("The head was replaced"),
    "head_restarted": _("The head was started again"),
    "head_out_of_memory": _("The head used more memory than its tier has"),
    "head_lost": _("The head was lost"),
    "worker_restarted": _("A worker was started again"),
    "worker_out_of_memory": _("A worker used more memory than its tier has"),
    "worker_lost": _("A worker was lost"),
    "moved": _("The head is reached at another address"),
    "made_again": _("A deleted object was created again"),
    "not_made_again": _("A deleted object could not be created again"),
    "controller_away": _("The controller was not running"),
    "cluster_away": _("The cluster did not answer"),
    "SuccessfulRescale": _("The number of workers changes"),
    "SuccessfulCreate": _("Pod created"),
    "SuccessfulDelete": _("Pod deleted"),
    "FailedCreate": _("Pod could not be created"),
    "ScalingReplicaSet": _("Pods are added or removed"),
    "FailedGetResourceMetric": _("The load could not be measured"),
    "FailedComputeMetricsReplicas": _("The number of workers could not be computed"),
    "FailedGetExternalMetric": _("The framework's waiting work could not be read"),
    "FailedGetScale": _("The number of workers could not be read"),
    "FailedRescale": _("The number of workers could not be changed"),
}

# By reasons, what puts the messages of events into plain words; kinds register theirs.
EVENT_WORDS: dict[str, Callable[[str], str]] = {}
_COUNTS_STARTS = frozenset(
    {"restarted", "out_of_memory", "head_restarted", "head_out_of_memory", "worker_restarted", "worker_out_of_memory"}
)

# Kubernetes' timestamps are whole seconds; steps within the same second are ordered from cause to effect.
_COURSE = (
    "queued", "deploying", "FailedScheduling", "TriggeredScaleUp", "NotTriggerScaleUp", "Nominated", "joined", "ready", "Scheduled",
    "preparing", "Pulling", "Pulled", "Created", "Started", "Unhealthy", "running", "Killing",
)  # fmt: skip
_PLACES = {step: place for place, step in enumerate(_COURSE)}
_UNREAD = frozenset({"FailedGetResourceMetric", "FailedGetExternalMetric"})
_USUAL = _UNREAD | {"FailedScheduling", "Unhealthy", "FailedComputeMetricsReplicas"}


@dataclass(frozen=True, slots=True)
class TimelineItem:
    """One item. `is_raw` says that `message`, `reason` and `about` are Kubernetes' own words and no sentence of ours."""

    at: datetime | None
    mark: str
    headline: str
    message: str
    reason: str = ""
    about: str = ""
    actor: str = ""
    times: int = 1
    is_raw: bool = False


_TOGETHER = timedelta(minutes=1)
_Placed = tuple[str, str, TimelineItem]
"""The element's id, the step in `_COURSE` or another one, and the item."""


def timeline(
    record: ExecutionRecord,
    events: Sequence[Event],
    nodes: Iterable[Node],
    *,
    assigned_node: str,
    to_owner: bool = False,
) -> list[Fragment]:
    """Return the items of the region "timeline", newest first. `nodes` are the nodes of the execution's pool."""
    seen, reader = {event.metadata.uid for event in events}, record.reader(is_owner=to_owner)
    items: list[_Placed] = []
    for line in record.lifecycle:
        if not line.event_uid or line.event_uid not in seen:
            step = line.to_state or line.reason
            id = element_id("event", line.event_uid) if line.event_uid else element_id("state", step)
            items.append((id, step, _stored(line, reader)))
    items += [(element_id("event", it.metadata.uid or it.metadata.name), it.reason, _live(it)) for it in events]
    for node in nodes:
        items += _arrival(node, record, assigned_node)
    items.sort(key=_when, reverse=True)
    items = _together(_without_echoes(items)) if record.has_members else items
    if not items:
        empty = EmptyState(_("Nothing yet."), _("Every step appears here as it happens."))
        return [Fragment("timeline-none", "shell/fragments/empty_item.html", empty, region=REGION)]
    return [
        Fragment(id, "executions/fragments/timeline_item.html", item, region=REGION)
        for id, _, item in items[:ITEMS_SHOWN]
    ]


def _together(items: Sequence[_Placed]) -> list[_Placed]:
    """Merge the same event of several of a cluster's pods within a minute into one item, without messages that differ in names."""
    merged: list[_Placed] = []
    pods: set[str] = set()
    for id, step, item in items:
        before = merged[-1][2] if merged else None
        are_pods = before is not None and (len(pods) > 1 or before.about.startswith("Pod/"))
        if before is not None and are_pods and _is_same(before, item, is_other=pods != {item.about}):
            pods.add(item.about)
            message = item.message if item.message == before.message else ""
            merged[-1] = (id, step, replace(before, message=message, about=plural(len(pods), "pod", "pods"), times=1))
        else:
            pods = {item.about}
            merged.append((id, step, item))
    return merged


def _is_same(newer: TimelineItem, older: TimelineItem, *, is_other: bool) -> bool:
    """Return whether both are the same event of pods. Their messages may differ only between different pods, and only without problems."""
    is_pod = older.about.startswith("Pod/")
    is_near = newer.at is not None and older.at is not None and _near(newer.at, older.at)
    may_differ = is_other and not (newer.mark or older.mark)
    return is_pod and is_near and newer.reason == older.reason and (may_differ or newer.message == older.message)


def _without_echoes(items: Sequence[_Placed]) -> list[_Placed]:
    """Drop the second of the two events that an autoscaler writes when it cannot read a metric: the one about its computation."""
    unread = [item.at for _, _, item in items if item.reason in _UNREAD and item.at]

    def is_echo(item: TimelineItem) -> bool:
        at = item.at
        is_computed = item.reason == "FailedComputeMetricsReplicas"
        return is_computed and at is not None and any(_near(at, moment) for moment in unread)

    return [placed for placed in items if not is_echo(placed[2])]


def _near(moment: datetime, other: datetime) -> bool:
    return abs(moment - other) <= _TOGETHER


def _when(placed: _Placed) -> tuple[datetime, int, datetime, str]:
    id, step, item = placed
    at = item.at or _LONG_AGO
    return at.replace(microsecond=0), _PLACES.get(step, len(_COURSE)), at, id


def lifecycle_text(
    record: ExecutionRecord, *, to_owner: bool = False, may_read: bool = True, present: Head | None = None
) -> str:
    """Return the stored history as text, oldest first, for download; with what was found in the log for those who may read it."""
    names = {"object_name": record.object_name, "title": record.name.strip(), "project": record.project_name}
    lines = [_("# {object_name} ({title}), project {project}, tier {tier}", **names, tier=record.tier_name)]
    reader = record.reader(is_owner=to_owner)
    for line in record.lifecycle:
        what = state_word(line.to_state) if line.to_state else line.about
        times = _(" ({count} times)", count=_times(line)) if _times(line) > 1 else ""
        actor = _(" by {actor}", actor=line.actor) if line.actor else ""
        lines.append(f"{_utc(line.at)}  {line.level:<7}  {what}: {line.reason}{actor}: {line.words(reader)}{times}")
    lines += [f"# {start_text(record.start)}"] if record.start is not None else []
    for known in record.findings if may_read else ():
        cause = {"meaning": known.meaning, "cure": known.cure, "line": known.line}
        lines.append(_("# Found in its log: {meaning} {cure} | {line}", **cause))
    if present is not None and not record.is_final:
        lines += [_("# Now: {sentence}", sentence=sentence) for sentence in _now(present)]
    return "\n".join(" ".join(line.splitlines()) for line in lines) + "\n"


def _now(present: Head) -> Iterator[str]:
    """Yield what the page says: the state, its cause, the next step, what is expected, and what keeps it off which nodes."""
    yield ": ".join(filter(None, (present.status.word, f"{present.status.note} {present.advice}".strip())))
    if present.wait is not None:
        yield f"{present.wait.sentence} {present.wait.why}".strip()
    for row in present.reasons.rows if present.reasons is not None else ():
        names = _("{names} and {more} more", names=row.names, more=row.more) if row.more else row.names
        names = f" ({names})" if row.names else ""
        until = _(", until {until}", until=_utc(row.evidence.until)) if row.evidence.until is not None else ""
        yield f"{plural(row.evidence.nodes, 'node', 'nodes')}{names}: {row.evidence.what} [{row.lasting.lower()}{until}]"


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _item(at: datetime | None, level: str, reason: str, message: str, about: str, times: int) -> TimelineItem:
    """Return the item of an event; a warning is a problem, except for those that Kubernetes writes on every normal start."""
    mark = "problem" if level != "Normal" and reason not in _USUAL else ""
    return TimelineItem(at, mark, _HEADLINES.get(reason, reason), message, reason, about, times=times)


def _in_words(item: TimelineItem) -> TimelineItem:
    """Return an item in our words, where there are any. Kubernetes' reasons are CamelCase; those in small letters are ours."""
    if item.reason in EVENT_WORDS:
        return replace(item, message=EVENT_WORDS[item.reason](item.message))
    return item if item.reason.islower() else replace(item, is_raw=True)


def _stored(line: LifecycleLine, reader: Reader) -> TimelineItem:
    if line.to_state:
        mark = "problem" if line.to_state in ("failed", "error") else "ok" if line.to_state == "running" else ""
        return TimelineItem(line.at, mark, state_word(line.to_state), line.words(reader), actor=line.actor)
    item = _item(line.at, line.level, line.reason, line.words(reader), line.about, _times(line))
    return _in_words(item) if line.event_uid else item


def _times(line: LifecycleLine) -> int:
    """Return how often the event happened; 1 for lines whose count is the program's starts, which their message gives."""
    return 1 if line.reason in _COUNTS_STARTS else line.count


def _live(event: Event) -> TimelineItem:
    about = f"{event.involved_object.kind}/{event.involved_object.name}"
    return _in_words(_item(event.last_seen, event.type, event.reason, event.message.strip(), about, event.times))


def _arrival(node: Node, record: ExecutionRecord, assigned_node: str) -> list[_Placed]:
    """Return the items of a node that joined after the launch (in whole seconds), if it is the assigned node or none is assigned yet."""
    name, created = node.metadata.name, node.metadata.creation_timestamp
    if created is None or created < record.requested_at.replace(microsecond=0) or record.is_final:
        return []
    if assigned_node and name != assigned_node:
        return []

    def placed(step: str, at: datetime, headline: str, message: str) -> _Placed:
        return element_id(step, name), step, TimelineItem(at, "", headline, message, about=f"Node/{name}")

    arrival = [placed("joined", created, _("A new node joined"), _("{name} is starting up.", name=name))]
    ready = true_condition(node, "Ready")
    ready_at = max(ready.last_transition_time or created, created) if ready else None
    # A node that became ready again after the start has no part in how this execution came to run.
    if ready_at is not None and (record.started_at is None or ready_at <= record.started_at):
        arrival.append(placed("ready", ready_at, _("The new node is ready"), _("{name} accepts pods.", name=name)))
    return arrival
