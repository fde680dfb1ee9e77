"""The queue page; pure."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from dashboard.viewmodels.element_ids import element_id
from dashboard.viewmodels.executions_view import KINDS
from dashboard.viewmodels.expected_wait import WaitLine, wait_line
from dashboard.viewmodels.listing import EmptyState
from dashboard.viewmodels.live import Fragment, ViewModel
from dashboard.viewmodels.told import message_of
from grid.launch.expectation.basis import WaitEstimate
from grid.runtime.executions import ExecutionRow
from grid.wording import plural

REGION = "queue"
_FRAGMENTS = "dashboard/fragments/"


class QueueRow(ViewModel, frozen=True, gc=False):
    execution_id: str
    position: str
    name: str
    about: str
    owner: str
    reason: str
    since: datetime
    expected: WaitLine
    may_order: bool


class QueueHead(ViewModel, frozen=True, gc=False):
    sentence: str
    accuracy: str


_COMPUTING = WaitLine("Still being computed.", "")
_ASIDE = {
    "held": WaitLine("When an operator releases it.", ""),
    "maintenance": WaitLine("When maintenance ends.", ""),
    "over_budget": WaitLine("When its project may spend again.", ""),
}


def queue_row(
    row: ExecutionRow, estimate: WaitEstimate | None, passed: float, *, viewer_id: int, may_order: bool
) -> QueueRow:
    is_own = row.owner_id == viewer_id
    return QueueRow(
        execution_id=row.id,
        position=f"{estimate.position:,}" if estimate is not None and estimate.position else "–",
        name=row.title or row.object_name,
        about=f"{KINDS.get(row.kind, row.kind)}, {row.tier_name}, {plural(row.slots, 'slot')}",
        owner="you" if is_own else row.owner_username,
        reason=message_of(row, to_owner=is_own),
        since=row.requested_at,
        expected=_ASIDE.get(row.reason) or _in_column(wait_line(estimate, passed) or _COMPUTING),
        may_order=may_order,
    )


def _in_column(line: WaitLine) -> WaitLine:
    """Return the line without the words that its column's title says, which would leave no room for the time."""
    said = line.sentence.removeprefix("Expected to start in ")
    return WaitLine(said[:1].upper() + said[1:], line.why)


def queue_fragments(rows: Collection[QueueRow], *, count: int, hidden: int, accuracy: str) -> list[Fragment]:
    """Return the page: the first of the `count` that the viewer may see, in the order in which they start; `hidden` more wait that the
    viewer may not see."""
    sentence = f"{plural(count, 'execution')} {'waits' if count == 1 else 'wait'} for a slot"
    if hidden:
        sentence += f" that you may see, and {hidden:,} of others"
    if count > len(rows):
        sentence += f"; the first {len(rows)} are shown"
    head = Fragment("queue-head", f"{_FRAGMENTS}queue_head.html", QueueHead(f"{sentence}.", accuracy))
    lines = [Fragment(element_id("wait", row.execution_id), f"{_FRAGMENTS}queue_row.html", row, REGION) for row in rows]
    if not lines:
        empty = EmptyState("No execution is waiting.", "New launches start as soon as their objects are created.")
        if hidden:
            empty = EmptyState(
                "None of your executions is waiting.", "Executions of other people are not shown to you."
            )
        lines = [Fragment("queue-none", f"{_FRAGMENTS}queue_none.html", empty, REGION)]
    return [head, *lines]


def in_order(rows: Iterable[ExecutionRow], found: dict[str, WaitEstimate]) -> Sequence[ExecutionRow]:
    """Sort by position; what has none, because it is held or came a moment ago, is last, the oldest first."""

    def place(row: ExecutionRow) -> tuple[bool, int, datetime, str]:
        position = found[row.id].position if row.id in found else 0
        return position == 0, position, row.requested_at, row.id

    return sorted(rows, key=place)
