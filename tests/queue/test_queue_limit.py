"""The limit of the queue counts by numbers those whom admission would refuse one by one, and says the same for any queue."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings, strategies as st

from grid.configuration import GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER
from grid.core.errors import Rejected
from grid.models import (
    BudgetMonth,
    Execution,
    HardwareTier,
    LastAdmission,
    Project,
    ProjectBudget,
    QueueOrder,
    QueueTakeover,
    State,
    User,
)
from grid.models.dataplane import LOCAL
from grid.queue import snapshot as snapshots_of
from grid.queue.gate import held
from grid.queue.launches import Batch, others_left, why_queue_is_full
from grid.queue.quota import Holding, QueuedUnit, QuotaSnapshot, admit
from grid.usage.budgets.rules import month_of
from tests.queue.queues import TIERS, USERS, moved_snapshots, pair, snapshots, units, waiting
from tests.support.shop import NOW, Shop
from tests.test_query_plans import history as history, scans

Configure = Callable[[Any, int], None]


def batches(snapshot: QuotaSnapshot, moved: Collection[int] = ()) -> list[Batch]:
    """As many batches as parts and holders: alike ones may be in one or in several. None of a user of whom something was moved is
    closed."""
    holding = [Batch(held.user, (held.tier,), held.slots, holding=held.executions) for held in snapshot.holding]
    for unit in snapshot.waiting:
        first, *clusters = unit.parts
        closed = unit.closed is not None and unit.user not in moved
        holding.append(
            Batch(unit.user, first.tiers, first.slots, waiting=1, latest=unit.requested_at, is_closed=closed)
        )
        holding += [Batch(unit.user, part.tiers, part.slots, attached=1, is_closed=closed) for part in clusters]
    return holding


HELD = held("mara", "")  # as in `moved_snapshots`


@dataclass
class Asked:
    """Answers for some users, and keeps whom it was asked about."""

    snapshot: QuotaSnapshot
    launch: QueuedUnit
    users: set[int] = field(default_factory=set)

    def one_by_one(self, users: Collection[int]) -> QuotaSnapshot:
        self.users = set(users)
        everybody = (*self.snapshot.waiting, self.launch)
        return replace(self.snapshot, waiting=tuple(unit for unit in everybody if unit.user in users))

    def answer(self) -> int | None:
        moved = {
            unit.user for unit in self.snapshot.waiting if unit.back_at or unit.rank is not None or unit.closed == HELD
        }
        return others_left(
            self.launch,
            batches(self.snapshot, moved),
            slots_per_user=self.snapshot.slots_per_user,
            tier_maximum=self.snapshot.tier_maximum,
            moved=moved,
            behind={tier for unit in self.snapshot.waiting if unit.back_at for tier in unit.tiers},
            one_by_one=self.one_by_one,
        )


def by_admission(snapshot: QuotaSnapshot, launch: QueuedUnit) -> int | None:
    decisions = admit(replace(snapshot, waiting=(*snapshot.waiting, launch)))
    return None if launch.execution_id in decisions.admitted else len(decisions.refused) - 1


@pytest.mark.parametrize("most_slots", [1, 3])
@given(st.data())
def test_numbers_tell_what_admission_decides(most_slots: int, data: st.DataObject) -> None:
    snapshot, launch = data.draw(snapshots(most_slots)), data.draw(units(most_slots))
    assert Asked(snapshot, launch).answer() == by_admission(snapshot, launch)


CLOSED = held("olga", "")


@given(moved_snapshots(), st.sets(USERS), st.booleans(), st.data())
def test_numbers_agree_with_admission_whatever_the_gate_closes(
    snapshot: QuotaSnapshot, closed_users: set[int], is_launch_closed: bool, data: st.DataObject
) -> None:
    """Operators have moved and held some units, and the gate is closed to all of some users, as to those of a project."""
    waiting = tuple(
        replace(unit, closed=unit.closed or CLOSED) if unit.user in closed_users and unit.rank is None else unit
        for unit in snapshot.waiting
    )
    launch = replace(data.draw(units(4)), closed=CLOSED if is_launch_closed else None)
    asked = Asked(replace(snapshot, waiting=waiting), launch)
    assert asked.answer() == by_admission(asked.snapshot, launch)


EASY_TO_MISS = {
    "one at the back stays there for one of somebody else": (
        (
            replace(waiting("back", 1, slots=2), back_at=NOW + timedelta(seconds=5)),
            waiting("large-1", 1, "large", slots=2, after=1),
            waiting("large-2", 1, "large", slots=2, after=2),
            waiting("older", 2, after=3),
        ),
        waiting("launch", 3, "full", after=9),
    ),
    "the cluster of a pair competes for the last place": (
        (pair("p", 1, cluster_tiers=("gpu",), slots=1), waiting("g", 2, "gpu", after=1)),
        waiting("launch", 3, "full", after=2),
    ),
}


@pytest.mark.parametrize("queue", EASY_TO_MISS)
def test_easily_missed_queues_are_counted_right(queue: str) -> None:
    line, launch = EASY_TO_MISS[queue]
    holding = (Holding(9, "full", 1, 1), Holding(1, "large", 1, 2))
    snapshot = QuotaSnapshot(line, holding, 5, {"gpu": 1, "full": 1})
    assert Asked(snapshot, launch).answer() == by_admission(snapshot, launch)


def test_launch_admitted_between_counts_and_snapshot_is_not_counted() -> None:
    """On PostgreSQL the snapshot waits for the locks of an admission that is under way, and then sees what it admitted."""
    counted = tuple(waiting(f"e{place}", 1, "full", after=place) for place in range(6))
    launch = waiting("launch", 1, "full", after=9)
    later = Asked(QuotaSnapshot(counted[5:], (Holding(1, "full", 5, 5),), 5, {"full": 5}), launch)
    numbers = batches(QuotaSnapshot(counted, (), 5, {"full": 5}))
    asked = others_left(launch, numbers, slots_per_user=5, tier_maximum={"full": 5}, one_by_one=later.one_by_one)
    assert later.users == {1}
    assert asked == 1


LINE = tuple(waiting(f"e{place}", 1 + place % 2, after=place) for place in range(8))


def test_only_unclear_lines_are_looked_at() -> None:
    others = (waiting("gpu-1", 3, "gpu"), waiting("gpu-2", 4, "gpu"), waiting("large", 5, slots=4), waiting("one", 5))
    snapshot = QuotaSnapshot((*LINE, *others), (), 4, {"gpu": 1})
    asked = Asked(snapshot, waiting("launch", 1, after=60))
    assert (asked.answer(), asked.users) == (2, {3, 4, 5})


def test_launch_before_the_end_of_its_line_is_examined() -> None:
    """Another process may have a clock that is a little ahead."""
    asked = Asked(QuotaSnapshot(LINE, (), 4), waiting("launch", 1, after=5))
    assert (asked.answer(), asked.users) == (None, {1})


# --- With the database ---


def test_launch_into_a_full_queue_reads_no_waiting_rows(
    history: Shop, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(GLOBAL_QUEUE_LIMIT, 2)
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    monkeypatch.setattr(snapshots_of, "take", None)
    with CaptureQueriesContext(connection) as queries, pytest.raises(Rejected, match="2 executions wait"):
        history.launch(after=60)
    assert list(scans(queries)) == []


@dataclass(frozen=True)
class Entry:
    """What is stored: a workspace, a cluster or both, or a cluster whose workspace runs."""

    what: str
    user: int
    tier: str
    head_tier: str
    slots: int
    state: str
    after: int

    def rows(self, id: str, people: list[User], shop: Shop) -> list[Execution]:
        def row(kind: str, state: str, **more: Any) -> Execution:
            holds = state in (State.RUNNING, State.STOPPED)
            return Execution(
                id=more.pop("id", id), kind=kind, owner=people[self.user], project=shop.project, data_plane_id=LOCAL,
                environment=shop.cluster if kind == "cluster" else shop.workspace, state=state, tier_id=self.tier,
                requested_at=NOW + timedelta(seconds=self.after), slots_reserved_at=NOW if holds else None,
                node_pool="default", millicores=1, memory_bytes=1, gpus=0, price_per_hour=0, **more,
            )  # fmt: skip

        cluster = {"head_tier_id": self.head_tier, "slots": self.slots, "workers_minimum": 1, "workers_maximum": 1}
        if self.what == "workspace":
            return [row("workspace", self.state)]
        if self.what == "cluster":
            return [row("cluster", self.state, **cluster)]
        first = row("workspace", self.state if self.what == "pair" else State.RUNNING)
        return [first, row("cluster", self.state, id=f"{id}-c", attached_to=first, **cluster)]


ENTRIES = st.builds(
    Entry,
    what=st.sampled_from(["workspace", "workspace", "workspace", "cluster", "pair", "left alone"]),
    user=st.integers(0, 2),
    tier=st.sampled_from(TIERS),
    head_tier=st.sampled_from(TIERS),
    slots=st.integers(1, 4),
    # Each state as often as it is written; one that has stopped and holds slots still has pods.
    state=st.sampled_from([State.QUEUED, State.QUEUED, State.QUEUED, State.RUNNING, State.STOPPED]),
    after=st.integers(0, 9),
)


ORDERS: dict[str, dict[str, Any]] = {
    "front": {"rank": 1},
    "back": {"back_at": NOW + timedelta(seconds=5)},
    "hold": {"held_at": NOW},
}


def all_looked_at(launch: list[Execution], limit: int) -> int | None:
    """How many wait by the decision on everybody in full; None when the queue is not full."""
    decisions = admit(snapshots_of.take(LOCAL, extra=launch, now=NOW).snapshot)
    if launch[0].pk in decisions.admitted or len(decisions.refused) <= limit:
        return None
    return len(decisions.refused) - 1


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entries=st.lists(ENTRIES, max_size=14),
    launch=ENTRIES,
    maxima=st.dictionaries(st.sampled_from(TIERS), st.integers(1, 5), max_size=3),
    slots_per_user=st.integers(0, 8),
    limit=st.integers(0, 4),
    moved=st.dictionaries(st.integers(0, 13), st.sampled_from([*ORDERS]), max_size=3),
    is_taken_over=st.booleans(),
    is_used_up=st.booleans(),
)
def test_the_limit_refuses_as_a_decision_on_all_would(
    shop: Shop,
    configure: Configure,
    entries: list[Entry],
    launch: Entry,
    maxima: dict[str, int],
    slots_per_user: int,
    limit: int,
    moved: dict[int, str],
    is_taken_over: bool,
    is_used_up: bool,
) -> None:
    people = [shop.people.owner, shop.people.teammate, shop.people.stranger]
    with transaction.atomic():
        shop.project.members.add(shop.people.stranger, through_defaults={"role": "contributor"})
        configure(MAXIMUM_EXECUTIONS_PER_USER, slots_per_user)
        configure(GLOBAL_QUEUE_LIMIT, limit)
        for id in TIERS:
            HardwareTier.objects.update_or_create(
                id=id, defaults={"name": id, "node_pool": "p", "cores": "1", "memory": "1Gi", "maximum_simultaneous": maxima.get(id)}
            )  # fmt: skip
        stored = [row for at, entry in enumerate(entries) for row in entry.rows(f"e{at}", people, shop)]
        if is_used_up:
            other = Project.objects.start(id="other", name="Other", owner=people[1])
            ProjectBudget.objects.create(project=other, amount=1)
            BudgetMonth.objects.create(project=other, month=month_of(NOW), spent=2, counted_at=NOW)
            for row in stored:
                row.project = other if row.owner == people[1] else row.project
        Execution.objects.bulk_create(stored)
        LastAdmission.objects.create(user=people[0], tier_id="gpu", at=NOW)
        for at, how in moved.items():
            if at < len(entries):
                QueueOrder.objects.create(execution_id=f"e{at}", **ORDERS[how])
        if is_taken_over:
            QueueTakeover.objects.create(actor_name="mara", reason="x", from_at=NOW, until_at=NOW + timedelta(hours=1))
        wanted = replace(launch, state=State.QUEUED, what="pair" if launch.what == "left alone" else launch.what)
        rows = wanted.rows("launch", people, shop)
        full = why_queue_is_full(rows, NOW)
        assert (full.values["waiting"] if full is not None else None) == (
            all_looked_at(rows, limit) if Execution.objects.queued().count() >= limit else None
        )
        transaction.set_rollback(True)
