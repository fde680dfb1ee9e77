"""Whether a tier can run on its pool's nodes: said with the resource that is short and the largest node's figure."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.tierfit import PoolOffer, TierSize, explain_fit, largest, pool_offers
from grid.kube.objects import Node
from grid.watch.pools import NodeGroup
from tests.support.builders import decode, node

GPU = "nvidia.com/gpu"


def size(**changed: Any) -> TierSize:
    return TierSize(
        **{"node_pool": "default", "cores": "1", "memory": "4Gi", "gpus": 0, "gpu_resource": GPU, **changed}
    )


def offers(*nodes: dict[str, Any], **groups: int) -> dict[str, PoolOffer]:
    """Groups by name with the most nodes that each may have."""
    decoded = [decode(node(f"n{place}", **arguments), Node) for place, arguments in enumerate(nodes)]
    return pool_offers(decoded, {name: NodeGroup(name, 0, most, 0) for name, most in groups.items()})


EIGHT = {"cpu": "8", "memory": "32Gi"}
WITH_GPU = {"cpu": "4", "memory": "16Gi", "extended": {GPU: "1"}}


@pytest.mark.parametrize("tier", [size(), size(cores="8", memory="32Gi"), size(cores="7999m"), size(cores="lots")])
def test_what_one_empty_node_can_take_fits(tier: TierSize) -> None:
    assert explain_fit(tier, offers(EIGHT, {"cpu": "2"})) is None


@pytest.mark.parametrize(
    ("tier", "said"),
    [
        (size(cores="8001m"), "it asks for a little more than 8 cores, but the largest node has 8"),
        (size(cores="64"), "it asks for 64 cores, but the largest node has 8"),
        (size(memory="33Gi"), "it asks for 33 GiB of memory, but the largest node has 32 GiB"),
        (size(gpus=2), "it asks for 2 GPUs (nvidia.com/gpu), but the largest node has 1"),
        (size(gpus=1, gpu_resource="amd.com/gpu"), "it asks for 1 GPUs (amd.com/gpu), but the largest node has 0"),
        (size(cores="6", gpus=1), "none has 6 cores, 4 GiB of memory and 1 GPU together"),
        (size(memory="20Gi", gpus=1), "none has 1 core, 20 GiB of memory and 1 GPU together"),
        (size(cores="8", memory="33Gi"), "it asks for 33 GiB of memory, but the largest node has 32 GiB"),
        (
            size(cores="64", memory="32Gi", gpus=2),
            "it asks for 64 cores, but the largest node has 8; it asks for 2 GPUs (nvidia.com/gpu), but the largest node has 1",
        ),
    ],
)
def test_a_tier_that_no_node_can_take_is_told_which_resource_is_short(tier: TierSize, said: str) -> None:
    found = explain_fit(tier, offers(EIGHT, WITH_GPU))
    assert found is not None
    assert found == Diagnosis(
        "too_large",
        f"No node of the pool default is large enough for this tier, not even an empty one: {said}.",
        "problem", "admin",
        "Make the tier smaller or choose another pool; until then, what is launched on it waits and ends as an error.",
    )  # fmt: skip


def test_a_tier_without_gpus_is_not_told_of_any() -> None:
    found = explain_fit(
        size(cores="6", memory="20Gi"), offers({"cpu": "8", "memory": "8Gi"}, {"cpu": "2", "memory": "32Gi"})
    )
    assert found is not None
    assert found.sentence.endswith(": none has 6 cores and 20 GiB of memory together.")


@pytest.mark.parametrize(("maximum", "nodes"), [(1, "1 node"), (2, "2 nodes")])
def test_an_empty_pool_that_may_grow_is_only_remarked_on(maximum: int, nodes: str) -> None:
    assert explain_fit(size(node_pool="gpu"), offers(EIGHT, gpu=maximum)) == Diagnosis(
        "pool_empty",
        "The pool gpu has no node now; the autoscaler starts one when somebody launches on this tier "
        f"(at most {nodes}). Only then can be said whether the tier fits.",
        "wait", "", "Nothing to do if you know the size of its nodes.",
    )  # fmt: skip


@pytest.mark.parametrize("pool", ["closed", "unheard-of"])
def test_a_pool_that_can_have_no_node_is_a_problem(pool: str) -> None:
    assert explain_fit(size(node_pool=pool), offers(EIGHT, closed=0)) == Diagnosis(
        "no_nodes", f"The pool {pool} has no node, and the autoscaler may not start one.", "problem", "operator",
        "Choose another pool, or ask an operator to add nodes; until then, what is launched on this tier waits.",
    )  # fmt: skip


def test_nodes_of_other_pools_do_not_help() -> None:
    known = offers({"pool": "small", "cpu": "2"}, EIGHT, {"pool": "", "cpu": "64"}, small=3)
    assert {name: (one.name, len(one.allocatable), one.maximum) for name, one in known.items()} == {
        "default": ("default", 1, 0),
        "small": ("small", 1, 3),
    }
    found = explain_fit(size(node_pool="small", cores="4"), known)
    assert found is not None
    assert found.sentence.startswith("No node of the pool small is large enough")


def test_a_node_without_anything_takes_nothing() -> None:
    assert explain_fit(size(), {"default": PoolOffer("default", ({},))}) is not None
    assert explain_fit(size(cores="0", memory="0"), {"default": PoolOffer("default", ({},))}) is None


def test_a_nodes_other_gpus_do_not_count() -> None:
    mixed = {"default": PoolOffer("default", ({"cpu": "8", "memory": "32Gi", GPU: "4", "example.com/slice": "1"},))}
    assert largest(mixed["default"], gpu_resource="example.com/slice").gpus == 1
    assert explain_fit(size(gpus=2, gpu_resource="example.com/slice"), mixed) is not None


def test_the_largest_of_each_resource_may_be_on_different_nodes() -> None:
    most = largest(offers(EIGHT, WITH_GPU)["default"], gpu_resource=GPU)
    assert (most.cpu, most.memory, most.gpus) == (8000, 32 * 2**30, 1)


@given(
    st.lists(st.tuples(st.integers(1, 64), st.integers(1, 64), st.integers(0, 2)), min_size=1, max_size=4),
    st.tuples(st.integers(1, 64), st.integers(1, 64), st.integers(0, 2)),
)
def test_it_is_silent_exactly_when_some_node_has_enough_of_everything(
    nodes: list[tuple[int, int, int]], wanted: tuple[int, int, int]
) -> None:
    allocatable = tuple({"cpu": str(cpu), "memory": f"{memory}Gi", GPU: str(gpus)} for cpu, memory, gpus in nodes)
    tier = size(cores=str(wanted[0]), memory=f"{wanted[1]}Gi", gpus=wanted[2])
    found = explain_fit(tier, {"default": PoolOffer("default", allocatable)})
    fits = any(all(has >= asks for has, asks in zip(one, wanted, strict=True)) for one in nodes)
    assert (found is None) == fits
