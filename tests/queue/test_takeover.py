"""An operator takes over the queue: only what operators put in front starts, everybody is told, and afterwards turns are as before."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given

from grid.core.errors import Rejected
from grid.models import AuditEntry, QueueTakeover
from grid.models.dataplane import LOCAL
from grid.queue import ordering, takeover
from grid.queue.gate import GateFacts, taken_over, why_not_start
from grid.queue.quota import QueuedUnit, QuotaSnapshot, admit
from tests.conftest import People, client_of
from tests.queue.queues import moved_snapshots
from tests.support.shop import NOW, OWNER, Shop, admit_waiting

HOUR = timedelta(hours=1)
PAGE = "/queue/take-over/"


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
