"""What is expected of a wait, on the rows and cards of what waits."""

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

from dashboard.starts.expected_waits import EXPECTED, ExpectedWaits, WaitsRead
from dashboard.starts.viewmodels.expected_wait import wait_note
from grid.core.labels import NODE_POOL
from grid.kube.resources import CONFIG_MAPS, NODES, PODS
from grid.models import Execution, State, WaitPrediction
from grid.queue.wait_estimate.inputs import FEWEST, WaitEstimate
from grid.queue.wait_estimate.observing import Observed
from grid.queue.wait_estimate.outcomes import Accuracy
from grid.runtime import Runtime
from grid.runtime.starts import observed_starts
from tests.browser.administering import AUTOSCALER
from tests.conftest import People
from tests.executions.executing import make_execution, make_project, pod_of, read_executions
from tests.shell.browsing import client_of
from tests.support import builders
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill


class Expecting:
    """What the process has computed, set by the test."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.reads = 0

    def say(self, seconds: dict[Execution, float | None]) -> None:
        EXPECTED.latest = WaitsRead(
            self.runtime.clock(), {row.pk: WaitEstimate(each_wait) for row, each_wait in seconds.items()}
        )


@pytest.fixture
def expecting(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Expecting:
    made = Expecting(runtime)

    def begin(self: ExpectedWaits, runtime: Runtime) -> None:
        made.reads += 1

    monkeypatch.setattr(ExpectedWaits, "begin", begin)
    monkeypatch.setattr(EXPECTED, "latest", None)
    return made


@pytest.fixture
def queued(people: People, runtime: Runtime) -> Execution:
    row = make_execution(
        people.owner, make_project(people.owner), state=State.QUEUED, reason="over_tier_maximum", message="It is full."
    )
    read_executions(runtime)
    return row


def test_rows_cards_and_overview_say_the_expected_start(
    people: People, queued: Execution, expecting: Expecting
) -> None:
    expecting.say({queued: 250})
    expected = "Expected to start in about 4 min."
    for path in ("/executions/", "/"):
        assert f"{expected} It is full." in client_of(people.owner).get(path).text, path
    assert expected in client_of(people.operator).get("/overview/").text
    assert expecting.reads >= 3


def test_accuracy_is_said_of_the_stage_of_each_wait(queued: Execution, expecting: Expecting) -> None:
    stages = (WaitPrediction.Stage.QUEUED, WaitPrediction.Stage.ADMITTED, WaitPrediction.Stage.ROOM)
    lately = {str(stage): Accuracy(near, 10) for near, stage in enumerate(stages, 1)}
    estimates = {queued.pk: WaitEstimate(60.0, 30.0, 90.0, "By others."), "crowded": WaitEstimate(60.0, 30.0, 90.0)}
    EXPECTED.latest = WaitsRead(MOMENT, {**estimates, "unknown": WaitEstimate(None)}, lately, frozenset({"crowded"}))

    def why(id: str, state: str) -> str:
        line = EXPECTED.line(id, state, MOMENT)
        assert line is not None
        return line.why

    expected = "{} of the last 10 expected waits were within 30 % or 10 seconds of what happened."
    assert why(queued.pk, "queued") == f"By others. {expected.format(1)}"
    assert why(queued.pk, "deploying") == f"By others. {expected.format(2)}"
    assert why("crowded", "deploying") == expected.format(3)
    assert why(queued.pk, "preparing") == "By others.", "nothing was measured there yet"
    assert why("unknown", "queued") == ""
    assert EXPECTED.line(queued.pk, "running", MOMENT) is None


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, ""),
        (4, "Expected to start any moment."),
        (250, "Expected to start in about 4 min."),
        (5_000, "Expected to start in about 1 h 20 min."),
        (40_000, "Expected to start in about 11 h."),
    ],
)
def test_a_row_says_it_in_coarse_steps(seconds: float | None, expected: str) -> None:
    assert wait_note(WaitEstimate(seconds)) == expected


@pytest.mark.parametrize(
    ("node", "created", "needs"),
    [("node-a", "2026-03-04T08:00:00Z", False), ("node-a", "2026-03-04T10:00:00Z", True), ("", "", None)],
)
def test_start_needs_a_new_node_that_came_after_pod(
    node: str, created: str, needs: bool | None, people: People, cluster: FakeCluster, runtime: Runtime
) -> None:
    row = make_execution(people.owner, make_project(people.owner), state=State.DEPLOYING)
    cluster.put(PODS, pod_of(row.pk, node=node, creationTimestamp="2026-03-04T09:00:00Z"))
    if created:
        cluster.put(NODES, builders.node(node, creationTimestamp=created))
    assert observe(runtime, cluster).new_nodes == ({} if needs is None else {row.pk: needs})


def observe(runtime: Runtime, cluster: FakeCluster) -> Observed:
    fill(runtime, cluster)
    read_executions(runtime)
    return async_to_sync(observed_starts)(runtime)


REFUSED = [builders.condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")]
IN_POOL = {"nodeSelector": {NODE_POOL: "default"}}


@pytest.fixture
def crowded(people: People, cluster: FakeCluster) -> tuple[Execution, Execution]:
    """One that holds the only node, beside a pod of nobody, and one that no node has room for."""
    project = make_project(people.owner)
    runs, waits = (make_execution(people.owner, project, state=state) for state in (State.RUNNING, State.DEPLOYING))
    cluster.put(NODES, builders.node("node-a", cpu="4"))
    cluster.put(PODS, pod_of(runs.pk, node="node-a", phase="Running", requests={"cpu": "2"}))
    cluster.put(PODS, builders.pod("foreign", node="node-a", phase="Running", requests={"cpu": "1"}))
    cluster.put(PODS, pod_of(waits.pk, requests={"cpu": "2"}, conditions=REFUSED, spec=IN_POOL))
    return runs, waits


def test_execution_waiting_for_room_is_seen_with_its_occupants(
    crowded: tuple[Execution, Execution], cluster: FakeCluster, runtime: Runtime
) -> None:
    runs, waits = crowded
    observed = observe(runtime, cluster)
    (seeker,) = observed.room.seekers
    assert (seeker.execution, seeker.nodes, seeker.part) == (waits.pk, frozenset({"node-a"}), "first")
    assert [(occupant.execution, occupant.requests["cpu"]) for occupant in observed.room.occupants] == [(runs.pk, 2000)]
    assert observed.room.free["node-a"]["cpu"] == 1000
    assert waits.pk not in observed.new_nodes


def test_waiting_pod_needs_a_node_when_pool_may_grow(
    crowded: tuple[Execution, Execution], cluster: FakeCluster, runtime: Runtime
) -> None:
    status = builders.config_map("cluster-autoscaler-status", {"status": AUTOSCALER}, namespace="kube-system")
    cluster.put(CONFIG_MAPS, status)
    observed = observe(runtime, cluster)
    assert (observed.new_nodes, observed.room.seekers) == ({crowded[1].pk: True}, [])


def test_a_page_says_when_room_is_free(
    crowded: tuple[Execution, Execution], people: People, cluster: FakeCluster, runtime: Runtime
) -> None:
    """A timeout ends what holds the node; how long such work usually takes is not known."""
    runs, waits = crowded
    held = pod_of(runs.pk, node="node-a", phase="Running", requests={"cpu": "2"}, spec={"activeDeadlineSeconds": 900})
    held["status"]["startTime"] = builders.stamp(runtime.clock() - timedelta(seconds=290))
    cluster.put(PODS, held)
    for number in range(FEWEST):
        start = {"slots_reserved_at": MOMENT, "slots_freed_at": MOMENT, "started_at": MOMENT + timedelta(seconds=20)}
        make_execution(
            people.owner,
            runs.project,
            id=f"before{number}",
            state=State.STOPPED,
            ended_at=MOMENT,
            settled_at=MOMENT,
            **start,
        )
    Execution.objects.filter(pk__in=[runs.pk, waits.pk]).update(slots_reserved_at=runtime.clock())
    fill(runtime, cluster)
    read_executions(runtime)
    page = client_of(people.owner).get(f"/executions/{waits.pk}/").text
    assert "Expected to start in about 10 min" in page
    assert "Room for it is usually free after another 10 minutes" in page
