"""The queue page; pure."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from dashboard.shell.viewmodels.states import kind_name
from dashboard.starts.viewmodels.expected_wait import STANDS_STILL, WaitLine, wait_line
from grid.core.reasons import Reader
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.runtime.executionrows import ExecutionRow

REGION = "queue"


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
    takeover: str = ""


_COMPUTING = WaitLine(_("Still being computed."), "")
_ASIDE = {
    "held": WaitLine(_("When an operator releases it."), ""),
    "maintenance": WaitLine(_("When maintenance ends."), ""),
    "taken_over": WaitLine(_("When the queue goes by turn again, or an operator puts it in front."), ""),
    "over_budget": WaitLine(_("When its project may spend again."), ""),
}


def queue_row(
    row: ExecutionRow,
    estimate: WaitEstimate | None,
    passed: float,
    *,
    viewer_id: int,
    may_order: bool,
    stands_still: bool = False,
) -> QueueRow:
    """Return a line of the queue; while it `stands_still`, because no controller is running, it has no expected start."""
    is_own = row.owner_id == viewer_id
    turn = wait_line(estimate, passed, reader=Reader(row.owner_username, is_own), in_column=True)
    return QueueRow(
        execution_id=row.id,
        position=f"{estimate.position:,}" if estimate is not None and estimate.position else "–",
        name=row.title or row.object_name,
        about=f"{kind_name(row.kind)}, {row.tier_name}, {plural(row.slots, 'slot', 'slots')}",
        owner=_("you") if is_own else row.owner_username,
        reason=row.words(to_owner=is_own),
        since=row.requested_at,
        expected=_ASIDE.get(row.reason) or (STANDS_STILL if stands_still else turn) or _COMPUTING,
        may_order=may_order,
    )


def queue_fragments(
    rows: Collection[QueueRow], *, count: int, hidden: int, accuracy: str, takeover: str = ""
) -> list[Fragment]:
    """Return the page: the first of the `count` that the viewer may see, in the order in which they start; `hidden` more wait."""
    sentence = ngettext("{count:,} execution waits for a slot", "{count:,} executions wait for a slot", count)
    if hidden:
        sentence = ngettext(
            "{count:,} execution waits for a slot that you may see, and {hidden:,} of others",
            "{count:,} executions wait for a slot that you may see, and {hidden:,} of others",
            count,
            hidden=hidden,
        )
    if count > len(rows):
        sentence = _("{sentence}; the first {rows} are shown", sentence=sentence, rows=len(rows))
    head = Fragment("queue-head", "queue/fragments/queue_head.html", QueueHead(f"{sentence}.", accuracy, takeover))
    lines = [
        Fragment(element_id("wait", row.execution_id), "queue/fragments/queue_row.html", row, REGION) for row in rows
    ]
    if not lines:
        empty = EmptyState(_("No execution is waiting."), _("New launches start as soon as their objects are created."))
        if hidden:
            advice = _("Executions of other people are not shown to you.")
            empty = EmptyState(_("None of your executions is waiting."), advice)
        lines = [Fragment("queue-none", "queue/fragments/queue_none.html", empty, REGION)]
    return [head, *lines]


def in_order(rows: Iterable[ExecutionRow], estimates: dict[str, WaitEstimate]) -> Sequence[ExecutionRow]:
    """Sort by position; what has none, because it is held or came a moment ago, is last, the oldest first."""

    def place(row: ExecutionRow) -> tuple[bool, int, datetime, str]:
        position = estimates[row.id].position if row.id in estimates else 0
        return position == 0, position, row.requested_at, row.id

    return sorted(rows, key=place)
