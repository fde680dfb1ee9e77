"""Operators move, hold and release what waits, or take the queue over: the order is theirs, every cap holds, and everybody is told."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, strategies as st

from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, OVER_QUOTA_TIMEOUT
from grid.core.errors import Rejected
from grid.executions.stopping import request_stop
from grid.models import AuditEntry, ConfigRecord, Execution, LifecycleEntry, QueueOrder, QueueTakeover, State
from grid.models.dataplane import LOCAL
from grid.queue import ordering, takeover
from grid.queue.gate import GateFacts, taken_over, why_not_start
from grid.queue.quota import Holding, Part, QueuedUnit, QuotaSnapshot, admit, order
from grid.queue.snapshot import peek, take
from tests.conftest import People, client_of
from tests.queue.queues import moved_snapshots, waiting
from tests.starts.startrecords import plan_of
from tests.support.shop import NOW, OWNER, Shop, admit_waiting

HOUR = timedelta(hours=1)
PAGE = "/queue/take-over/"


@given(moved_snapshots())
def test_holding_a_unit_equals_its_absence_for_others(snapshot: QuotaSnapshot) -> None:
    without = replace(snapshot, waiting=tuple(unit for unit in snapshot.waiting if not unit.closed))
    assert admit(snapshot).admitted == admit(without).admitted


@given(moved_snapshots(), st.randoms())
def test_order_does_not_depend_on_order_of_rows(snapshot: QuotaSnapshot, random: object) -> None:
    shuffled = list(snapshot.waiting)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = replace(snapshot, waiting=tuple(shuffled))
    assert order(again) == order(snapshot)
    assert admit(again) == admit(snapshot)


@given(moved_snapshots())
def test_order_has_all_startable_units_with_the_front_first(snapshot: QuotaSnapshot) -> None:
    units = {unit.execution_id: unit for unit in snapshot.waiting if not unit.closed}
    ids = order(snapshot)
    assert sorted(ids) == sorted(units)
    ranks = [units[id].rank for id in ids if units[id].rank is not None]
    assert [units[id].rank for id in ids[: len(ranks)]] == ranks == sorted(ranks, key=lambda rank: rank or 0)


def test_unit_moved_back_lets_only_earlier_ones_pass() -> None:
    back = replace(waiting("back", 1), back_at=NOW + timedelta(seconds=10))
    old, new = waiting("old", 2, after=10), waiting("new", 3, after=20)
    served = {(1, "small"): NOW, (2, "small"): NOW, (3, "small"): NOW}
    snapshot = QuotaSnapshot((back, old, new), (), 5, {"small": 1}, last_served=served)
    assert order(snapshot) == ("old", "new", "back")
    assert order(replace(snapshot, waiting=(back, new))) == ("back", "new")


def test_unit_moved_back_is_not_passed_by_newer_ones() -> None:
    def unit(user: int, id: str, tier: str, minute: float, back: float | None = None) -> QueuedUnit:
        back_at = None if back is None else NOW + timedelta(minutes=back)
        return QueuedUnit(user, NOW + timedelta(minutes=minute), (Part(id, "job", (tier,)),), back_at=back_at)

    waiting = (unit(1, "old", "full", 0), unit(2, "moved", "free", 1, back=2), unit(3, "newer", "free", 500))
    snapshot = QuotaSnapshot(waiting, (Holding(9, "full", 1, 1),), 25, {"free": 1, "full": 1})
    assert admit(snapshot).admitted == ("moved",)


@pytest.fixture
def full(shop: Shop) -> Shop:
    """One slot for each user, which the owner's first launch takes."""
    ConfigRecord.objects.create(key=MAXIMUM_EXECUTIONS_PER_USER.key, value="1")
    shop.launch(title="First")
    admit_waiting(LOCAL, now=NOW)
    return shop


def state_of(execution: Execution) -> tuple[str, str]:
    execution.refresh_from_db()
    return execution.state, execution.words(OWNER)


def standing() -> list[str]:
    snapshot = take(LOCAL, now=NOW).snapshot
    titles = dict(Execution.objects.values_list("pk", "title"))
    return [titles[id] for id in order(snapshot)]


@pytest.mark.django_db
def test_a_held_execution_starts_only_when_it_is_released(shop: Shop) -> None:
    waits = shop.launch(title="Waits")
    ordering.hold(waits.pk, by=shop.people.operator, reason="The GPU nodes are being repaired.", now=NOW)
    assert admit_waiting(LOCAL, now=NOW) == []
    state, message = state_of(waits)
    assert state == State.QUEUED
    assert message == (
        "Held by olga-operator: The GPU nodes are being repaired. This starts when an operator releases it, and does not time out before."
    )
    ordering.release(waits.pk, by=shop.people.operator, now=NOW)
    assert admit_waiting(LOCAL, now=NOW) == [waits.pk]
    assert not QueueOrder.objects.exists()
    reasons = LifecycleEntry.objects.filter(execution=waits).values_list("reason", "actor")
    assert {("HeldInQueue", "olga-operator"), ("ReleasedInQueue", "olga-operator")} <= set(reasons)
    assert [entry.actor_name for entry in AuditEntry.objects.filter(object_id=waits.pk)] == [
        "olga-operator",
        "olga-operator",
    ]


@pytest.mark.django_db
def test_being_held_does_not_count_as_waiting_too_long(full: Shop) -> None:
    waits = full.launch(title="Waits")
    ConfigRecord.objects.create(key=OVER_QUOTA_TIMEOUT.key, value="600")
    ordering.hold(waits.pk, by=full.people.operator, reason="", now=NOW)
    later = NOW + timedelta(hours=2)
    admit_waiting(LOCAL, now=later)
    assert state_of(waits)[0] == State.QUEUED
    ordering.release(waits.pk, by=full.people.operator, now=later)
    admit_waiting(LOCAL, now=later + timedelta(seconds=599))
    assert state_of(waits)[0] == State.QUEUED
    admit_waiting(LOCAL, now=later + timedelta(seconds=601))
    assert state_of(waits)[0] == State.ERROR


@pytest.mark.django_db
def test_operators_put_executions_where_they_want_them(full: Shop) -> None:
    a, b, c, d = (full.launch(title=title, after=after) for after, title in enumerate("ABCD"))
    operator = full.people.operator
    assert standing() == ["A", "B", "C", "D"]
    ordering.move(c.pk, "front", by=operator, now=NOW)
    assert standing() == ["C", "A", "B", "D"]
    ordering.move(d.pk, "before", before=b.pk, by=operator, now=NOW)
    assert standing() == ["C", "A", "D", "B"]
    ordering.move(b.pk, "before", before=a.pk, by=operator, now=NOW)
    assert standing() == ["C", "B", "A", "D"]
    ordering.move(c.pk, "back", by=operator, now=NOW + timedelta(minutes=1))
    assert standing() == ["B", "A", "D", "C"]
    ordering.move(b.pk, "turn", by=operator, now=NOW)
    assert standing() == ["A", "D", "B", "C"]


@pytest.mark.django_db
def test_decision_about_departed_unit_is_refused_with_the_reason(full: Shop) -> None:
    first = Execution.objects.get(title="First")
    waits, other = full.launch(title="Waits"), full.launch(title="Other", after=1)
    operator = full.people.operator
    with pytest.raises(Rejected, match="It has left the queue in the meantime and is deploying; nothing was changed"):
        ordering.move(first.pk, "front", by=operator, now=NOW)
    with pytest.raises(Rejected, match="is no longer waiting"):
        ordering.move(waits.pk, "before", before=first.pk, by=operator, now=NOW)
    request_stop(other, by="owner", now=NOW)
    with pytest.raises(Rejected, match="It has ended in the meantime"):
        ordering.hold(other.pk, by=operator, reason="", now=NOW)
    with pytest.raises(Rejected, match="Nobody holds it"):
        ordering.release(waits.pk, by=operator, now=NOW)
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db
def test_cluster_is_moved_with_its_workspace(shop: Shop) -> None:
    shop.launch(title="A")
    workspace, cluster = shop.launch_with_cluster(after=1)
    ordering.move(cluster.pk, "front", by=shop.people.operator, now=NOW)
    assert [order.pk for order in QueueOrder.objects.all()] == [workspace.pk]
    assert standing()[0] == workspace.title


@pytest.mark.django_db
def test_workspace_and_its_cluster_are_held_once(shop: Shop) -> None:
    workspace, cluster = shop.launch_with_cluster()
    ids = [cluster.pk, workspace.pk]
    assert ordering.hold_several(ids, by=shop.people.operator, reason="", now=NOW) == 1
    assert [order.pk for order in QueueOrder.objects.all()] == [workspace.pk]


def take_over(shop: Shop, minutes: int = 60) -> QueueTakeover:
    return takeover.take_over(by=shop.people.operator, minutes=minutes, reason="A node\nburns", now=NOW)


@given(moved_snapshots())
def test_takeover_starts_only_what_was_put_in_front(snapshot: QuotaSnapshot) -> None:
    facts = GateFacts(takeover=taken_over("mara", NOW + HOUR, "A node burns"))

    def in_taken_over_queue(unit: QueuedUnit) -> QueuedUnit:
        is_in_front = unit.rank is not None
        return replace(unit, closed=why_not_start(facts, unit.user, "churn", unit.closed, is_in_front=is_in_front))

    by_hand = replace(snapshot, waiting=tuple(map(in_taken_over_queue, snapshot.waiting)))
    decisions = admit(by_hand)
    units = {unit.execution_id: unit for unit in snapshot.waiting}
    assert all(units[id].rank is not None for id in decisions.admitted)
    for id, refused in decisions.refused.items():
        if units[id].rank is None and units[id].closed is None:
            assert (refused.code, refused.position) == ("taken_over", 0)
            assert refused.words(OWNER).startswith(
                "mara decides by hand what starts, until 4 March, 10:00 UTC: A node burns. "
            )
    front = tuple(unit for unit in snapshot.waiting if unit.rank is not None)
    assert decisions.admitted == admit(replace(snapshot, waiting=front)).admitted


def test_waiting_owner_reads_who_took_over_and_why(shop: Shop) -> None:
    first, second = shop.launch(), shop.launch(after=1)
    take_over(shop)
    assert admit_waiting(LOCAL, now=NOW + timedelta(minutes=1)) == []
    first.refresh_from_db()
    assert first.reason == "taken_over"
    assert first.words(OWNER) == (
        f"{shop.people.operator.username} decides by hand what starts, until 4 March, 10:00 UTC: A node burns. "
        "Afterwards this starts by itself in its turn."
    )
    ordering.move(second.pk, "front", by=shop.people.operator, now=NOW)
    assert admit_waiting(LOCAL, now=NOW + timedelta(minutes=2)) == [second.pk]
    assert admit_waiting(LOCAL, now=NOW + HOUR) == [first.pk]


def test_takeover_has_one_operator_and_anybody_ends_it(shop: Shop) -> None:
    for minutes, reason in ((60, " "), (60, "x" * 201), (61, "x"), (0, "x")):
        with pytest.raises(Rejected):
            takeover.take_over(by=shop.people.operator, minutes=minutes, reason=reason, now=NOW)
    with pytest.raises(Rejected, match="Nobody has taken over"):
        takeover.give_back(by=shop.people.admin, now=NOW)
    take_over(shop)
    with pytest.raises(Rejected, match=f"{shop.people.operator.username} has taken over the queue until"):
        takeover.take_over(by=shop.people.admin, minutes=60, reason="Mine", now=NOW + timedelta(minutes=1))
    takeover.give_back(by=shop.people.admin, now=NOW + timedelta(minutes=5))
    assert takeover.current_takeover(NOW + timedelta(minutes=5)) is None
    assert takeover.last_end(NOW + HOUR) == NOW + timedelta(minutes=5)
    takeover.take_over(by=shop.people.admin, minutes=15, reason="Mine", now=NOW + timedelta(minutes=6))
    assert takeover.current_takeover(NOW + timedelta(minutes=21)) is None
    assert [sorted(entry.changes) for entry in AuditEntry.objects.order_by("pk")] == [
        ["reason", "taken over"],
        ["given back"],
        ["reason", "taken over"],
    ]


@pytest.mark.usefixtures("runtime")
def test_takeover_names_its_operator_and_another_gives_it_back(people: People) -> None:
    client = client_of(people.operator)
    assert f'href="{PAGE}"' in client.get("/queue/").text
    assert client.post(PAGE, {"do": "take", "minutes": "60", "reason": ""}).status_code == 422
    taken = client.post(PAGE, {"do": "take", "minutes": "60", "reason": "A <node> burns"}, follow=True)
    assert "You decide what starts, until" in taken.text
    other = client_of(people.admin)
    page = other.get(PAGE).text
    assert people.operator.username in page and "A &lt;node&gt; burns" in page
    late = other.post(PAGE, {"do": "take", "minutes": "15", "reason": "Mine"})
    assert late.status_code == 422 and "has taken over the queue until" in late.text
    assert "The queue goes by turn again." in other.post(PAGE, {"do": "back"}, follow=True).text
    assert other.post(PAGE, {"do": "back"}).status_code == 422
    assert QueueTakeover.objects.count() == 1
    assert PAGE not in client_of(people.owner).get("/queue/").text


def test_those_who_wait_are_found_without_a_look_at_what_runs(shop: Shop) -> None:
    """In the order of their requests, whichever order the database has."""
    ids = [shop.launch(after=seconds).pk for seconds in (9, 3, 6)]
    with CaptureQueriesContext(connection) as queries:
        queue = peek(LOCAL, now=NOW)
    assert list(queue.units) == [ids[1], ids[2], ids[0]]
    asked = queries[0]["sql"]
    assert "unsettled_by_state " in plan_of(asked) or connection.vendor == "postgresql"
