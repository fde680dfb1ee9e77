"""What a cluster would take: slots, nodes, prices and the words about them, from plain data."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.viewmodels.cluster_estimate import (
    ClusterPlan,
    Estimate,
    Machine,
    estimate,
    nodes_needed,
    nodes_of,
    per_node,
)
from dashboard.viewmodels.launch import Slots, slots
from grid.diagnosis.requests import Amounts
from grid.diagnosis.tierfit import PoolOffer, TierSize

GIB = 2**30
NODE = {"cpu": "8", "memory": "32Gi"}
ROOM = slots(used=1, queued=0, maximum=25)


def machine(
    cores: str = "1", memory: str = "4Gi", *, pool: str = "default", gpus: int = 0, price: str = "0.05"
) -> Machine:
    return Machine("Small", TierSize(pool, cores, memory, gpus, "nvidia.com/gpu"), Decimal(price))


def pools(nodes: int = 2, maximum: int = 5, **node: str) -> dict[str, PoolOffer]:
    return {"default": PoolOffer("default", ({**NODE, **node},) * nodes, maximum)}


def told(
    worker: Machine,
    *,
    minimum: int = 1,
    maximum: int = 5,
    room: Slots = ROOM,
    offers: dict[str, PoolOffer] | None = None,
    companion: Machine | None = None,
) -> Estimate:
    plan = ClusterPlan(machine(), worker, minimum, maximum, companion)
    return estimate(plan, room, pools() if offers is None else offers)


def amounts_of(shown: Estimate) -> dict[str, tuple[str, ...]]:
    return {row.label: row.amounts for row in shown.rows}


def sentences(shown: Estimate) -> str:
    return " ".join(f"{note.severity}: {note.sentence}" for note in shown.notes)


def test_head_and_each_worker_take_a_slot_and_cost_their_price() -> None:
    shown = told(machine())
    assert shown.sentence == "2 slots at minimum, 6 at maximum; you use 1 of 25."
    assert shown.columns == ("1 worker", "5 workers")
    assert amounts_of(shown) == {"Slots": ("2", "6"), "Nodes": ("1", "1"), "Price an hour": ("$0.10", "$0.30")}
    assert "ok: 6 slots are kept for it from the start, so that it can always grow." in sentences(shown)


def test_what_it_is_attached_to_counts_too() -> None:
    shown = told(machine(), companion=machine("7", "28Gi", price="0.38"))
    assert shown.sentence.startswith("3 slots at minimum, 7 at maximum")
    assert amounts_of(shown)["Price an hour"] == ("$0.48", "$0.68")
    assert amounts_of(shown)["Nodes"] == ("2", "2")


def test_a_fixed_number_of_workers_is_one_column() -> None:
    shown = told(machine(price="0"), minimum=3, maximum=3)
    assert shown.columns == ("3 workers",)
    assert shown.sentence == "4 slots; you use 1 of 25."
    assert all(len(row.amounts) == 1 for row in shown.rows)
    assert "so that it can always grow" not in sentences(shown)


def test_more_slots_than_one_may_hold_is_a_problem_and_more_than_are_free_a_wait() -> None:
    assert "problem: That is more than your 25 slots; choose fewer workers." in sentences(told(machine(), maximum=40))
    waits = sentences(told(machine(), room=slots(used=22, queued=0, maximum=25)))
    assert "wait: 6 slots are kept for it from the start, and 3 are free: it waits in the queue" in waits


def test_what_one_may_launch_nothing_with_is_told_apart_from_too_few_slots() -> None:
    waits = sentences(told(machine(), room=slots(used=0, queued=0, maximum=0)))
    assert "wait: Launching is switched off by your admin" in waits


def test_a_tier_without_a_place_left_is_said() -> None:
    full, small, unlimited = replace(machine(), places=4, running=3), replace(machine(), places=1), machine("2")
    pair = estimate(ClusterPlan(unlimited, full, 1, 5, companion=full), ROOM, None)
    assert "wait: This takes 2 places on the tier Small, which runs at most 4 at once and 3 now" in sentences(pair)
    assert "places on" not in sentences(estimate(ClusterPlan(unlimited, full, 1, 5), ROOM, None))
    never = estimate(ClusterPlan(small, small, 1, 5, companion=small), ROOM, None)
    assert "problem: This takes 2 places on the tier Small, which runs at most 1 at once." in sentences(never)


def test_head_and_workers_on_one_tier_take_one_place() -> None:
    small = replace(machine(), places=1)
    assert "place" not in sentences(estimate(ClusterPlan(small, small, 1, 5), ROOM, None))
    taken = replace(small, running=1)
    assert "wait: This takes 1 place on the tier Small" in sentences(
        estimate(ClusterPlan(taken, taken, 1, 5), ROOM, None)
    )


def test_what_a_node_takes_and_what_stays_unused_is_said() -> None:
    assert "takes 2 workers; 1 core and 4 GiB of memory of it stay unused." in sentences(told(machine("3500m", "14Gi")))
    assert "takes 8 workers, with nothing left over." in sentences(told(machine()))
    stranded = sentences(told(machine("1", "28Gi")))
    assert "wait: A node of the pool default (8 cores and 32 GiB of memory) takes 1 worker; 7 cores" in stranded
    assert "Another tier may use it better." in stranded


def test_a_worker_that_fits_no_node_is_a_problem_and_its_nodes_are_not_known() -> None:
    shown = told(machine("9"))
    assert amounts_of(shown)["Nodes"] == ("not known", "not known")
    assert "it asks for 9 cores, but the largest node has 8. Choose a smaller tier for the worker." in sentences(shown)


def test_a_head_that_fits_no_node_is_said_as_well() -> None:
    plan = ClusterPlan(machine("64"), machine(), 1, 2)
    assert "Choose a smaller tier for the head." in sentences(estimate(plan, ROOM, pools()))


@pytest.mark.parametrize(
    ("offers", "maximum", "sentence"),
    [
        (pools(2, 5), 5, "ok: The pool default has 2 nodes, and up to 3 more may be started."),
        (pools(1, 1), 5, "ok: The pool default has 1 node, and no more may be started."),
        (pools(2, 5), 20, "ok: The pool default has 2 nodes, and up to 3 more may be started."),
        (
            pools(1, 2),
            20,
            "wait: The pool default has 1 node, and up to 1 more may be started: at the maximum, some workers",
        ),
        (pools(0, 5), 5, "wait: The pool default has no node now; up to 5 are started as they are needed"),
        (pools(0, 0), 5, "problem: The pool default has no node, and none may be started."),
        ({}, 5, "problem: The pool default has no node, and none may be started."),
    ],
)
def test_what_the_pool_can_do_is_said(offers: dict[str, PoolOffer], maximum: int, sentence: str) -> None:
    assert sentence in sentences(told(machine(), maximum=maximum, offers=offers))


def test_nodes_that_must_start_first_are_a_wait_and_too_few_for_the_minimum_a_problem() -> None:
    whole_node = machine("7", "28Gi")
    assert "it starts when the new ones are ready" in sentences(told(whole_node, minimum=3, maximum=4))
    assert "problem: The pool default has 2 nodes" in sentences(told(whole_node, minimum=8, maximum=8))


def test_each_pool_is_counted_for_itself() -> None:
    gpu = {"default-gpu": PoolOffer("default-gpu", ({**NODE, "nvidia.com/gpu": "1"},), 2)}
    worker = machine("3", "12Gi", pool="default-gpu", gpus=1)
    plan = ClusterPlan(machine(), worker, 1, 2)
    assert nodes_of(plan, 2, pools() | gpu) == {"default-gpu": 2, "default": 1}
    shown = estimate(plan, ROOM, pools() | gpu)
    assert amounts_of(shown)["Nodes"] == ("2", "3")
    assert "The pool default-gpu has 1 node, and up to 1 more" in sentences(shown)


def test_a_pool_whose_size_nobody_knows_is_left_open() -> None:
    worker = machine(pool="default-gpu", gpus=1)
    offers = pools() | {"default-gpu": PoolOffer("default-gpu", (), 2)}
    assert amounts_of(told(worker, offers=offers))["Nodes"] == ("1 and more", "1 and more")


def test_nothing_is_said_of_nodes_while_the_cluster_is_not_known() -> None:
    shown = estimate(ClusterPlan(machine(), machine(), 1, 5), ROOM, None)
    assert list(amounts_of(shown)) == ["Slots", "Price an hour"]
    assert len(shown.notes) == 1


def test_a_size_that_cannot_be_read_breaks_nothing() -> None:
    assert amounts_of(told(machine("lots", "")))["Nodes"] == ("1", "5")  # counted as one on each node


def test_thousands_of_workers_are_counted_at_once() -> None:
    assert nodes_of(ClusterPlan(machine(), machine(), 1, 10**9), 10**9, pools()) == {"default": 10**9 // 8 + 1}


sizes = st.builds(Amounts, st.integers(1, 10), st.integers(1, 10), st.integers(0, 2))


@given(
    st.lists(st.tuples(sizes, st.integers(0, 12)), max_size=4),
    st.builds(Amounts, *[st.integers(4, 20)] * 2, st.integers(0, 4)),
)
def test_counting_in_groups_equals_placing_one_by_one(pods: list[tuple[Amounts, int]], node: Amounts) -> None:
    opened: list[Amounts] = []
    for asked, count in pods:
        for _ in range(count):
            if not per_node(asked, node):
                assert nodes_needed(pods, node) is None
                return
            place = next((at for at, free in enumerate(opened) if per_node(asked, free)), None)
            if place is None:
                opened.append(node)
                place = -1
            free = opened[place]
            opened[place] = Amounts(free.cpu - asked.cpu, free.memory - asked.memory, free.gpus - asked.gpus)
    assert nodes_needed(pods, node) == len(opened)
