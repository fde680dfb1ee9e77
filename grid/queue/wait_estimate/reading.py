"""Reads from the database what an estimate is made of: the queue, what holds slots, and the executions that ended last. Its cost does not
grow with the history."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from grid.models import Execution, StartUp
from grid.queue import snapshot
from grid.queue.wait_estimate.facts import COLUMNS, START_COLUMNS, STOPS_AT, facts_of
from grid.queue.wait_estimate.inputs import WaitFacts
from grid.queue.wait_estimate.observed import Observed
from grid.queue.wait_estimate.survival import SurvivalCurve
from grid.starts.startuphistory import LEAST_PULLED, RECENT_PULLS

HISTORY = 2000  # the latest that have ended


def read_facts(
    data_plane: str, now: datetime, launch: Sequence[Execution] = (), *, observed: Observed | None = None
) -> WaitFacts:
    """Return the facts of a data plane; `launch` is one unit that is not stored, as if it were requested now. `observed` is what the
    cluster shows of those that start."""
    queue = snapshot.peek(data_plane, launch, now=now)
    executions = Execution.objects.in_data_plane(data_plane)
    active = list(executions.unsettled().order_by().values(*COLUMNS, *START_COLUMNS, STOPS_AT))
    active += [{name: getattr(row, name) for name in COLUMNS} for row in launch]
    # Each data plane's history is a part of that of all; the index of the history is by the time of the end alone.
    ended = Execution.objects.filter(ended_at__isnull=False, slots_reserved_at__isnull=False)
    history = list(ended.order_by("-ended_at", "-pk").values(*COLUMNS, *START_COLUMNS)[:HISTORY])
    known = {row["id"] for row in history}
    rows = [*history, *(row for row in active if row["slots_reserved_at"] is not None and row["id"] not in known)]
    # What was launched or stopped between the two reads is in one of them only.
    both = {row["id"] for row in active}
    waiting = tuple(unit for unit in queue.snapshot.waiting if all(part.execution_id in both for part in unit.parts))
    return facts_of(replace(queue.snapshot, waiting=waiting), active, rows, now, observed)


_LOOKED_AT = 1000  # of the newest starts, most of which pulled nothing


def usual_pull(size: int, pace: SurvivalCurve) -> float | None:
    """Return the seconds within which half the pulls of so many bytes ended; None when too few are known."""
    return size * pace.remaining(0.5) if pace.covers(0.0) else None


def recent_pace() -> SurvivalCurve:
    """Return the seconds for each byte of the latest pulls. Its cost does not grow with the history."""
    newest = StartUp.objects.order_by("-at").values_list("pulling", "image_bytes")[:_LOOKED_AT]
    paces = [(pulling / size, True) for pulling, size in newest if pulling and size and size >= LEAST_PULLED]
    return SurvivalCurve(paces[:RECENT_PULLS])
