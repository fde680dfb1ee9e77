"""Whoever chose it is told that a queued execution is next or starts soon: little, and once."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grid.executions.stopping import request_stop
from grid.models import Notification, NotificationChoice, User
from grid.models.dataplane import LOCAL
from grid.queue.queuewatch import QueuedLaunch, news_of, tell_queue
from grid.queue.wait_estimate.inputs import WaitEstimate
from tests.queue.test_at_once import at_once
from tests.support.shop import NOW, Shop

MINUTE = timedelta(minutes=1)


def queued(id: str = "a", owner: int = 1, *, waited: timedelta = 5 * MINUTE, **sent: bool) -> QueuedLaunch:
    return QueuedLaunch(id, owner, NOW - waited, **sent)


def sentences(*launches: QueuedLaunch, **expected: WaitEstimate) -> dict[str, str]:
    return {news.id: news.sentence for news in news_of(launches, expected, NOW)}


def test_next_execution_is_told_with_the_known_time() -> None:
    assert sentences(queued(), a=WaitEstimate(None, position=1)) == {"a": "It is next in the queue."}
    assert sentences(queued(), a=WaitEstimate(7200, position=1)) == {
        "a": "It is next in the queue. It is expected to start in about 120 minutes."
    }


def test_coming_start_is_told_within_ten_minutes_of_it() -> None:
    assert sentences(queued(), a=WaitEstimate(601, position=3)) == {}
    assert sentences(queued(), a=WaitEstimate(600, position=3)) == {
        "a": "It is number 3 in the queue. It is expected to start in about 10 minutes."
    }
    assert sentences(queued(), a=WaitEstimate(5, position=2))["a"].endswith("in about 1 minute.")


def test_each_is_told_once() -> None:
    both = WaitEstimate(60, position=1)
    assert sentences(queued(next_told=True, soon_told=True), a=both) == {}
    assert sentences(queued(soon_told=True), a=both) != {}
    assert sentences(queued(next_told=True), a=both) != {}
    assert len(news_of([queued()], {"a": both}, NOW)) == 1, "both at once are one message"


def test_short_held_or_unknown_waits_are_not_told() -> None:
    soon = WaitEstimate(60, position=1)
    assert sentences(queued(waited=timedelta(seconds=119)), a=soon) == {}
    assert sentences(queued(), a=WaitEstimate(None)) == {}, "held, or its budget is used up"
    assert sentences(queued()) == {}


def test_only_the_first_queued_execution_of_person_is_told() -> None:
    expected = {id: WaitEstimate(60.0 * place, position=place) for place, id in enumerate("abcd", 1)}
    launches = [queued("d", 2), queued("c", 1), queued("b", 2), queued("a", 1, next_told=True, soon_told=True)]
    assert sentences(*launches, **expected).keys() == {"b"}


def choose(user: User, *, in_page: bool = True) -> None:
    NotificationChoice.objects.update_or_create(
        user=user, event="queue_position", defaults={"in_page": in_page, "email": False, "webhook": False}
    )


def notified() -> list[str]:
    rows = Notification.objects.filter(event="queue_position").order_by("pk")
    return list(rows.values_list("user__username", flat=True))


def tell_due(minutes: int = 5) -> int:
    return tell_queue(LOCAL, now=NOW + minutes * MINUTE)


@pytest.mark.django_db
def test_owner_without_the_choice_is_not_told(shop: Shop) -> None:
    shop.launch()
    choose(shop.people.owner, in_page=False)
    with CaptureQueriesContext(connection) as queries:
        assert tell_due() == 0
    assert len(queries) == 1
    assert notified() == []


@pytest.mark.django_db
def test_owner_is_told_once_despite_repeated_looks(shop: Shop) -> None:
    first, second = shop.launch(title="First"), shop.launch(title="Second", after=1)
    choose(shop.people.owner)
    assert [tell_due(minutes) for minutes in (1, 2, 3, 30)] == [0, 1, 0, 0]
    notification = Notification.objects.get()
    assert (notification.title, notification.path) == ("First", f"/executions/{first.pk}/")
    assert notification.sentence == "It is next in the queue."
    request_stop(first, by="alice", now=NOW)
    assert tell_due(31) == 1
    assert Notification.objects.filter(execution=second).exists()


def test_two_controllers_tell_it_once(on_file: Shop) -> None:
    on_file.launch()
    choose(on_file.people.owner)
    looking: list[Callable[[], object]] = [tell_due] * 3
    at_once(*looking)
    assert notified() == ["alice"]
