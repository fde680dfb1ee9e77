"""One execution's page: its state and the cause, the steps of its life with their times, its facts; pure.

`ExecutionRecord` has the stored values, read once for each change; the cluster's present state is laid over it. The stored part stays
true when the pod, its events and its node are gone.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import ClassVar, Literal

from dashboard.executions.viewmodels.node_reasons import NodeReasons, node_reasons
from dashboard.executions.viewmodels.run_files import RunFilesRecord, RunPlace
from dashboard.logs.viewmodels.knowledge import ShownFinding, shown_findings
from dashboard.shell.viewmodels.format import size_words, span
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import ENDED_STATES, StatusLine, kind_name, state_status, state_word
from dashboard.starts.viewmodels.expected_wait import WaitLine
from dashboard.starts.viewmodels.startup import StartMeasures, UsualStart
from dashboard.usage.viewmodels.sizehints import SizeFacts
from dashboard.usage.viewmodels.usage import Spending, price_words
from grid.core.reasons import Reader, Values, words_of
from grid.core.translation import gettext as _
from grid.core.wording import money, plural
from grid.diagnosis.logfindings import LogFinding
from grid.diagnosis.pods import Diagnosis


class KindRecord:
    """The base, and the record of a kind that runs in one pod and stores nothing more. The room of another kind has a subclass."""

    __slots__ = ()
    has_members: ClassVar[bool] = False  # it runs in several pods: a head and workers

    @property
    def words(self) -> str:
        """What it is, where that says more than the name of its kind; else ""."""
        return ""

    @property
    def open_word(self) -> str:
        return _("Open")

    @property
    def head(self) -> tuple[str, str]:
        """The name of the head's tier and its size; ("", "") without a head."""
        return "", ""

    def prices(self, cost_per_hour: Decimal, *, workers: int, has_started: bool) -> tuple[str, str]:
        """Return the price of an hour now, with so many `workers` that hold a node, and its bounds where it varies, else ""."""
        return price_words(cost_per_hour), ""

    def slots_words(self, slots: int) -> str:
        return plural(slots, "slot", "slots") if slots > 1 else ""


_SAME_FACTS = ("workspace_id", "workspace_name", "run", "image", "requested_at", "started_at", "ended_at")
_WAY = ("queued", "deploying", "preparing", "running")
_ENDINGS = ("finishing", "stopping", "succeeded", "stopped", "failed", "error")
CONTRIBUTING = frozenset({"owner", "contributor"})
_BROWSER_KINDS = frozenset({"workspace", "app"})
OPENED_KINDS = _BROWSER_KINDS | {"cluster"}  # a cluster has the web page of its framework


@dataclass(frozen=True, slots=True)
class LifecycleLine:
    """One line of the stored history; `event_uid` is set when it came from a Kubernetes event."""

    at: datetime
    to_state: str
    about: str
    level: str
    reason: str
    message: str
    count: int
    actor: str
    event_uid: str
    reason_values: Values | None = None

    def words(self, reader: Reader) -> str:
        return words_of(self.reason, self.reason_values, self.message, reader)


@dataclass(frozen=True, slots=True)
class Companion:
    """The other half of a pair that starts together: with `is_attached` it was launched with this execution, and ends with it."""

    id: str
    kind: str
    name: str
    object_name: str
    state: str
    is_attached: bool = False
    node_pool: str = ""
    kind_record: KindRecord = field(default_factory=KindRecord)


@dataclass(frozen=True, slots=True)
class CompanionCard:
    """A companion in words; `sentence` says its present state."""

    id: str
    kind: str
    name: str
    word: str
    severity: str
    sentence: str


@dataclass(frozen=True, slots=True)
class ExecutionRecord:
    """The stored values of one execution, with the tier as it was at launch."""

    id: str
    kind: str
    title: str
    object_name: str
    owner_id: int
    owner_username: str
    project_id: str
    project_name: str
    project_roles: Mapping[int, str]  # by the member's id
    environment_name: str
    image: str
    tier_id: str
    tier_name: str
    node_pool: str
    millicores: int
    memory_bytes: int
    gpus: int
    shared_memory: str
    cost_per_hour: Decimal
    slots: int
    state: str
    state_since: datetime
    message: str
    requested_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    stop_requested_at: datetime | None
    stop_requested_by: str
    node_name: str
    lifecycle: tuple[LifecycleLine, ...]
    spending: Spending = field(default_factory=Spending)
    kind_record: KindRecord = field(default_factory=KindRecord)
    companion: Companion | None = None
    owner_is_active: bool = True
    is_settled: bool = True  # it has ended, and its pod has been seen gone
    stops_at: datetime | None = None  # when it is stopped because its owner has lost access
    workspace_id: str = ""  # "" without a workspace, or when that is deleted
    workspace_name: str = ""
    is_restarting: bool = False  # its workspace is launched again as soon as this has settled
    # Of an app: the names of the members who may open it too, by id.
    shared_with: Mapping[int, str] = field(default_factory=dict)
    newer_id: str = ""  # the workspace's execution that has not settled, when that is another one
    run: RunPlace | None = None  # None for what is no job
    has_page: bool = False  # its program serves a web page
    files: RunFilesRecord | None = None  # None where the project's files are a volume
    size: SizeFacts | None = None  # None while it runs, and of a cluster
    findings: tuple[LogFinding, ...] = ()  # what is known about its kept log
    start: StartMeasures | None = None  # once it ran, or ended before
    usual_start: UsualStart = field(default_factory=UsualStart)
    reason: str = ""
    reason_values: Values | None = None

    @property
    def project_member_ids(self) -> Collection[int]:
        return self.project_roles.keys()

    def contributes(self, user_id: int) -> bool:
        """Return whether the user may launch and open executions in the project, and not only view them."""
        return self.project_roles.get(user_id) in CONTRIBUTING

    @property
    def has_members(self) -> bool:
        return self.kind_record.has_members

    @property
    def name(self) -> str:
        return self.title or self.object_name

    @property
    def opens(self) -> bool:
        """Whether there is a page to open while it runs: any but a job's is always there."""
        return self.kind in OPENED_KINDS or (self.has_page and self.state not in ("finishing", *ENDED_STATES))

    @property
    def is_final(self) -> bool:
        return self.state in ENDED_STATES

    def reader(self, *, is_owner: bool) -> Reader:
        return Reader(self.owner_username, is_owner)

    def words(self, *, to_owner: bool) -> str:
        """Return the latest cause for its owner, or for others."""
        return words_of(self.reason, self.reason_values, self.message, self.reader(is_owner=to_owner))

    @property
    def stopping_words(self) -> str:
        if self.is_restarting:
            return _("Restarting: it is launched again as soon as its pod is gone.")
        by = self.stop_requested_by
        return _("Stop requested by {username}.", username=by) if by else _("It is stopping.")


@dataclass(frozen=True, slots=True)
class Person:
    """The viewer's rights on one execution. `has_left` is true for an owner who left the project, `contributes` for more than a viewer."""

    may_open: bool
    may_stop: bool
    is_operator: bool
    sees_all: bool = False
    has_left: bool = False
    contributes: bool = False
    is_owner: bool = False
    is_member: bool = False
    may_share: bool = False

    @property
    def may_read(self) -> bool:
        """True when the person may read the log and the program's messages."""
        return self.sees_all or not self.has_left

    @property
    def may_change(self) -> bool:
        """True when the person may resize a cluster and restart its head."""
        return self.is_operator or (self.may_stop and self.contributes)


@dataclass(frozen=True, slots=True)
class Head:
    status: StatusLine
    advice: str
    evidence: tuple[str, ...]
    since: datetime
    has_ended: bool
    reasons: NodeReasons | None = None
    findings: tuple[ShownFinding, ...] = ()
    wait: WaitLine | None = None


Place = Literal["done", "now", "todo", "skipped", "problem"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an execution's life; `took` is for those that are done."""

    word: str
    place: Place
    at: datetime | None
    took: str


@dataclass(frozen=True, slots=True)
class Facts:
    kind: str
    workspace_id: str
    workspace_name: str
    run: RunPlace | None
    shared_with: str
    owner: str
    project: str
    environment: str
    image: str
    tier: str
    size: str
    head_tier: str
    head_size: str
    price: str
    price_bounds: str
    cost: str
    slots: str
    node: str
    node_is_link: bool
    pods: tuple[tuple[str, str], ...]  # their namespaces and names
    requested_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    ran_for: str


def head_of(record: ExecutionRecord, diagnosis: Diagnosis | None, viewer: Person, wait: WaitLine | None = None) -> Head:
    """Return the state and its cause. `diagnosis` is that of the pod, if there is one; for a cluster, `cluster_diagnosis` of its pods."""
    current = None if record.is_final else diagnosis
    status, advice = state_status(record.state, message=record.words(to_owner=viewer.is_owner), diagnosis=current)
    since = record.state_since
    if record.has_members and current is not None and record.state == "running":
        status = StatusLine(status.severity, status.word, current.sentence)
    if record.stop_requested_at is not None and not record.is_final and record.state != "stopping":
        status = StatusLine("wait", _("Restarting") if record.is_restarting else _("Stopping"), record.stopping_words)
        advice, since = "", record.stop_requested_at
    elif record.run is not None and record.run.is_tried_again:
        advice = _("Its run tries this again by itself; you need not launch it.")
    elif record.state == "running" and not status.note:
        status = StatusLine(status.severity, status.word, _running_note(record, viewer))
    evidence = current.evidence if current is not None and current.severity != "ok" else ()
    stops = record.stop_requested_at is not None
    project = record.project_id if viewer.may_read else ""  # who has left it gets no answer there
    return Head(
        status,
        advice,
        evidence,
        since,
        has_ended=record.is_final,
        reasons=None if stops else node_reasons(current, sees_all=viewer.sees_all, project=project),
        findings=shown_findings(record.findings if viewer.may_read else (), status.note),
        # Waiting does not end a problem, whose reason stands in the status.
        wait=None if stops or status.severity == "problem" else wait,
    )


def _running_note(record: ExecutionRecord, viewer: Person) -> str:
    if record.kind not in _BROWSER_KINDS:
        return _("See its log, or open its page.") if viewer.may_open and record.opens else _("See its log.")
    if viewer.may_open:
        return _("It is ready: open it.")
    if viewer.is_owner:
        return _("It is ready.")
    shared = _("It is ready. Only {owner} and those with whom it is shared can open it.")
    words = shared if record.shared_with else _("It is ready. Only {owner} can open it.")
    return words.format(owner=record.owner_username)


def steps(record: ExecutionRecord) -> Fragment:
    """Return the steps that every execution takes, then how this one ended or may end."""
    entered = {line.to_state: line.at for line in record.lifecycle if line.to_state}
    entered.setdefault(record.state, record.state_since)
    order = sorted((state for state in (*_WAY, *_ENDINGS) if state in entered), key=lambda state: entered[state])
    ends = [state for state in order if state in _ENDINGS]
    taken = [_step(state, order, entered, record) for state in (*_WAY, *ends)]
    if not ends or ends[-1] not in ENDED_STATES:
        word = _("Stopped") if record.kind in OPENED_KINDS or "stopping" in ends else _("Ended")
        taken.append(Step(word, "todo", None, ""))
    return Fragment("steps", "executions/fragments/execution_steps.html", tuple(taken))


def _step(state: str, order: Sequence[str], entered: dict[str, datetime], record: ExecutionRecord) -> Step:
    if state not in entered:
        over = record.is_final or any(other in _ENDINGS for other in order)
        return Step(state_word(state), "skipped" if over else "todo", None, "")
    at = entered[state]
    following = order[order.index(state) + 1 :]
    if following:
        return Step(state_word(state), "done", at, span((entered[following[0]] - at).total_seconds()))
    place: Place = "now" if state not in ENDED_STATES else "problem" if state in ("failed", "error") else "done"
    return Step(state_word(state), place, at, "")


def facts(
    record: ExecutionRecord,
    person: Person,
    *,
    pods: Collection[tuple[str, str]],
    node: str,
    workers: int = 0,
    now: datetime,
) -> Fragment:
    """Return the facts. `node` is where the pod (a cluster's head) is now, `workers` the number of a cluster's workers that hold a node."""
    own, started, price, price_bounds = record.kind_record, record.started_at, "", ""
    if not (record.has_members and record.is_final):  # what has workers costs nothing any more
        price, price_bounds = own.prices(record.cost_per_hour, workers=workers, has_started=started is not None)
    head_tier, head_size = own.head
    free = _("nothing") if record.is_final else _("nothing yet")
    return Fragment(
        "facts",
        "executions/fragments/execution_facts.html",
        Facts(
            kind=own.words or kind_name(record.kind),
            shared_with=", ".join(sorted(record.shared_with.values())),
            owner=record.owner_username,
            project=record.project_name,
            environment=record.environment_name,
            tier=record.tier_name,
            size=size_words(record.millicores, record.memory_bytes, record.gpus, record.shared_memory),
            head_tier=head_tier,
            head_size=head_size,
            price=price,
            price_bounds=price_bounds,
            cost=money(record.spending.until(now)) if record.spending else free,
            slots=own.slots_words(record.slots),
            node=node or record.node_name,
            node_is_link=person.sees_all and bool(node),
            pods=tuple(pods),
            **{name: getattr(record, name) for name in _SAME_FACTS},
            ran_for=span((record.ended_at - started).total_seconds()) if started and record.ended_at else "",
        ),
    )
