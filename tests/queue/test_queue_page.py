"""The queue for people: who sees whom on its page, what operators do, what the owner reads, and who is told of a start soon."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.queue.pages import queue
from dashboard.queue.viewmodels.waiting import queue_fragments, queue_row
from dashboard.shell.access import Role, Viewer
from dashboard.shell.fragments import render_fragment
from dashboard.shell.pages.lists import FIRST_PAINT_SECONDS
from dashboard.starts.expected_waits import ExpectedWaits, WaitsRead
from dashboard.starts.viewmodels.expected_wait import wait_line
from grid.executions.stopping import request_stop
from grid.models import AuditEntry, Execution, Job, Notification, NotificationChoice, State, User
from grid.models.dataplane import LOCAL
from grid.queue.queuewatch import QueuedLaunch, news_of, tell_queue
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.runtime import Runtime, new_runtime
from tests.conftest import People, client_of
from tests.executions.executing import ROW, make_execution, make_project, read_executions
from tests.queue.test_at_once import at_once
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden
from tests.support.shop import NOW, Shop
from tests.support.virtual import loop_time, passes, virtual_time

MINUTE = timedelta(minutes=1)


@pytest.fixture
def two(people: People, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """One that the owner waits for, and one of a stranger, by title. The page waits for what is expected, on a slow machine too."""
    monkeypatch.setattr(queue, "FIRST_PAINT_SECONDS", 30.0)
    ours = make_execution(people.owner, make_project(people.owner, people.teammate), state=State.QUEUED, title="Ours")
    theirs = make_execution(
        people.stranger, make_project(people.stranger, id="other"), state=State.QUEUED, title="Theirs"
    )
    read_executions(runtime)
    return {"Ours": ours.pk, "Theirs": theirs.pk}


def test_people_see_their_own_position_and_operators_see_all(two: dict[str, str], people: People) -> None:
    own = client_of(people.owner).get("/queue/").text
    assert "Ours" in own and "Theirs" not in own
    assert "charlie" not in own
    assert "1 execution waits for a slot that you may see, and 1 of others." in own
    assert "When it starts is not known yet: too few launches like this one have started." in own
    assert "/queue/" + two["Ours"] not in own
    every = client_of(people.operator).get("/queue/").text
    assert "Ours" in every and "Theirs" in every and "/queue/" + two["Ours"] in every
    assert "2 executions wait for a slot." in every


@virtual_time
async def test_first_paint_waits_a_moment_for_long_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, viewer = ExpectedWaits(), Viewer(1, "olga", Role.OPERATOR)

    async def simulated(runtime: Runtime) -> WaitsRead:
        await passes(0.8)
        return WaitsRead(NOW)

    monkeypatch.setattr(expected, "_computed", simulated)
    monkeypatch.setattr(queue, "EXPECTED", expected)
    page, runtime = queue.QueuePage(), new_runtime({LOCAL: FakeCluster()})
    assert await page.read_in_time(runtime, viewer, None) is None
    assert loop_time() == pytest.approx(FIRST_PAINT_SECONDS)
    assert await page.read(runtime, viewer, None) == WaitsRead(NOW)


def test_owner_reads_which_operator_holds_and_why(two: dict[str, str], people: People, runtime: Runtime) -> None:
    client = client_of(people.operator)
    answer = client.post(f"/queue/{two['Ours']}/", {"do": "hold", "reason": "The licence server is down"})
    assert answer.status_code == 302
    read_executions(runtime)
    held = "Held by olga-operator: The licence server is down. This starts when an operator releases it, and does not time out before."
    assert held in client_of(people.owner).get(f"/executions/{two['Ours']}/").text
    assert AuditEntry.objects.get(object_id=two["Ours"]).actor_name == "olga-operator"
    page = client.get(f"/queue/{two['Ours']}/").text
    assert held in page and "Release it" in page and "Hold it" not in page


@pytest.mark.parametrize("page", ["/queue/", "/executions/", "/executions/{id}/"])
def test_only_the_owner_reads_of_what_you_use(page: str, people: People, runtime: Runtime) -> None:
    project = make_project(people.owner, people.teammate)
    sentence = "You use 25 of 25 slots; this starts by itself when one is free. It is number 1 of yours."
    values = {"held": 25, "most": 25, "slots": 1, "parts": [["workspace", 1]], "position": 1}
    row = make_execution(
        people.owner, project, state=State.QUEUED, reason="over_user_slots", reason_values=values, message=""
    )
    read_executions(runtime)
    path = page.format(id=row.pk)
    assert sentence in client_of(people.owner).get(path).text
    assert "You use" not in client_of(people.operator).get(f"/queue/{row.pk}/").text
    for other in (people.teammate, people.operator, people.admin):
        text = client_of(other).get(path).text
        assert "You use" not in text
        assert f"{people.owner.get_username()} uses 25 of 25 slots; this starts by itself when one is free." in text


def test_an_expected_wait_is_said_in_few_words() -> None:
    def sentence_of(*values: float | None, passed: float = 0) -> str:
        line = wait_line(WaitEstimate(*values), passed)  # type: ignore[arg-type]
        assert line is not None
        return line.sentence

    assert sentence_of(250, 118, 545) == "Expected to start in about 4 min (2 min to 9 min)."
    assert sentence_of(42, 20, 59, passed=10) == "Expected to start in about 30 s (10 s to 50 s)."
    assert sentence_of(250, 118, None) == "Expected to start in about 4 min (at least 2 min)."
    assert sentence_of(5, 1, 9, passed=60) == "Expected any moment."
    unknown = WaitEstimate(None, why="Not known yet: too few launches like this one have started.")
    shown = wait_line(unknown, 0)
    assert shown is not None
    assert shown.sentence == "When it starts is not known yet: too few launches like this one have started."


def test_the_queue_looks_as_stored() -> None:
    known = WaitEstimate(240.0, 120.0, 540.0, "1 execution before it.", 2)
    unknown = WaitEstimate(None, why="Not known yet: too few launches like this one have started.", position=1)
    values = {"held": 25, "most": 25, "slots": 1, "parts": [["workspace", 1]], "position": 1}
    waiting = replace(ROW, state="queued", title="<b>Mine</b>", reason="over_user_slots", reason_values=values)
    held = replace(
        waiting,
        id="e2",
        title="Held",
        reason="held",
        reason_values=None,
        message="Held by olga: The licence server is down.",
    )
    rows = [
        queue_row(waiting, unknown, 0.0, viewer_id=1, may_order=False),
        queue_row(replace(waiting, id="e3"), known, 0.0, viewer_id=9, may_order=True),
        queue_row(held, None, 0.0, viewer_id=9, may_order=True),
    ]
    page = queue_fragments(rows, count=4, hidden=2, accuracy="9 of the last 10 expected waits were right.")
    nothing = [fragment for hidden in (0, 2) for fragment in queue_fragments([], count=0, hidden=hidden, accuracy="")]
    now = MOMENT + timedelta(minutes=5)
    assert_golden("queue", "\n".join(render_fragment(fragment, now=now) for fragment in (*page, *nothing)))


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


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("number", "sweep", "attempt", "count"), [(1, "", 1, 1), (1, "", 2, 0), (1, "1", 1, 1), (2, "1", 1, 0)]
)
def test_queue_notices_go_to_first_attempts_and_first_run_of_sweep(
    shop: Shop, number: int, sweep: str, attempt: int, count: int
) -> None:
    execution = shop.launch()
    choose(shop.people.owner)
    owner, project, environment = execution.owner, execution.project, execution.environment
    job = Job.objects.create(id="j1", owner=owner, project=project, environment=environment, tier=execution.tier)
    settings = job.run_settings.create(record={})
    run = job.runs.create(number=number, sweep=sweep, settings=settings)
    Execution.objects.update(kind="job", workspace=None, run=run, attempt=attempt)
    assert tell_due() == count


def test_two_controllers_tell_it_once(on_file: Shop) -> None:
    on_file.launch()
    choose(on_file.people.owner)
    looking: list[Callable[[], object]] = [tell_due] * 3
    at_once(*looking)
    assert notified() == ["alice"]
