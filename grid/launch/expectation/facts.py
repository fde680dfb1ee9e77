"""Turns rows of executions into the facts of an estimate; pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from grid.launch.expectation.curve import Curve
from grid.launch.expectation.estimate import Key, WaitFacts, Work, with_node
from grid.launch.expectation.simulation import Holder
from grid.launch.quota import QuotaSnapshot

COLUMNS = (
    *("id", "kind", "owner_id", "tier_id", "head_tier_id", "environment_id", "node_pool", "slots", "state"),
    *("slots_reserved_at", "slots_freed_at", "started_at", "ended_at"),
)
NODE_STARTED = "start_up__node_started"  # of those that have started
_CLUSTER = "cluster"


def facts_of(
    found: QuotaSnapshot,
    active: Sequence[dict[str, Any]],
    rows: Iterable[dict[str, Any]],
    now: datetime,
    new_nodes: Mapping[str, bool] | None = None,
) -> WaitFacts:
    """Return the facts from rows of `COLUMNS`: `active` are unsettled, `rows` have ever held slots."""
    lives: dict[Key, list[tuple[float, bool]]] = {}
    starts: dict[Key, list[tuple[float, bool]]] = {}
    for row in rows:
        life = _life(row, now)
        for key in _life_keys(row):
            lives.setdefault(key, []).append(life)
        start = _start(row, now)
        was_new = row.get(NODE_STARTED)
        for key in _start_keys(row):
            starts.setdefault(key, []).append(start)
            if was_new is not None:
                starts.setdefault(with_node(key, was_new), []).append(start)
    waiting = {part.execution_id for one in found.waiting for part in one.parts}
    works = {row["id"]: _work(row, now) for row in active if row["id"] in waiting or _holds(row)}
    return WaitFacts(
        found,
        works,
        {key: Curve(values) for key, values in lives.items()},
        {key: Curve(values) for key, values in starts.items()},
        new_nodes or {},
    )


def _holds(row: dict[str, Any]) -> bool:
    return row["slots_reserved_at"] is not None and row["slots_freed_at"] is None


def _work(row: dict[str, Any], now: datetime) -> Work:
    head = row["head_tier_id"] if row["kind"] == _CLUSTER else None
    tiers = (head, row["tier_id"]) if head and head != row["tier_id"] else (row["tier_id"],)
    since = row["slots_reserved_at"]
    return Work(
        row["id"],
        Holder(row["owner_id"], tiers, row["slots"]),
        _life_keys(row),
        _start_keys(row),
        max(0.0, (now - since).total_seconds()) if since is not None else 0.0,
        row["state"] in ("deploying", "preparing"),
    )


def _life(row: dict[str, Any], now: datetime) -> tuple[float, bool]:
    """Return for how long it has held slots, and whether that is over."""
    until = row["slots_freed_at"]
    return max(0.0, ((until or now) - row["slots_reserved_at"]).total_seconds()), until is not None


def _start(row: dict[str, Any], now: datetime) -> tuple[float, bool]:
    """Return how long it took to start, and whether it has."""
    until = row["started_at"]
    return max(0.0, ((until or row["ended_at"] or now) - row["slots_reserved_at"]).total_seconds()), until is not None


def _life_keys(row: dict[str, Any]) -> tuple[Key, ...]:
    kind, tier = row["kind"], row["tier_id"]
    return ("of", str(row["owner_id"]), kind, tier), ("on", kind, tier), ("kind", kind)


def _start_keys(row: dict[str, Any]) -> tuple[Key, ...]:
    kind, pool, environment = row["kind"], row["node_pool"], row["environment_id"]
    return ("in", kind, pool, environment), ("pool", kind, pool)
