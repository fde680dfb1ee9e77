"""The page of start-up times, whose reads do not grow with history, and what is expected of a wait, on rows and cards."""

import csv
import io
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.starts import expected_waits
from dashboard.starts.expected_waits import EXPECTED, ExpectedWaits, WaitsRead, read_expectations
from dashboard.starts.startup_records import StartTimesRead, read_slowest, read_start_times
from dashboard.starts.viewmodels.expected_wait import wait_note
from dashboard.starts.viewmodels.start_times import (
    GROUPINGS,
    StartTimesLine,
    StartTimesView,
    phase_times,
    start_charts,
    start_day_lines,
    start_lines,
)
from grid.core.labels import NODE_POOL
from grid.kube.resources import CONFIG_MAPS, NODES, PODS
from grid.models import Execution, StartUp, State, WaitPrediction
from grid.queue.wait_estimate import reading
from grid.queue.wait_estimate.inputs import FEWEST, WaitEstimate, WaitFacts
from grid.queue.wait_estimate.observing import Observed
from grid.queue.wait_estimate.outcomes import Accuracy
from grid.runtime import Runtime
from grid.runtime.starts import observed_starts
from grid.starts.startups import count_start
from tests.browser.administering import AUTOSCALER
from tests.conftest import People, client_of
from tests.executions.executing import (
    make_environment,
    make_execution,
    make_project,
    make_tier,
    pod_of,
    read_executions,
)
from tests.starts.startrecords import plan_of, start_up
from tests.support import builders
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

Make = Callable[..., StartUp]
TIERS = StartTimesView()


@pytest.fixture
def start(people: People) -> Make:
    make_tier(), make_tier("large", name="Large"), make_environment()

    def make(total: float = 10, *, days: float = 0, execution_id: str = "", **fields: Any) -> StartUp:
        id = execution_id or f"e{StartUp.objects.count()}"
        made = start_up(id, total=total, at=MOMENT - timedelta(days=days), **fields)
        count_start(made)
        return made

    return make


def read(view: StartTimesView = TIERS) -> StartTimesRead:
    return read_start_times(view, MOMENT)


def lines(view: StartTimesView = TIERS) -> list[StartTimesLine]:
    return start_lines(read(view).groups, view)


@pytest.mark.parametrize(
    ("by", "fields", "names"),
    [
        ("tier", {"tier_id": "large"}, ["Small", "Large"]),
        ("environment", {"environment_id": "script"}, ["JupyterLab", "Script"]),
        ("pool", {"node_pool": "gpu"}, ["default", "gpu"]),
        ("image", {"image": "python:3.11"}, ["lab:1", "python:3.11"]),
    ],
)
def test_starts_are_grouped_and_the_largest_group_is_first(
    start: Make, by: str, fields: dict[str, str], names: list[str]
) -> None:
    make_environment("script", name="Script")
    for total in (1, 2, 30):
        start(total)
    start(4, **fields)
    first, second = lines(StartTimesView(by))
    assert [first.name, second.name] == names
    assert (first.count, first.total.p50, first.total.p90, second.total.p50) == ("3", "2.0 s", "30 s", "4.0 s")


def test_shares_count_only_starts_where_they_are_known(start: Make) -> None:
    for cached, new in ((True, False), (False, True), (False, None), (None, None)):
        start(image_cached=cached, node_started=new)
    start(tier_id="large")
    small, large = lines()
    assert (small.cold, small.new_node) == ("66%", "50%")
    assert (large.cold, large.new_node) == ("not known", "not known")


def test_starts_before_range_or_interrupted_are_not_counted(start: Make) -> None:
    start(1)
    start(2, days=8)
    start(3, ran=False, reason="stop_requested")
    start(4, days=8, tier_id="large")
    start(5, days=31)
    assert [(line.name, line.count) for line in lines()] == [("Small", "1")]
    assert [(line.name, line.count) for line in lines(StartTimesView(range="30"))] == [("Small", "2"), ("Large", "1")]


def test_days_have_percentiles_and_cold_start_share(start: Make) -> None:
    for total, cached in ((10, True), (10, True), (90, False)):
        start(total, days=1, image_cached=cached, node_started=False)
    start(4, tier_id="large")
    view = StartTimesView()
    days = view.days(MOMENT)
    today, yesterday, before, *_ = start_day_lines(days, read().shown.days)
    assert (len(days), today.day, yesterday.count, before.count) == (7, MOMENT.date(), "3", "0")
    assert (yesterday.cold, yesterday.new_node, today.cold, before.cold) == ("33%", "0%", "not known", "–")
    assert (before.times.p50, before.times.p90) == ("–", "–")
    drawn = start_charts(days, read().shown.days)
    p50, p90, cold = (
        drawn["charts"][chart]["lines"][name]["values"][-2:]
        for chart, name in (("took", "p50"), ("took", "p90"), ("cold", "cold"))
    )
    assert p50 == pytest.approx([10, 4], rel=0.03)
    assert p90 == pytest.approx([90, 4], rel=0.03)
    assert cold == [33.3, None]
    assert drawn["charts"]["took"]["lines"]["p50"]["values"][:-2] == [None] * 5


def test_phases_have_time_shares_without_empty_ones(start: Make) -> None:
    start(20, queued=5, pulling=15, setup=0)
    start(20, queued=5, merged=15, merged_phases="pulling starting")
    queued, pulling, merged = phase_times(read().shown.whole)
    assert (queued.word, queued.count) == ("Waiting for a slot", "2")
    assert (pulling.word, pulling.count) == ("Image pull", "1")
    assert merged.word == "Phases that could not be told apart"
    assert [phase.share for phase in (queued, pulling, merged)] == pytest.approx([25, 38, 38], abs=1)


def test_slowest_starts_name_their_unusual_phase(start: Make) -> None:
    for _ in range(5):
        start(21, queued=20, pulling=1, image_cached=True)
    start(74, queued=26, pulling=48, image_cached=False, image_bytes=1_800_000_000)
    slow, *_ = slowest = read_slowest(read(), "tier")
    assert slow.cause == "Image pull 48 s (1.8 GB, the image was not on the node)"
    assert (len(slowest), slow.took, slow.title) == (6, "1 min 14 s", "")


@pytest.mark.usefixtures("runtime")
def test_page_links_slowest_executions_and_group_phases(start: Make, people: People) -> None:
    kept = make_execution(people.owner, make_project(people.owner), title="Train")
    start(90, execution_id=kept.pk, queued=90)
    start(80, queued=80, tier_id="large")
    client = client_of(people.operator)
    page = client.get("/startup/").content.decode()
    assert f'<a href="/executions/{kept.pk}/">Train' in page
    assert page.count(">deleted (") == 1
    of_large = client.get("/startup/?of=large").content.decode()
    assert "Phases of Large" in of_large
    assert kept.pk not in of_large
    drawn = client.get("/startup/days/?of=large").json()["charts"]["took"]["lines"]["p90"]["values"]
    assert drawn[-1] == pytest.approx(80, rel=0.03)
    assert "Phases of" not in client.get("/startup/?of=no-such-tier").content.decode()


@pytest.mark.usefixtures("runtime")
def test_file_has_all_percentiles_of_group_in_a_row(start: Make, people: People) -> None:
    start(12.5, queued=2, image="=cmd|1", image_cached=False)
    answer = client_of(people.operator).get("/startup/?by=image&range=30&download=1")
    assert answer["Content-Disposition"] == 'attachment; filename="start-up-by-image-30-days-2026-03-04.csv"'
    (row,) = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (row["image_id"], row["starts"], row["image_pulled"], row["image_known"]) == ("'=cmd|1", "1", "1", "1")
    assert float(row["total_p90_seconds"]) == pytest.approx(12.5, rel=0.025)
    assert float(row["queued_p50_seconds"]) == pytest.approx(2, rel=0.025)
    assert row["pulling_p50_seconds"] == ""


@pytest.mark.parametrize("by", GROUPINGS)
def test_no_read_goes_through_all_starts(start: Make, by: str) -> None:
    for number in range(3):
        start(days=number)
    with CaptureQueriesContext(connection) as queries:
        read_slowest(read(StartTimesView(by)), by)
    plans = [plan_of(query["sql"]) for query in queries.captured_queries if '"grid_start' in query["sql"]]
    assert len(plans) == 4
    scans = ("SCAN grid_startup\n", "SCAN grid_startday\n", "Seq Scan")
    assert not [plan for plan in plans if any(scan in f"{plan}\n" for scan in scans)]
    # Only the sizes of groups are sorted, from the index alone.
    rest = [plan for plan in plans if "COVERING INDEX start_days" not in plan]
    assert connection.vendor == "postgresql" or (len(rest) == 3 and "TEMP B-TREE" not in "".join(rest))


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


def test_expectations_read_no_running_executions_while_nothing_starts(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = make_execution(people.owner, make_project(people.owner), state=State.RUNNING)
    read = list[str]()

    def read_facts(data_plane: str, now: datetime, *, observed: Observed) -> WaitFacts:
        read.append(data_plane)
        return reading.read_facts(data_plane, now, observed=observed)

    monkeypatch.setattr(expected_waits, "read_facts", read_facts)
    assert (read_expectations(MOMENT, Observed()).estimates, read) == ({}, [])
    Execution.objects.filter(pk=row.pk).update(state=State.QUEUED, slots_reserved_at=None)
    assert row.pk in read_expectations(MOMENT, Observed()).estimates


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
