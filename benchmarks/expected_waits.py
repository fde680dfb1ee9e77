"""Compares the waits that the grid expects with those that happen, over simulated launches in virtual time.

The rules of admission and the estimator are the real ones; people, lifetimes, node starts and image pulls are drawn from a seed. Each
prediction is made from nothing but what had happened by then: when a launch is queued, when it waits for room on nodes, and when it is on a
node. One pool has no autoscaler and fewer places on its nodes than its tier allows; the nodes of the others come, and go when idle.
"""

import argparse
import heapq
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from grid.queue.quota import Holding, Part, QueuedUnit, QuotaSnapshot, admit
from grid.queue.wait_estimate.capacity import Occupant, RoomFacts, RoomSeeker, roomiest
from grid.queue.wait_estimate.estimate import estimates
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.queue.wait_estimate.observing import Observed, OnNode
from grid.queue.wait_estimate.outcomes import is_near
from grid.queue.wait_estimate.reading import WaitRow, facts_of

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SLOTS = 6
TIERS = {"small": 0, "large": 14, "gpu": 8}  # places; 0: no maximum
HISTORY = 2000
# Kind, share of the launches, median of its lifetime in seconds, and the spread of its logarithm.
KINDS = (("job", 0.6, 900, 0.6), ("workspace", 0.35, 7200, 0.8), ("app", 0.05, 28800, 0.5))
NODE_SECONDS, CREATING_SECONDS, STARTING_SECONDS = 100.0, 1.0, 8.0
IMAGES = {"env-1": 600_000_000, "env-2": 2_200_000_000, "env-3": 6_000_000_000}
PACE = 1 / 60_000_000  # seconds for each byte
ROOM = {"large": {"large-1": 4, "large-2": 4, "large-3": 3}}  # places on the nodes of a pool without an autoscaler


@dataclass
class Simulated:
    """A day after day of launches; `outcomes` are the prediction and the wait of each launch that ran."""

    seed: int
    launches: int
    warm_up: int
    load: float
    is_blind: bool = False  # to whether a launch finds a node, and the node has its image
    rng: random.Random = field(init=False)
    now: float = 0.0
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    active: dict[str, dict[str, Any]] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    served: dict[tuple[int, str], datetime] = field(default_factory=dict)
    predicted: dict[str, WaitEstimate] = field(default_factory=dict)
    outcomes: list[tuple[WaitEstimate, float, str]] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    warm_until: dict[str, float] = field(default_factory=dict)  # the node of each tier goes when idle
    images: dict[str, set[str]] = field(default_factory=dict)  # on the nodes of each pool
    line: dict[str, list[str]] = field(default_factory=lambda: {pool: [] for pool in ROOM})  # waits for room
    later: dict[tuple[str, str], tuple[WaitEstimate, float]] = field(default_factory=dict)  # by stage and execution

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.events: list[tuple[float, int, str, str]] = []
        self.number = 0

    def run(self) -> None:
        for seconds in self._arrivals():
            self._add(seconds, "launch", "")
        while self.events and len(self.outcomes) < self.launches:
            self.now, _, what, id = heapq.heappop(self.events)
            getattr(self, f"_{what}")(id)

    def _arrivals(self) -> Iterator[float]:
        """Launches come singly, and now and then one person launches many at once."""
        seconds, left = 0.0, (self.launches + self.warm_up) * 2
        while left > 0:
            seconds += self.rng.expovariate(self.load / 150)
            burst = self.rng.randint(4, 15) if self.rng.random() < 0.06 else 1
            for _ in range(burst):
                yield seconds
            left -= burst
            seconds += 240 * (burst - 1) / self.load

    def _add(self, seconds: float, what: str, id: str) -> None:
        self.number += 1
        heapq.heappush(self.events, (seconds, self.number, what, id))

    def _at(self, seconds: float) -> datetime:
        return START + timedelta(seconds=seconds)

    def _launch(self, _: str) -> None:
        kind, _share, median, spread = self.rng.choices(KINDS, [kind[1] for kind in KINDS])[0]
        owner = self.rng.randint(1, 12)
        tier = self.rng.choices(list(TIERS), [5, 3, 2])[0]
        id = f"e{self.number}-{len(self.rows)}"
        habit = 0.5 + (owner * 7 % 10) / 8  # people differ, and are like themselves
        row: dict[str, Any] = {
            "id": id,
            "kind": kind,
            "owner_id": owner,
            "tier_id": tier,
            "head_tier_id": None,
            "node_pool": tier,
            "head_node_pool": "",
            "environment_id": f"env-{self.rng.randint(1, 3)}",
            "slots": 1,
            "state": "queued",
            "slots_reserved_at": None,
            "slots_freed_at": None,
            "started_at": None,
            "ended_at": None,
            "requested_at": self._at(self.now),
            "finds_full_nodes": self.rng.random() < 0.15,
            "life": self.rng.lognormvariate(0, spread) * median * habit,
        }
        self.rows[id] = self.active[id] = row
        self._add(self.now, "predict", id)

    def _predict(self, id: str) -> None:
        """Predict before the admission, as the first estimate of a launch is made."""
        if self.rows[id]["state"] == "queued" and len(self.rows) > self.warm_up and len(self.predicted) < self.launches:
            needs = {} if self.is_blind else {id: self._needs_node(self.rows[id])}
            self.predicted[id] = self._estimate(id, Observed(needs))
        self._admit()

    def _estimate(self, id: str, observed: Observed) -> WaitEstimate:
        active = [_columns(row) for row in self.active.values()]
        ended = [_columns(row) for row in reversed(self.history[-HISTORY:])]
        began = time.perf_counter()
        rows = [*ended, *(row for row in active if row.slots_reserved_at)]
        facts = facts_of(self._snapshot(), active, rows, self._at(self.now), observed)
        estimate = estimates(facts)[id]
        self.costs.append(time.perf_counter() - began)
        return estimate

    def _predict_later(self, stage: str, id: str, observed: Observed) -> None:
        if id in self.predicted:
            self.later[stage, id] = self._estimate(id, observed), self.now

    def _snapshot(self) -> QuotaSnapshot:
        waiting = [row for row in self.active.values() if row["state"] == "queued"]
        holding = [row for row in self.active.values() if row["slots_reserved_at"] is not None]
        return QuotaSnapshot(
            tuple(
                QueuedUnit(row["owner_id"], row["requested_at"], (Part(row["id"], row["kind"], (row["tier_id"],)),))
                for row in waiting
            ),
            tuple(Holding(row["owner_id"], row["tier_id"], 1, 1) for row in holding),
            SLOTS,
            {tier: most for tier, most in TIERS.items() if most},
            last_served=self.served,
        )

    def _admit(self) -> None:
        for id in admit(self._snapshot()).admitted:
            row = self.rows[id]
            row["state"], row["slots_reserved_at"] = "deploying", self._at(self.now)
            self.served[(row["owner_id"], row["tier_id"])] = self._at(self.now)
            self._begin(id)

    def _needs_node(self, row: dict[str, Any]) -> bool:
        if row["node_pool"] in ROOM:
            return False
        return self.now > self.warm_until.get(row["node_pool"], 0.0) or bool(row["finds_full_nodes"])

    def _begin(self, id: str) -> None:
        """Its pod is made; the scheduler finds a node, one is started, or it waits for room."""
        row = self.rows[id]
        pool, is_cold = row["node_pool"], self._needs_node(row)
        row["made_at"], row["needed_node"] = self.now, is_cold
        if pool in ROOM:
            self.line[pool].append(id)
            if not self._place(pool):
                self._predict_later("room", id, Observed(room=self._room(pool)))
            return
        wait = self.rng.lognormvariate(0, 0.25) * NODE_SECONDS if is_cold else 0.0
        if is_cold:
            self.images[pool] = set()
        self._add(self.now + CREATING_SECONDS + wait, "bound", id)

    def _free(self, pool: str) -> dict[str, int]:
        held = [row["node"] for row in self.active.values() if row.get("node")]
        return {node: places - held.count(node) for node, places in ROOM[pool].items()}

    def _place(self, pool: str) -> bool:
        """Give a node to the first in line if one has room."""
        free = self._free(pool)
        node = max(free, key=lambda name: roomiest(name, {"cpu": free[name]}))
        if not self.line[pool] or not free[node]:
            return False
        id = self.line[pool].pop(0)
        self.rows[id]["node"] = node
        self._add(self.now + CREATING_SECONDS, "bound", id)
        return True

    def _room(self, pool: str) -> RoomFacts:
        request, nodes = {"cpu": 1}, frozenset(ROOM[pool])
        held = [Occupant(row["id"], row["node"], request) for row in self.active.values() if row.get("node")]
        seekers = [RoomSeeker(id, request, nodes, (0, place, id), "first") for place, id in enumerate(self.line[pool])]
        return RoomFacts(seekers, held, {node: {"cpu": free} for node, free in self._free(pool).items()})

    def _bound(self, id: str) -> None:
        """It is on its node, where its image is pulled if it is not there."""
        row = self.rows[id]
        row["state"], image = "preparing", row["environment_id"]
        there = self.images.setdefault(row["node_pool"], set())
        has_image = image in there and self.rng.random() > 0.1  # each node has its own
        there.add(image)
        seen = OnNode(image, 0.0) if self.is_blind else OnNode(image, 0.0, has_image=has_image, size=IMAGES[image])
        self._predict_later(
            "preparing, image there" if has_image else "preparing, to pull", id, Observed(on_node={id: seen})
        )
        pulling = 0.0 if has_image else self.rng.lognormvariate(0, 0.25) * PACE * IMAGES[image]
        start = self.rng.lognormvariate(0, 0.2) * STARTING_SECONDS
        wait = self.now - row["made_at"] - CREATING_SECONDS
        reserved = (row["slots_reserved_at"] - row["requested_at"]).total_seconds()
        measured: dict[str, Any] = {
            "queued": reserved,
            "creating": CREATING_SECONDS,
            "node_wait": wait,
            "scheduling": 0.0,
            "pulling": pulling,
            "total": reserved + CREATING_SECONDS + wait + pulling + start,
            "image": image,
            "image_bytes": 0 if has_image else IMAGES[image],
        }
        row["measured"] = {f"start_up__{name}": value for name, value in measured.items()}
        self._add(self.now + pulling + start, "started", id)

    def _started(self, id: str) -> None:
        row = self.rows[id]
        row["state"], row["started_at"] = "running", self._at(self.now)
        row |= {**row["measured"], "start_up__node_started": row["needed_node"]}
        if id in self.predicted:
            waited = (row["started_at"] - row["requested_at"]).total_seconds()
            queued = (row["slots_reserved_at"] - row["requested_at"]).total_seconds() > 1
            stage = "queued" if queued else "crowded" if ("room", id) in self.later else "at once"
            self.outcomes.append((self.predicted[id], waited, stage))
        self._add(self.now + row["life"], "ended", id)

    def _ended(self, id: str) -> None:
        row = self.active.pop(id)
        row["state"], row["ended_at"] = "stopped", self._at(self.now)
        row["slots_freed_at"] = row["ended_at"]
        self.warm_until[row["node_pool"]] = self.now + 600
        self.history.append(row)
        if row["node_pool"] in ROOM:
            self._place(row["node_pool"])
        self._admit()

    def of_stage(self, stage: str) -> list[tuple[WaitEstimate, float]]:
        """Return what was predicted at a later stage, and what came of it."""
        of = [(self.rows[id], made) for (name, id), made in self.later.items() if name == stage]
        return [
            (estimate, (row["started_at"] - self._at(at)).total_seconds())
            for row, (estimate, at) in of
            if row["started_at"] is not None
        ]


def _columns(row: dict[str, Any]) -> WaitRow:
    return WaitRow(**{name: row[name] for name in WaitRow._fields if name in row})


def report(title: str, outcomes: list[tuple[WaitEstimate, float]]) -> None:
    known = [
        (estimate.expected, estimate.low, estimate.high, actual)
        for estimate, actual in outcomes
        if estimate.expected is not None
    ]
    print(f"{title}: {len(outcomes)} launches, {len(known)} predicted")
    if not known:
        return
    errors = sorted(abs(expected - actual) for expected, _, _, actual in known)
    strict = sum(abs(expected - actual) <= 0.3 * actual for expected, _, _, actual in known)
    near = sum(is_near(expected, actual) for expected, _, _, actual in known)
    inside = sum(low <= actual and (high is None or actual <= high) for _, low, high, actual in known)
    print(f"  within 30 %: {strict / len(known):.0%}; within 30 % or 10 s: {near / len(known):.0%}")
    print(f"  absolute error: median {statistics.median(errors):.0f} s, p90 {errors[int(0.9 * len(errors))]:.0f} s")
    print(f"  median wait {statistics.median(actual for *_, actual in known):.0f} s")
    print(f"  inside the range, which should hold 80 %: {inside / len(known):.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=500)
    parser.add_argument("--warm-up", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", type=float, default=1.0, help="launches an hour, in multiples of what fits well")
    parser.add_argument(
        "--blind", action="store_true", help="predict without knowing whether a node has room, or the image"
    )
    wanted = parser.parse_args()
    world = Simulated(wanted.seed, wanted.launches, wanted.warm_up, wanted.load, wanted.blind)
    world.run()
    report("when launched, all", [(estimate, actual) for estimate, actual, _ in world.outcomes])
    report(
        "that waited for a slot",
        [(estimate, actual) for estimate, actual, stage in world.outcomes if stage == "queued"],
    )
    report(
        "that had slot and room at once",
        [(estimate, actual) for estimate, actual, stage in world.outcomes if stage == "at once"],
    )
    report("when there was no room", world.of_stage("room"))
    report("when on a node that lacks the image", world.of_stage("preparing, to pull"))
    report("when on a node that has it", world.of_stage("preparing, image there"))
    print(f"one estimate: median {1000 * statistics.median(world.costs):.1f} ms, most {1000 * max(world.costs):.1f} ms")


if __name__ == "__main__":
    main()
