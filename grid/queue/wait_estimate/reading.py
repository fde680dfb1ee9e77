"""Reads what an estimate is made of: the queue, what holds slots, and what ended last, at a cost that does not grow with the history."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from math import inf
from typing import Any

from grid.models import Execution, StartUp
from grid.queue import snapshot
from grid.queue.quota import QuotaSnapshot, tier_pair
from grid.queue.wait_estimate.inputs import QUEUED, Key, SurvivalCurve, WaitFacts, Work, placed, with_node
from grid.queue.wait_estimate.observing import Observed
from grid.queue.wait_estimate.simulation import Holder
from grid.starts.startuphistory import LEAST_PULLED, RECENT_PULLS

COLUMNS = (
    *("id", "kind", "owner_id", "tier_id", "head_tier_id", "environment_id", "node_pool", "head_node_pool", "slots"),
    *("state", "slots_reserved_at", "slots_freed_at", "started_at", "ended_at"),
)
_START = "start_up__"
_QUEUED = f"{_START}queued"
_BEFORE_NODE = (_QUEUED, *(f"{_START}{phase}" for phase in ("creating", "node_wait", "scheduling")))
_TOTAL, _PULLING = f"{_START}total", f"{_START}pulling"
NODE_STARTED, IMAGE, IMAGE_BYTES = f"{_START}node_started", f"{_START}image", f"{_START}image_bytes"
# Of those that have started.
START_COLUMNS = (NODE_STARTED, *_BEFORE_NODE, _TOTAL, _PULLING, IMAGE, IMAGE_BYTES)
STOPS_AT = "stop_plan__stops_at"  # of those that hold slots
_WAITED = 5.0  # seconds: admission itself takes about one
HISTORY = 2000  # the latest that have ended
_LOOKED_AT = 1000  # of the newest starts, most of which pulled nothing


def facts_of(
    snapshot: QuotaSnapshot,
    active: Sequence[dict[str, Any]],
    rows: Iterable[dict[str, Any]],
    now: datetime,
    observed: Observed | None = None,
) -> WaitFacts:
    """Return the facts from rows of `COLUMNS` and `START_COLUMNS`: `active` are unsettled, `rows` have ever held slots, newest first."""
    lives: dict[Key, list[tuple[float, bool]]] = {}
    starts: dict[Key, list[tuple[float, bool]]] = {}
    paces: dict[str, list[tuple[float, bool]]] = {}
    sizes: dict[str, int] = {}
    for row in rows:
        life = _since_slots(row, row["slots_freed_at"], now)
        for key in _life_keys(row):
            lives.setdefault(key, []).append(life)
        start = _since_slots(row, row["started_at"], row["ended_at"] or now)
        was_new, on_node = row.get(NODE_STARTED), _on_node(row)
        for key in _start_keys(row):
            starts.setdefault(key, []).append(start)
            if was_new is not None:
                starts.setdefault(with_node(key, was_new), []).append(start)
            if (row.get(_QUEUED) or 0.0) >= _WAITED:
                starts.setdefault((*key, QUEUED), []).append(start)
            for with_pull, seconds in on_node.items():
                starts.setdefault(placed(key, with_pull=with_pull), []).append((seconds, True))
        size, pulling = row.get(IMAGE_BYTES), row.get(_PULLING)
        if size and size >= LEAST_PULLED:
            sizes.setdefault(row[IMAGE], size)
            if pulling:
                paces.setdefault(_pool(row), []).append((pulling / size, True))
    waiting = {part.execution_id for unit in snapshot.waiting for part in unit.parts}
    holding = {row["id"] for row in active if row["slots_reserved_at"] is not None and row["slots_freed_at"] is None}
    works = {row["id"]: _work(row, now) for row in active if row["id"] in waiting | holding}
    life_curves, start_curves = ({k: SurvivalCurve(seen) for k, seen in curves.items()} for curves in (lives, starts))
    pace_curves = {pool: SurvivalCurve(values[:RECENT_PULLS]) for pool, values in paces.items()}
    return WaitFacts(snapshot, works, life_curves, start_curves, pace_curves, sizes, observed or Observed())


def _work(row: dict[str, Any], now: datetime) -> Work:
    tiers = tier_pair(row["head_tier_id"] if row["kind"] == "cluster" else None, row["tier_id"])
    since = row["slots_reserved_at"]
    return Work(
        row["id"],
        Holder(row["owner_id"], tiers, row["slots"]),
        _life_keys(row),
        _start_keys(row),
        max(0.0, (now - since).total_seconds()) if since is not None else 0.0,
        row["state"] in ("deploying", "preparing"),
        _pool(row),
        max(0.0, (row[STOPS_AT] - now).total_seconds()) if row.get(STOPS_AT) is not None else inf,
    )


def _since_slots(row: dict[str, Any], until: datetime | None, now: datetime) -> tuple[float, bool]:
    """Return how long it has taken from its slots until then, or until now, and whether that is over."""
    return max(0.0, ((until or now) - row["slots_reserved_at"]).total_seconds()), until is not None


def _on_node(row: dict[str, Any]) -> dict[bool, float]:
    """Return the seconds from having a node until running, with the pull of the image and without it, as far as they are known."""
    before = [row.get(name) for name in _BEFORE_NODE]
    if row.get(_TOTAL) is None or row["started_at"] is None or any(seconds is None for seconds in before):
        return {}
    seconds, pulling = max(0.0, row[_TOTAL] - sum(filter(None, before))), row[_PULLING]
    return {True: seconds} if pulling is None else {True: seconds, False: max(0.0, seconds - pulling)}


def _pool(row: dict[str, Any]) -> str:
    """Return the pool of its first pod: of a cluster, its head's."""
    return str(row["head_node_pool"] or row["node_pool"])


def _life_keys(row: dict[str, Any]) -> tuple[Key, ...]:
    kind, tier = row["kind"], row["tier_id"]
    return ("of", str(row["owner_id"]), kind, tier), ("on", kind, tier), ("kind", kind)


def _start_keys(row: dict[str, Any]) -> tuple[Key, ...]:
    kind, pool, environment = row["kind"], row["node_pool"], row["environment_id"]
    return ("in", kind, pool, environment), ("pool", kind, pool)


def read_facts(
    data_plane: str, now: datetime, launch: Sequence[Execution] = (), *, observed: Observed | None = None
) -> WaitFacts:
    """Return the facts of a data plane, with `launch`, one unit that is not stored, and what is `observed` of those that start."""
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


def usual_pull(size: int, pace: SurvivalCurve) -> float | None:
    """Return the seconds within which half the pulls of so many bytes ended; None when too few are known."""
    return size * pace.remaining(0.5) if pace.covers(0.0) else None


def recent_pace() -> SurvivalCurve:
    """Return the seconds for each byte of the latest pulls. Its cost does not grow with the history."""
    newest = StartUp.objects.order_by("-at").values_list("pulling", "image_bytes")[:_LOOKED_AT]
    paces = [(pulling / size, True) for pulling, size in newest if pulling and size and size >= LEAST_PULLED]
    return SurvivalCurve(paces[:RECENT_PULLS])
