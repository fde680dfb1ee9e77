"""Reads what an estimate is made of: the queue, what holds slots, and what ended last, at a cost that does not grow with the history."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from math import inf
from typing import NamedTuple

from grid.models import Execution, StartUp
from grid.queue import snapshot
from grid.queue.quota import Holding, QuotaSnapshot, tier_pair
from grid.queue.wait_estimate.inputs import QUEUED, Key, SurvivalCurve, WaitFacts, Work, placed, with_node
from grid.queue.wait_estimate.observing import Observed
from grid.queue.wait_estimate.simulation import Holder
from grid.starts.startuphistory import LEAST_PULLED, RECENT_PULLS

_WAITED = 5.0  # seconds: admission itself takes about one
HISTORY = 2000  # the latest that have ended
_LOOKED_AT = 1000  # of the newest starts, most of which pulled nothing


class WaitRow(NamedTuple):
    """The columns by which they are read: those of an execution, of its start once it has started, and when one with slots will stop."""

    id: str
    kind: str
    owner_id: int
    tier_id: str
    head_tier_id: str | None
    environment_id: str
    node_pool: str
    head_node_pool: str
    slots: int
    state: str
    slots_reserved_at: datetime | None = None
    slots_freed_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    start_up__queued: float | None = None
    start_up__creating: float | None = None
    start_up__node_wait: float | None = None
    start_up__scheduling: float | None = None
    start_up__total: float | None = None
    start_up__pulling: float | None = None
    start_up__node_started: bool | None = None
    start_up__image: str | None = None
    start_up__image_bytes: int | None = None
    stop_plan__stops_at: datetime | None = None


def facts_of(
    snapshot: QuotaSnapshot,
    active: Sequence[WaitRow],
    rows: Iterable[WaitRow],
    now: datetime,
    observed: Observed | None = None,
) -> WaitFacts:
    """Return the facts: `active` are unsettled, `rows` have ever held slots, newest first."""
    lives: dict[Key, list[tuple[float, bool]]] = {}
    starts: dict[Key, list[tuple[float, bool]]] = {}
    paces: dict[str, list[tuple[float, bool]]] = {}
    sizes: dict[str, int] = {}
    for row in rows:
        life = _since_slots(row, row.slots_freed_at, now)
        for key in _life_keys(row):
            lives.setdefault(key, []).append(life)
        start = _since_slots(row, row.started_at, row.ended_at or now)
        was_new, on_node = row.start_up__node_started, _on_node(row)
        for key in _start_keys(row):
            starts.setdefault(key, []).append(start)
            if was_new is not None:
                starts.setdefault(with_node(key, was_new), []).append(start)
            if (row.start_up__queued or 0.0) >= _WAITED:
                starts.setdefault((*key, QUEUED), []).append(start)
            for with_pull, seconds in on_node.items():
                starts.setdefault(placed(key, with_pull=with_pull), []).append((seconds, True))
        size, pulling, image = row.start_up__image_bytes, row.start_up__pulling, row.start_up__image
        if size and image is not None and size >= LEAST_PULLED:
            sizes.setdefault(image, size)
            if pulling:
                paces.setdefault(_pool(row), []).append((pulling / size, True))
    waiting = {part.execution_id for unit in snapshot.waiting for part in unit.parts}
    holding = {row.id for row in active if row.slots_reserved_at is not None and row.slots_freed_at is None}
    known = waiting | holding
    works = {row.id: _work(row, now) for row in active if row.id in known}
    life_curves, start_curves = ({k: SurvivalCurve(seen) for k, seen in curves.items()} for curves in (lives, starts))
    pace_curves = {pool: SurvivalCurve(values[:RECENT_PULLS]) for pool, values in paces.items()}
    return WaitFacts(snapshot, works, life_curves, start_curves, pace_curves, sizes, observed or Observed())


def _work(row: WaitRow, now: datetime) -> Work:
    tiers = tier_pair(row.head_tier_id if row.kind == "cluster" else None, row.tier_id)
    since, until = row.slots_reserved_at, row.stop_plan__stops_at
    return Work(
        row.id,
        Holder(row.owner_id, tiers, row.slots),
        _life_keys(row),
        _start_keys(row),
        max(0.0, (now - since).total_seconds()) if since is not None else 0.0,
        row.state in ("deploying", "preparing"),
        _pool(row),
        max(0.0, (until - now).total_seconds()) if until is not None else inf,
    )


def _since_slots(row: WaitRow, until: datetime | None, now: datetime) -> tuple[float, bool]:
    """Return how long it has taken from its slots until then, or until now, and whether that is over."""
    assert row.slots_reserved_at is not None, "only what has ever held slots is a row"
    return max(0.0, ((until or now) - row.slots_reserved_at).total_seconds()), until is not None


def _on_node(row: WaitRow) -> dict[bool, float]:
    """Return the seconds from having a node until running, with the pull of the image and without it, as far as they are known."""
    before = (row.start_up__queued, row.start_up__creating, row.start_up__node_wait, row.start_up__scheduling)
    total, pulling = row.start_up__total, row.start_up__pulling
    if total is None or row.started_at is None or None in before:
        return {}
    seconds = max(0.0, total - sum(filter(None, before)))
    return {True: seconds} if pulling is None else {True: seconds, False: max(0.0, seconds - pulling)}


def _pool(row: WaitRow) -> str:
    """Return the pool of its first pod: of a cluster, its head's."""
    return row.head_node_pool or row.node_pool


def _life_keys(row: WaitRow) -> tuple[Key, ...]:
    return ("of", str(row.owner_id), row.kind, row.tier_id), ("on", row.kind, row.tier_id), ("kind", row.kind)


def _start_keys(row: WaitRow) -> tuple[Key, ...]:
    return ("in", row.kind, row.node_pool, row.environment_id), ("pool", row.kind, row.node_pool)


def read_facts(data_plane: str, now: datetime, *, observed: Observed | None = None) -> WaitFacts:
    """Return the facts of a data plane, and what is `observed` of those that start."""
    queue = snapshot.peek(data_plane, now=now)
    executions = Execution.objects.in_data_plane(data_plane)
    active = [WaitRow(*values) for values in executions.unsettled().order_by().values_list(*WaitRow._fields)]
    # Each data plane's history is a part of that of all; the index of the history is by the time of the end alone.
    ended = Execution.objects.filter(ended_at__isnull=False, slots_reserved_at__isnull=False)
    latest = ended.order_by("-ended_at", "-pk").values_list(*WaitRow._fields[:-1])[:HISTORY]
    history = [WaitRow(*values) for values in latest]
    known = {row.id for row in history}
    rows = [*history, *(row for row in active if row.slots_reserved_at is not None and row.id not in known)]
    # What was launched or stopped between the two reads is in one of them only.
    both = {row.id for row in active}
    waiting = tuple(unit for unit in queue.snapshot.waiting if all(part.execution_id in both for part in unit.parts))
    return facts_of(replace(queue.snapshot, waiting=waiting), active, rows, now, observed)


def with_launch(
    known: WaitFacts, launch: Sequence[Execution], queue: QuotaSnapshot, now: datetime, observed: Observed | None
) -> WaitFacts:
    """Return facts that were read a moment ago with `launch`, one unit that is not stored, in the `queue` as it is now. All that its owner
    has is as it is now too; what others have begun or ended since is not."""
    first, works = launch[0], dict(known.works)
    if _of_user(queue, first.owner_id, but=first.pk) != _of_user(known.snapshot, first.owner_id):
        own = Execution.objects.in_data_plane(first.data_plane_id).unsettled().filter(owner=first.owner_id).order_by()
        works = {id: work for id, work in works.items() if work.holder.user != first.owner_id}
        rows = (WaitRow(*values) for values in own.values_list(*WaitRow._fields))
        works |= {row.id: _work(row, now) for row in rows if row.slots_freed_at is None}
    for row in launch:
        pools = row.node_pool, row.head_node_pool
        columns = WaitRow(
            row.pk,
            row.kind,
            row.owner_id,
            row.tier_id,
            row.head_tier_id,
            row.environment_id,
            *pools,
            row.slots,
            row.state,
        )
        works[row.pk] = _work(columns, now)
    waiting = tuple(unit for unit in queue.waiting if all(part.execution_id in works for part in unit.parts))
    return replace(known, snapshot=replace(queue, waiting=waiting), works=works, observed=observed or Observed())


def _of_user(queue: QuotaSnapshot, user: int, *, but: str = "") -> tuple[set[str], set[Holding]]:
    """Return what waits of a user, and what the user's executions hold."""
    waiting = {unit.execution_id for unit in queue.waiting if unit.user == user and unit.execution_id != but}
    return waiting, {held for held in queue.holding if held.user == user}


def usual_pull(size: int, pace: SurvivalCurve) -> float | None:
    """Return the seconds within which half the pulls of so many bytes ended; None when too few are known."""
    return size * pace.remaining(0.5) if pace.covers(0.0) else None


def recent_pace() -> SurvivalCurve:
    """Return the seconds for each byte of the latest pulls. Its cost does not grow with the history."""
    newest = StartUp.objects.order_by("-at").values_list("pulling", "image_bytes")[:_LOOKED_AT]
    paces = [(pulling / size, True) for pulling, size in newest if pulling and size and size >= LEAST_PULLED]
    return SurvivalCurve(paces[:RECENT_PULLS])
