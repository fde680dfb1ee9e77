"""What is expected of a wait, on the rows and cards of what waits."""

import pytest
from asgiref.sync import sync_to_async

from dashboard.pages.expected import EXPECTED, ExpectedWaits, new_nodes
from dashboard.viewmodels.expected_wait import wait_note, with_note
from dashboard.viewmodels.nodes import StatusLine
from dashboard.waiting_records import WaitsRead
from grid.kube.objects import RawObject
from grid.kube.resources import NODES, PODS
from grid.launch.expectation.estimate import WaitEstimate
from grid.models import Execution, State
from grid.runtime import Runtime
from tests.conftest import People
from tests.dashboard.browsing import client_of
from tests.dashboard.executing import make_execution, make_project, pod_of, read_executions
from tests.dashboard.live import changed, connected
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill


class Expecting:
    """What the process has computed, set by the test."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.reads = 0

    def say(self, seconds: dict[Execution, float | None]) -> None:
        EXPECTED.latest = WaitsRead(self.runtime.clock(), {row.pk: WaitEstimate(one) for row, one in seconds.items()})


@pytest.fixture
def expecting(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Expecting:
    found = Expecting(runtime)

    def begin(self: ExpectedWaits, runtime: Runtime) -> None:
        found.reads += 1

    monkeypatch.setattr(ExpectedWaits, "begin", begin)
    monkeypatch.setattr(EXPECTED, "latest", None)
    return found


@pytest.fixture
def queued(people: People, runtime: Runtime) -> Execution:
    row = make_execution(
        people.owner, make_project(people.owner), state=State.QUEUED, reason="over_tier_maximum", message="It is full."
    )
    read_executions(runtime)
    return row


def test_rows_cards_and_the_overview_say_when_what_waits_is_expected_to_start(
    people: People, queued: Execution, expecting: Expecting
) -> None:
    expecting.say({queued: 250})
    said = "Expected to start in about 4 min."
    for path in ("/executions/", "/"):
        assert f"{said} It is full." in client_of(people.owner).get(path).text, path
    assert said in client_of(people.operator).get("/overview/").text
    assert expecting.reads >= 3


def test_nothing_is_said_of_what_is_not_known_or_runs(
    people: People, queued: Execution, expecting: Expecting, runtime: Runtime
) -> None:
    expecting.say({queued: None})
    assert "Expected to" not in client_of(people.owner).get("/executions/").text
    expecting.say({queued: 250})
    Execution.objects.filter(pk=queued.pk).update(state=State.RUNNING)
    read_executions(runtime)
    expecting.reads = 0
    assert "Expected to" not in client_of(people.owner).get("/executions/").text
    assert not expecting.reads


@pytest.mark.django_db(transaction=True)
async def test_only_rows_whose_words_changed_are_sent_again(
    people: People, expecting: Expecting, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def two() -> tuple[Execution, Execution]:
        project = make_project(people.owner)
        found = (
            make_execution(people.owner, project, state=State.QUEUED),
            make_execution(people.owner, project, state=State.QUEUED),
        )
        read_executions(runtime)
        return found

    monkeypatch.setattr("dashboard.pages.executions.ExecutionsPage.tick_seconds", 0.05)
    first, second = await sync_to_async(two)()
    expecting.say({first: 250, second: 250})
    async with connected("/live/executions/", people.owner) as socket:
        await socket.message()
        expecting.say({first: 245, second: 245})  # the words stay
        assert await socket.is_silent()
        expecting.say({first: 245, second: 130})
        message = await socket.message()
        assert changed(message) == [(f"row-{second.pk}", "outerMorph")]
        assert "Expected to start in about 2 min." in message
        assert await socket.is_silent()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, ""),
        (4, "Expected to start any moment."),
        (20, "Expected to start in about 15 s."),
        (250, "Expected to start in about 4 min."),
        (1_400, "Expected to start in about 25 min."),
        (5_000, "Expected to start in about 1 h 20 min."),
        (40_000, "Expected to start in about 11 h."),
    ],
)
def test_a_row_says_it_in_coarse_steps(seconds: float | None, said: str) -> None:
    assert wait_note(WaitEstimate(seconds)) == said


def test_of_what_has_a_problem_nothing_is_expected() -> None:
    problem = StatusLine("problem", "Deploying", "The image does not exist.")
    assert with_note(problem, "Expected to start any moment.") is problem


@pytest.mark.parametrize(
    ("node", "created", "conditions", "needs"),
    [
        ("node-a", "2026-03-04T08:00:00Z", None, False),
        ("node-a", "2026-03-04T10:00:00Z", None, True),
        ("", "", [builders.condition("PodScheduled", "False")], True),
        ("", "", [], None),
        ("gone", "", None, None),
    ],
)
def test_a_start_needs_a_new_node_when_that_came_after_its_pod_or_is_still_missing(
    node: str,
    created: str,
    conditions: list[RawObject] | None,
    needs: bool | None,
    people: People,
    cluster: FakeCluster,
    runtime: Runtime,
) -> None:
    row = make_execution(people.owner, make_project(people.owner), state=State.DEPLOYING)
    pod = pod_of(row.pk, node=node, conditions=conditions, creationTimestamp="2026-03-04T09:00:00Z")
    cluster.put(PODS, pod)
    if created:
        cluster.put(NODES, builders.node(node, creationTimestamp=created))
    fill(runtime, cluster)
    read_executions(runtime)
    assert new_nodes(runtime) == ({} if needs is None else {row.pk: needs})
