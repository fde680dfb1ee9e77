"""Expected waits come from what was seen and keep the rules of admission; what is stored of them, and how often nodes are listed."""

from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER
from grid.controller.controller import Controller
from grid.core.reasons import sentence_of
from grid.kube.resources import EVENTS, NODES, PODS
from grid.models import ConfigRecord, Execution, StartUp, StopPlan, WaitPrediction
from grid.models.dataplane import LOCAL
from grid.queue.quota import QuotaSnapshot, admit
from grid.queue.wait_estimate.estimate import estimate_of, estimates
from grid.queue.wait_estimate.inputs import Key, SurvivalCurve, WaitFacts, Work
from grid.queue.wait_estimate.observing import Observed
from grid.queue.wait_estimate.outcomes import Accuracy, accuracy_of, keep_predictions, read_accuracy
from grid.queue.wait_estimate.reading import WaitRow, facts_of, read_facts
from grid.queue.wait_estimate.simulation import Holder, Simulation, Taken
from grid.queue.waitkeeper import LIST_SECONDS, WaitKeeper
from tests.controller.world import World, in_world
from tests.queue.queues import moved_snapshots, waiting
from tests.support.builders import condition, event, node, stamp
from tests.support.shop import NOW, OWNER, Shop, admit_waiting

SIZE = 2_000_000_000


def test_the_remaining_time_depends_on_the_age() -> None:
    curve = SurvivalCurve([(60.0, True)] * 8 + [(600.0, True)] * 8)
    assert curve.remaining(0.5) == 60
    assert curve.remaining(0.5, 100) == 500


def test_running_life_counts_as_at_least_so_long() -> None:
    ended = [(60.0, True)] * 6
    assert SurvivalCurve(ended).remaining(0.9) == 60
    assert SurvivalCurve([*ended, *[(300.0, False)] * 6]).remaining(0.9) == inf


@given(st.lists(st.tuples(st.floats(0, 1e6), st.booleans()), max_size=30), st.floats(0, 1e6))
def test_a_larger_share_never_ends_sooner(durations: list[tuple[float, bool]], age: float) -> None:
    remaining = [SurvivalCurve(durations).remaining(share / 10, age) for share in range(1, 10)]
    assert remaining == sorted(remaining)
    assert all(seconds >= 0 for seconds in remaining)


@given(moved_snapshots())
def test_launch_that_admission_would_take_starts_now(snapshot: QuotaSnapshot) -> None:
    """Nothing holds a unit's slots here, since a holding in `snapshot` is of several executions."""
    free = QuotaSnapshot(
        snapshot.waiting, (), snapshot.slots_per_user, snapshot.tier_maximum, last_served=snapshot.last_served
    )
    starts = Simulation(free, Taken(free, []), [], lambda unit: inf).starts()
    admitted = admit(free).admitted
    if len({unit.tiers for unit in snapshot.waiting}) <= 1 and all(unit.slots == 1 for unit in snapshot.waiting):
        assert set(starts) == set(admitted)
    assert all(seconds == 0 for seconds in starts.values())
    assert not {unit.execution_id for unit in snapshot.waiting if unit.closed} & starts.keys()


@given(moved_snapshots())
def test_all_that_may_start_does_once_everything_has_ended(snapshot: QuotaSnapshot) -> None:
    held = Holder(1, ("small",), 2)
    starts = Simulation(snapshot, Taken(snapshot, [held]), [(5.0, held)], lambda unit: 10.0).starts()
    possible = {
        unit.execution_id
        for unit in snapshot.waiting
        if not unit.closed
        and unit.slots <= snapshot.slots_per_user
        and all(unit.tiers.count(tier) <= snapshot.tier_maximum.get(tier, 99) for tier in unit.tiers)
    }
    assert set(starts) == possible


def test_queue_before_a_single_place_is_served_in_sequence() -> None:
    queue = QuotaSnapshot(tuple(waiting(name, after=place) for place, name in enumerate("abc")), (), 9, {"small": 1})
    held = Holder(2, ("small",), 1)
    starts = Simulation(queue, Taken(queue, [held]), [(30.0, held)], lambda unit: 100.0).starts()
    assert starts == {"a": 30, "b": 130, "c": 230}
    assert Simulation(queue, Taken(queue, [held]), [], lambda unit: 100.0).starts() == {}


@given(moved_snapshots())
def test_estimate_alone_is_that_among_all(snapshot: QuotaSnapshot) -> None:
    """Of what was moved too; in a line of others, or before a tier with a maximum, the same others count."""
    ended: dict[Key, SurvivalCurve] = {("on", "workspace"): SurvivalCurve([(60.0, True)] * 8 + [(600.0, True)] * 8)}
    waiting = {
        part.execution_id: Work(part.execution_id, Holder(unit.user, part.tiers, part.slots), (*ended,), (*ended,))
        for unit in snapshot.waiting
        for part in unit.parts
    }
    holding = {
        f"h{n}": Work(f"h{n}", Holder(n, ("small", "large")[n % 2 :], 1), (*ended,), (*ended,)) for n in range(4)
    }
    facts = WaitFacts(snapshot, waiting | holding, ended, ended)
    for id, estimate in estimates(facts).items():
        alone = estimate_of(facts, id) if any(unit.execution_id == id for unit in snapshot.waiting) else None
        assert alone is None or replace(alone, position=estimate.position) == estimate
    drawn = dict(facts.drawn)
    estimates(replace(facts))
    assert facts.drawn == drawn, "what was looked up of executions is not looked up again"
    assert bool(drawn) == bool(snapshot.waiting)


def test_sets_of_all_executions_are_made_once() -> None:
    compared = 0

    class Id(str):
        """Has the hash of others, so that a set tells how often it is made of them."""

        def __hash__(self) -> int:
            return len(self)

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

    def of(count: int) -> int:
        nonlocal compared
        compared = 0
        row = WaitRow("", "app", 1, "t", None, "e", "default", "", 1, "running", slots_reserved_at=NOW)
        rows = [row._replace(id=Id(f"{number:04}")) for number in range(count)]
        facts_of(QuotaSnapshot((waiting("a"),), (), 1), rows, (), NOW)
        return compared

    assert of(20) < 5 * of(10)  # the square of it, for its hashes; not the cube


def ended(shop: Shop, count: int, *, started: float, seconds: float) -> None:
    """Executions that started and ended after so many seconds."""
    for number in range(count):
        launched = shop.launch(title=f"Ended {number}")
        Execution.objects.filter(pk=launched.pk).update(
            state="stopped",
            slots_reserved_at=NOW,
            started_at=NOW + timedelta(seconds=started),
            ended_at=NOW + timedelta(seconds=seconds),
            slots_freed_at=NOW + timedelta(seconds=seconds),
            settled_at=NOW + timedelta(seconds=seconds),
        )


@pytest.mark.django_db
def test_wait_adds_remaining_life_and_the_usual_start(shop: Shop) -> None:
    ended(shop, 10, started=20, seconds=600)
    ConfigRecord.objects.create(key=MAXIMUM_EXECUTIONS_PER_USER.key, value="1")
    first, second = shop.launch(), shop.launch(after=1)
    admit_waiting(LOCAL, now=NOW)
    Execution.objects.filter(pk=first.pk).update(state="running", started_at=NOW + timedelta(seconds=20))
    estimate = estimates(read_facts(LOCAL, NOW + timedelta(seconds=100)))[second.pk]
    assert estimate.expected == 500 + 20
    assert estimate.position == 1
    assert estimate.why == (
        "Its owner's executions usually end after another 8 minutes; launches like this one usually start within 20 seconds."
    )


@pytest.mark.django_db
def test_announced_stop_ends_the_wait_for_slots(shop: Shop) -> None:
    ended(shop, 10, started=20, seconds=600)
    ConfigRecord.objects.create(key=MAXIMUM_EXECUTIONS_PER_USER.key, value="1")
    first, second = shop.launch(), shop.launch(after=1)
    admit_waiting(LOCAL, now=NOW)
    StopPlan.objects.create(execution=first, cause="idle", stops_at=NOW + timedelta(seconds=240))
    assert estimates(read_facts(LOCAL, NOW))[second.pk].expected == 240 + 20


def ended_with_and_without_a_new_node(shop: Shop) -> None:
    for started, is_new, count in ((20, False, 11), (200, True, 10)):
        ended(shop, count, started=started, seconds=600)
        for row in Execution.objects.filter(start_up=None):
            StartUp.objects.create(
                execution=row, at=NOW, ran=True, total=started, node_started=is_new, tier=row.tier,
                environment=row.environment, kind=row.kind, node_pool=row.node_pool,
            )  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("needs_node", "seconds", "why"),
    [
        (True, 200, "Launches like this one that need a new node usually start within 3 minutes."),
        (False, 20, "Launches like this one that find a node usually start within 20 seconds."),
        (None, 20, "Launches like this one usually start within 20 seconds."),
    ],
)
def test_launch_on_a_new_node_is_compared_with_such(
    shop: Shop, needs_node: bool | None, seconds: float, why: str
) -> None:
    ended_with_and_without_a_new_node(shop)
    first = shop.launch()
    admit_waiting(LOCAL, now=NOW)
    known = {} if needs_node is None else {first.pk: needs_node}
    estimate = estimates(read_facts(LOCAL, NOW, observed=Observed(known)))[first.pk]
    assert estimate.expected == seconds
    assert estimate.why == why


@pytest.mark.django_db
def test_without_history_nothing_is_claimed(shop: Shop) -> None:
    ConfigRecord.objects.create(key=MAXIMUM_EXECUTIONS_PER_USER.key, value="1")
    first, second = shop.launch(), shop.launch(after=1)
    admit_waiting(LOCAL, now=NOW)
    expected = estimates(read_facts(LOCAL, NOW))
    assert expected[first.pk].expected is None
    assert expected[first.pk].why == "Not known yet: too few launches like this one have started."
    assert expected[second.pk].expected is None
    assert expected[second.pk].why == "Not known yet: too few executions like those that hold the slots have ended."


def test_launch_forbidden_by_limits_does_not_wait_for_others(shop: Shop) -> None:
    ConfigRecord.objects.create(key=MAXIMUM_EXECUTIONS_PER_USER.key, value="0")
    launched = shop.launch()
    admit_waiting(LOCAL, now=NOW)
    refusal = estimates(read_facts(LOCAL, NOW))[launched.pk].refusal
    assert refusal is not None
    assert "switched off" in sentence_of(refusal, OWNER)


@pytest.mark.django_db
def test_prediction_is_stored_once_and_then_its_outcome(shop: Shop) -> None:
    ended(shop, 10, started=20, seconds=600)
    launched = shop.launch()
    assert [keep_predictions(LOCAL, Observed(), now=NOW) for _ in range(2)] == [1, 0]
    admit_waiting(LOCAL, now=NOW)
    assert keep_predictions(LOCAL, Observed(), now=NOW) == 0, "whether it needs a node is not known yet"
    assert keep_predictions(LOCAL, Observed({launched.pk: False}), now=NOW) == 1
    Execution.objects.filter(pk=launched.pk).update(state="running", started_at=NOW + timedelta(seconds=21))
    keep_predictions(LOCAL, Observed(), now=NOW + timedelta(seconds=30))
    outcomes = WaitPrediction.objects.order_by("stage").values_list("stage", "expected", "actual")
    assert list(outcomes) == [("admitted", 20, 21), ("queued", 20, 21)]
    assert read_accuracy() == {"admitted": Accuracy(1, 1), "queued": Accuracy(1, 1)}


def test_accuracy_is_said_from_ten_outcomes_on() -> None:
    assert accuracy_of([(100.0, 100.0)] * 9).sentence == ""
    assert accuracy_of([(100.0, 125.0)] * 9 + [(100.0, 200.0), (None, 5.0)]).sentence == (
        "9 of the last 10 expected waits were within 30 % or 10 seconds of what happened."
    )


def ended_on_nodes(shop: Shop) -> None:
    """Ten that started within 30 seconds from getting slots, 20 of them the pull of their image, and ran for ten minutes."""
    ended(shop, 10, started=30, seconds=600)
    for row in Execution.objects.filter(start_up=None, state="stopped"):
        StartUp.objects.create(
            execution=row, at=NOW, ran=True, total=30, queued=0, creating=0, node_wait=0, scheduling=0, pulling=20,
            image_bytes=SIZE, image_cached=False, image=shop.workspace.image, node_started=False, tier=row.tier,
            environment=row.environment, kind=row.kind, node_pool=row.node_pool,
        )  # fmt: skip


def refused(world: World, execution: Execution) -> None:
    pod = world.pod_of(execution)
    pod["metadata"]["creationTimestamp"] = stamp(world.now)
    pod["status"] = {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", "0/1")]}
    world.cluster.put(PODS, pod)


def kept(**settings: Any) -> tuple[World, Controller, WaitKeeper]:
    world = World(now=NOW)
    controller = world.controller(**settings)
    return world, controller, WaitKeeper(controller._context)


def predicted(execution: Execution) -> dict[str, float | None]:
    return dict(WaitPrediction.objects.filter(execution=execution).values_list("stage", "expected"))


async def one_runs_and_one_waits(shop: Shop, world: World, controller: Controller) -> tuple[Execution, Execution]:
    world.cluster.put(NODES, node("node-1", cpu="1500m"))
    runs, waits = shop.launch(), shop.launch(after=1)
    await world.step(controller)
    world.start(world.pod_of(runs) | {"spec": {**world.pod_of(runs)["spec"], "nodeName": "node-1"}})
    refused(world, waits)
    await world.step(controller)
    return runs, waits


@in_world
async def test_wait_for_room_is_predicted_from_its_occupants(shop: Shop) -> None:
    ended_on_nodes(shop)
    world, controller, keeper = kept()
    runs, waits = await one_runs_and_one_waits(shop, world, controller)
    world.passes(12)
    world.refresh(controller)
    await keeper.run_once()
    reserved = Execution.objects.get(pk=runs.pk).slots_reserved_at
    assert reserved is not None
    left = 600 - (world.now - reserved).total_seconds()
    assert predicted(waits) == {"room": left + 30}


@in_world
async def test_nodes_are_listed_once_a_minute_at_most(shop: Shop) -> None:
    ended_on_nodes(shop)
    seconds = [0.0]
    world, controller, keeper = kept(monotonic=lambda: seconds[0])
    await one_runs_and_one_waits(shop, world, controller)

    async def sees_room() -> bool:
        world.passes(12)
        world.refresh(controller)
        return bool((await keeper.observed()).room.seekers)

    assert [await sees_room(), await sees_room()] == [True, False]
    another = shop.launch(after=2)
    await world.step(controller)
    refused(world, another)
    assert not await sees_room()
    seconds[0] = LIST_SECONDS + 1
    assert await sees_room()


@in_world
async def test_pull_under_way_is_predicted_by_earlier_pulls(shop: Shop) -> None:
    ended_on_nodes(shop)
    execution = shop.launch()
    world, controller, keeper = kept()
    await world.step(controller)
    pod = world.pod_of(execution)
    world.schedule(pod)
    pulling = event("pulling", about=pod, reason="Pulling", message="Pulling image", at=world.now)
    pulling["involvedObject"]["fieldPath"] = "spec.containers{run}"
    world.cluster.put(EVENTS, pulling)
    await world.step(controller)
    assert Execution.objects.get(pk=execution.pk).state == "preparing"
    world.passes(5)
    world.refresh(controller)
    await keeper.run_once()
    assert predicted(execution) == {"preparing": 15 + 10}
    Execution.objects.filter(pk=execution.pk).update(state="running", started_at=world.now + timedelta(seconds=24))
    await keeper.run_once()
    assert WaitPrediction.objects.get(execution=execution).actual == 24
