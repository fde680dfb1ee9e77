"""What a cluster would take: slots, nodes, prices and the words about them, from plain data."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from dashboard.clusters.viewmodels.cluster_estimate import ClusterPlan, Estimate, Machine, estimate, nodes_of
from dashboard.executions.viewmodels.launch import Slots, slots
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, PodPlan, Pools, nodes_needed, places
from grid.diagnosis.resources import resource_amounts

NODE = {"cpu": 8000, "memory": 32 * 2**30, "pods": 110}
GPU = "nvidia.com/gpu"
ROOM = slots(used=1, queued=0, maximum=25)


def machine(
    cores: str = "1", memory: str = "4Gi", *, pool: str = "default", gpus: int = 0, price: str = "0.05"
) -> Machine:
    requests = resource_amounts({"cpu": cores, "memory": memory, "pods": "1", **({GPU: str(gpus)} if gpus else {})})
    return Machine(PodPlan(f"{cores} and {memory}", pool, requests), Decimal(price))


def pools(nodes: int = 2, maximum: int = 5) -> dict[str, LaunchPool]:
    return {"default": LaunchPool("default", (AlikeNodes({}, NODE, nodes),) if nodes else (), maximum)}


def estimated(
    worker: Machine,
    *,
    minimum: int = 1,
    maximum: int = 5,
    room: Slots = ROOM,
    known: Pools | None = None,
    companion: Machine | None = None,
) -> Estimate:
    plan = ClusterPlan(machine(), worker, minimum, maximum, companion)
    return estimate(plan, room, pools() if known is None else known)


def amounts_of(shown: Estimate) -> dict[str, tuple[str, ...]]:
    return {row.label: row.amounts for row in shown.rows}


def sentences(shown: Estimate) -> str:
    return " ".join(f"{note.severity}: {note.sentence}" for note in shown.notes)


def test_head_and_workers_each_take_slot_and_cost() -> None:
    shown = estimated(machine())
    assert shown.sentence == "2 slots at minimum, 6 at maximum; you use 1 of 25."
    assert shown.columns == ("1 worker", "5 workers")
    assert amounts_of(shown) == {"Slots": ("2", "6"), "Nodes": ("1", "1"), "Price an hour": ("$0.10", "$0.30")}
    assert "ok: 6 slots are kept for it from the start, so that it can always grow." in sentences(shown)


def test_companion_of_the_cluster_counts_too() -> None:
    shown = estimated(machine(), companion=machine("7", "28Gi", price="0.38"))
    assert shown.sentence.startswith("3 slots at minimum, 7 at maximum")
    assert amounts_of(shown)["Price an hour"] == ("$0.48", "$0.68")
    assert amounts_of(shown)["Nodes"] == ("2", "2")


def test_a_fixed_number_of_workers_is_one_column() -> None:
    shown = estimated(machine(price="0"), minimum=3, maximum=3)
    assert shown.columns == ("3 workers",)
    assert shown.sentence == "4 slots; you use 1 of 25."
    assert all(len(row.amounts) == 1 for row in shown.rows)
    assert "so that it can always grow" not in sentences(shown)


def test_slots_above_limit_are_problem_and_unfree_ones_wait() -> None:
    assert "problem: That is more than your 25 slots; choose fewer workers." in sentences(
        estimated(machine(), maximum=40)
    )
    waits = sentences(estimated(machine(), room=slots(used=22, queued=0, maximum=25)))
    assert "wait: 6 slots are kept for it from the start, and 3 are free: it waits in the queue" in waits


def test_disabled_launching_is_told_apart_from_missing_slots() -> None:
    waits = sentences(estimated(machine(), room=slots(used=0, queued=0, maximum=0)))
    assert "wait: Launching is switched off by your admin" in waits


def test_a_tier_without_a_place_left_is_said() -> None:
    full, small, unlimited = replace(machine(), places=4, running=3), replace(machine(), places=1), machine("2")
    pair = estimate(ClusterPlan(unlimited, full, 1, 5, companion=full), ROOM, None)
    assert "wait: This takes 2 places on the tier 1 and 4Gi, which runs at most 4 at once and 3 now" in sentences(pair)
    assert "places on" not in sentences(estimate(ClusterPlan(unlimited, full, 1, 5), ROOM, None))
    never = estimate(ClusterPlan(small, small, 1, 5, companion=small), ROOM, None)
    assert "problem: This takes 2 places on the tier 1 and 4Gi, which runs at most 1 at once." in sentences(never)


def test_head_and_workers_on_one_tier_take_one_place() -> None:
    small = replace(machine(), places=1)
    assert "place" not in sentences(estimate(ClusterPlan(small, small, 1, 5), ROOM, None))
    taken = replace(small, running=1)
    assert "wait: This takes 1 place on the tier 1 and 4Gi" in sentences(
        estimate(ClusterPlan(taken, taken, 1, 5), ROOM, None)
    )


def test_workers_per_node_and_unused_rest_are_said() -> None:
    assert "takes 2 workers; 1 core and 4 GiB of memory of it stay unused." in sentences(
        estimated(machine("3500m", "14Gi"))
    )
    assert "takes 8 workers, with nothing left over." in sentences(estimated(machine()))
    stranded = sentences(estimated(machine("1", "28Gi")))
    assert (
        "wait: A node of the pool default (8 cores and 32 GiB of memory after overhead) takes 1 worker; 7 cores"
        in stranded
    )
    assert "Another tier may use it better." in stranded


def test_worker_that_fits_no_node_is_a_problem() -> None:
    shown = estimated(machine("9"))
    assert amounts_of(shown)["Nodes"] == ("not known", "not known")
    never = "9 and 4Gi asks for 9 cores; the largest node of the pool default offers 8 cores after overhead."
    assert f"problem: {never} Choose another tier for the worker." in sentences(shown)
    large_head = estimate(ClusterPlan(machine("64"), machine(), 1, 2), ROOM, pools())
    assert "Choose another tier for the head." in sentences(large_head)


@pytest.mark.parametrize(
    ("known", "maximum", "sentence"),
    [
        (pools(2, 5), 5, "ok: The pool default has 2 nodes, and up to 3 more may be started."),
        (pools(1, 1), 5, "ok: The pool default has 1 node, and no more may be started."),
        (
            pools(1, 2),
            20,
            "wait: The pool default has 1 node, and up to 1 more may be started: at the maximum, some workers",
        ),
        (pools(0, 5), 5, "wait: The pool default has no node now; up to 5 are started as they are needed"),
        (pools(0, 0), 5, "problem: The pool default has no node, and none may be started."),
    ],
)
def test_abilities_of_the_pool_are_said(known: Pools, maximum: int, sentence: str) -> None:
    assert sentence in sentences(estimated(machine(), maximum=maximum, known=known))


def test_each_pool_is_counted_for_itself() -> None:
    gpu = {"default-gpu": LaunchPool("default-gpu", (AlikeNodes({}, {**NODE, GPU: 1}),), 2)}
    worker = machine("3", "12Gi", pool="default-gpu", gpus=1)
    plan = ClusterPlan(machine(), worker, 1, 2)
    assert nodes_of(plan, 2, pools() | gpu) == {"default-gpu": 2, "default": 1}
    shown = estimate(plan, ROOM, pools() | gpu)
    assert amounts_of(shown)["Nodes"] == ("2", "3")
    assert "The pool default-gpu has 1 node, and up to 1 more" in sentences(shown)


def test_pool_at_zero_is_estimated_by_its_last_nodes() -> None:
    at_zero = LaunchPool("default", (), 3, remembered=AlikeNodes(NODE, NODE), seen="24 November 2026")
    known = {"default": at_zero}
    shown = estimated(machine("7", "28Gi"), maximum=2, known=known)
    assert amounts_of(shown)["Nodes"] == ("1", "2")
    assert "A node of the pool default (8 cores and 32 GiB of memory after overhead) takes 1 worker" in sentences(shown)
    assert "wait: The pool default has no node now; up to 3 are started" in sentences(shown)
    large = sentences(estimated(machine("64"), known=known))
    assert "as its nodes were when last seen on 24 November 2026. Choose another tier for the worker." in large
    none = sentences(estimated(machine("64"), known={"default": replace(at_zero, maximum=0)}))
    assert ("last seen" in none, none.count("no node")) == (False, 1)


def test_nodes_are_not_mentioned_while_cluster_is_unknown() -> None:
    shown = estimate(ClusterPlan(machine(), machine(), 1, 5), ROOM, None)
    assert list(amounts_of(shown)) == ["Slots", "Price an hour"]
    assert len(shown.notes) == 1


sizes = st.tuples(st.integers(1, 10), st.integers(1, 10), st.integers(0, 2))


def room(cpu: int, memory: int, gpus: int) -> dict[str, int]:
    return {"cpu": cpu, "memory": memory, "example.com/gpu": gpus}


@given(
    st.lists(st.tuples(sizes, st.integers(1, 12)), max_size=4), st.tuples(*[st.integers(4, 20)] * 2, st.integers(0, 4))
)
def test_counting_in_groups_equals_placing_one_by_one(
    pods: list[tuple[tuple[int, int, int], int]], size: tuple[int, int, int]
) -> None:
    pods.sort(key=lambda group: (group[0][2], *group[0][:2]), reverse=True)
    pool = LaunchPool("default", (AlikeNodes({}, room(*size)),))
    counted = nodes_needed([PodPlan("T", "default", room(*asked), count=count) for asked, count in pods], pool)
    opened: list[dict[str, int]] = []
    for asked, count in pods:
        for _ in range(count):
            if not places(room(*asked), room(*size)):
                assert counted is None
                return
            free = next((group for group in opened if places(room(*asked), group)), None)
            if free is None:
                opened.append(free := room(*size))
            for name, amount in room(*asked).items():
                free[name] -= amount
    assert counted == len(opened)
