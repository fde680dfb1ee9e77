"""The queue, live: who waits, in which order, for what, and how long that should take. Observers see everybody; others see what they may
see, with its place in the whole queue."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial

from django.http import QueryDict

from dashboard.queue.viewmodels.waiting import REGION, in_order, queue_fragments, queue_row
from dashboard.shell.access import Viewer, may_observe, may_operate, may_see_execution
from dashboard.shell.pages.lists import FIRST_PAINT_SECONDS
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.live import Fragment
from dashboard.starts.expected_waits import EXPECTED, WaitsRead, stands_still
from grid.kube.hub import Topic
from grid.models import State
from grid.runtime import Runtime
from grid.runtime.executions import TOPIC

SHOWN = 200


class QueuePage(LivePage[None, WaitsRead | None]):
    name = "queue"
    # What is read of the database is read beside the page.
    reads_database = False
    rest_seconds = 1.0
    regions = frozenset({REGION})

    def view(self, query: QueryDict) -> None:
        return None

    def allowed(self, runtime: Runtime, viewer: Viewer, view: None) -> bool:
        return True

    async def read(self, runtime: Runtime, viewer: Viewer, view: None) -> WaitsRead | None:
        return await EXPECTED.value(runtime)

    async def read_in_time(self, runtime: Runtime, viewer: Viewer, view: None) -> WaitsRead | None:
        """Return None where simulating all waits takes longer than a first paint may, as with 1,000 in the queue (0.4 s): then rows say
        their waits a moment later."""
        return await EXPECTED.value(runtime, patience=FIRST_PAINT_SECONDS)

    def topics(self, runtime: Runtime, viewer: Viewer, view: None, facts: WaitsRead | None) -> Collection[Topic]:
        return {TOPIC}

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: None, facts: WaitsRead | None, now: datetime
    ) -> Sequence[Fragment]:
        waiting = [row for row in runtime.executions.values() if row.state == State.QUEUED and not row.attached_to]
        seen = waiting if may_observe(viewer) else [row for row in waiting if may_see_execution(viewer, row)]
        facts = facts or WaitsRead(now)
        estimates, passed = dict(facts.estimates), (now - facts.at).total_seconds()
        words = partial(
            queue_row, viewer_id=viewer.id, may_order=may_operate(viewer), stands_still=stands_still(runtime)
        )
        rows = [words(row, estimates.get(row.id), passed) for row in in_order(seen, estimates)[:SHOWN]]
        accuracy, hidden = facts.how_right("", State.QUEUED), len(waiting) - len(seen)
        return queue_fragments(rows, count=len(seen), hidden=hidden, accuracy=accuracy, takeover=facts.takeover)


QUEUE = QueuePage()
