"""Which pools grow: for what the pods ask, never above the maximum, never twice for one pod, and with the recorded words."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from grid.sandbox.client import Object, key_of
from grid.sandbox.controllers.autoscaling.scaleup import (
    ScaleUp,
    UnschedulablePod,
    plan_scale_up,
    pool_state,
    template_node,
)
from grid.sandbox.controllers.podresources import pod_requests
from grid.sandbox.controllers.scheduling import Snapshot, build_snapshot
from grid.sandbox.pools import DEFAULT_POOLS, NodePool, PoolTaint
from tests.sandbox.support import make_node, make_pod

GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
SIZES = {"platform": 1, "default": 2, "default-gpu": 0}


def waiting(*pods: Object) -> list[UnschedulablePod]:
    return [UnschedulablePod(pod, pod_requests(pod)) for pod in pods]


def plan(
    pods: Sequence[Object],
    *,
    sizes: dict[str, int] | None = None,
    snapshot: Snapshot | None = None,
    pools: Sequence[NodePool] = DEFAULT_POOLS,
) -> ScaleUp:
    known = sizes or SIZES
    states = [pool_state(pool, known[pool.name]) for pool in pools]
    return plan_scale_up(waiting(*pods), snapshot or Snapshot({}), states)


def gpu_pod(name: str, cards: int = 1, **requests: str) -> Object:
    wanted = {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": str(cards), **requests}
    return make_pod(name, requests=wanted, tolerations=[GPU_TOLERATION])


def test_gpu_pod_grows_gpu_pool_from_zero_to_one() -> None:
    result = plan([gpu_pod("train")])
    assert [str(increase) for increase in result.increases] == ["default-gpu 0->1 (max: 2)"]
    assert str(result.triggered["default/train"]) == "default-gpu 0->1 (max: 2)"
    assert not result.refused


def test_pods_that_share_a_node_ask_for_one_node() -> None:
    pods = [make_pod(f"p{index}", requests={"cpu": "2", "memory": "1Gi"}) for index in range(4)]
    assert [str(increase) for increase in plan(pods).increases] == ["default 2->3 (max: 5)"]


def test_booting_node_is_waited_for_and_not_shared() -> None:
    def while_booting(*pods: Object) -> ScaleUp:
        booting = build_snapshot([template_node(DEFAULT_POOLS[2], "upcoming/gpu-1")], [])
        return plan(pods, sizes=SIZES | {"default-gpu": 1}, snapshot=booting)

    alone = while_booting(gpu_pod("first"))
    assert not alone.increases and not alone.refused
    both = while_booting(gpu_pod("first"), gpu_pod("second"))
    assert [str(increase) for increase in both.increases] == ["default-gpu 1->2 (max: 2)"]
    assert set(both.triggered) == {"default/second"}


def test_plain_pod_never_takes_an_accelerator_despite_toleration() -> None:
    pod = make_pod("plain", requests={"cpu": "3", "memory": "12Gi"}, tolerations=[GPU_TOLERATION])
    assert [increase.pool for increase in plan([pod]).increases] == ["default"]


def test_autoscaler_refusals_match_the_recording() -> None:
    """From recordings/autoscaler: groups small (4 cores, 16 Gi), big (16, 64) and gpu (32, 256, 8 cards) at its maximum of 2."""
    pools = [
        _pool("small", {"cpu": "4", "memory": "16Gi"}, 4),
        _pool("big", {"cpu": "16", "memory": "64Gi"}, 3),
        _pool(
            "gpu",
            {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"},
            2,
            PoolTaint("nvidia.com/gpu", "present", "NoSchedule"),
        ),
    ]
    sizes = {"small": 0, "big": 1, "gpu": 2}
    pods = {
        "too-big": make_pod("too-big", requests={"cpu": "100"}),
        "too-much-memory": make_pod("too-much-memory", requests={"memory": "2000Gi"}),
        "fpga": make_pod("fpga", requests={"example.com/fpga": "1"}),
        "wrong-selector": make_pod("wrong-selector", nodeSelector={"disk": "tape"}),
        "gpu-more-1": gpu_pod("gpu-more-1", 8, cpu="8", memory="8Gi"),
        "needs-pvc": make_pod("needs-pvc", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]),
    }
    refused = plan(list(pods.values()), sizes=sizes, pools=pools).refused
    assert {key.split("/")[1]: _reasons(message) for key, message in refused.items()} == {
        "too-big": {"2 Insufficient cpu", "1 max node group size reached"},
        "too-much-memory": {"2 Insufficient memory", "1 max node group size reached"},
        "fpga": {"2 Insufficient example.com/fpga", "1 max node group size reached"},
        "wrong-selector": {"2 node(s) didn't match Pod's node affinity/selector", "1 max node group size reached"},
        "gpu-more-1": {"1 Insufficient cpu", "2 Insufficient nvidia.com/gpu", "1 max node group size reached"},
        "needs-pvc": {'2 persistentvolumeclaim "absent" not found', "1 max node group size reached"},
    }


def _reasons(message: str) -> set[str]:
    head, _, rest = message.partition(": ")
    assert head == "pod didn't trigger scale-up"
    return set(rest.split(", "))


def _pool(name: str, capacity: dict[str, str], maximum: int, *taints: PoolTaint) -> NodePool:
    return NodePool(name, "kwok", capacity | {"pods": "110"}, minimum=0, maximum=maximum, taints=taints)


SMALL, BIG = _pool("small", {"cpu": "4", "memory": "16Gi"}, 3), _pool("big", {"cpu": "16", "memory": "64Gi"}, 3)
CARD = {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("pools", "requests", "grows"),
    [
        ((BIG, SMALL), [{"cpu": "3", "memory": "12Gi"}], "small"),
        ((BIG, SMALL), [{"cpu": "15", "memory": "60Gi"}], "big"),
        # Two nodes of four cores with three taken waste less, node by node, than one of sixteen with six taken.
        ((BIG, SMALL), [{"cpu": "3", "memory": "12Gi"}] * 2, "small"),
        (
            (_pool("roomy", {"cpu": "4", "memory": "64Gi"}, 3), _pool("lean", {"cpu": "5", "memory": "8Gi"}, 3)),
            [{"cpu": "4", "memory": "8Gi"}],
            "lean",
        ),
        (
            (_pool("gpu", {"cpu": "2", "memory": "2Gi"} | CARD, 3), _pool("vast", {"cpu": "200", "memory": "2Ti"}, 3)),
            [{"cpu": "1", "memory": "1Gi"}],
            "vast",
        ),
        (
            (
                _pool("one-by-one", {"cpu": "3", "memory": "12Gi"} | CARD, 3),
                _pool("together", {"cpu": "60", "memory": "240Gi"} | CARD, 3),
            ),
            [{"cpu": "3", "memory": "12Gi"}] * 2,
            "together",
        ),
    ],
    ids=["small pod", "large pod", "average of nodes", "idle memory", "idle accelerator", "sum of accelerators"],
)
def test_pool_that_wastes_least_grows(pools: Sequence[NodePool], requests: list[dict[str, str]], grows: str) -> None:
    pods = [make_pod(f"p{index}", requests=wanted) for index, wanted in enumerate(requests)]
    increases = plan(pods, sizes={pool.name: 0 for pool in pools}, pools=pools).increases
    assert [increase.pool for increase in increases] == [grows]


def test_largest_pods_are_packed_first_to_save_nodes() -> None:
    pools = [_pool("only", {"cpu": "4", "memory": "16Gi"}, 9)]
    pods = [make_pod(f"p{index}", requests={"cpu": cpu}) for index, cpu in enumerate("111333")]
    assert [str(increase) for increase in plan(pods, sizes={"only": 0}, pools=pools).increases] == [
        "only 0->3 (max: 9)"
    ]


def test_pool_at_maximum_helps_some_and_refuses_the_rest() -> None:
    pools = [_pool("only", {"cpu": "4", "memory": "16Gi"}, 2)]
    pods = [make_pod(f"p{index}", requests={"cpu": "3"}) for index in range(3)]
    result = plan(pods, sizes={"only": 1}, pools=pools)
    assert [str(increase) for increase in result.increases] == ["only 1->2 (max: 2)"]
    assert len(result.triggered) == 1
    assert set(result.refused.values()) == {"pod didn't trigger scale-up: 1 max node group size reached"}


def test_unplaceable_pod_does_not_block_the_next() -> None:
    pools = [_pool("only", {"cpu": "4", "memory": "16Gi"}, 2)]
    pods = [make_pod("huge", requests={"cpu": "9"}), make_pod("small", requests={"cpu": "1"})]
    assert set(plan(pods, sizes={"only": 0}, pools=pools).triggered) == {"default/small"}


def test_refusal_counts_full_pools_and_failing_pools() -> None:
    pools = [_pool(name, {"cpu": "4", "memory": "16Gi"}, 2) for name in ("a", "b", "c", "d")]
    states = [pool_state(pool, 2 if pool.name in "ab" else 0, in_backoff=pool.name in "cd") for pool in pools]
    result = plan_scale_up(waiting(make_pod("p", requests={"cpu": "1"})), Snapshot({}), states)
    assert result.refused == {
        "default/p": "pod didn't trigger scale-up: 2 in backoff after failed scale-up, 2 max node group size reached"
    }


def test_pools_grow_for_pods_only_they_can_take() -> None:
    pools = [SMALL, BIG]
    pods = [make_pod("much", requests={"cpu": "15"}), make_pod("little", requests={"cpu": "4"})]
    result = plan(pods, sizes={"small": 2, "big": 0}, pools=pools)
    assert {key: str(increase) for key, increase in result.triggered.items()} == {
        "default/much": "big 0->1 (max: 3)",
        "default/little": "small 2->3 (max: 3)",
    }


def test_new_node_matches_an_existing_node_of_its_pool() -> None:
    pool = DEFAULT_POOLS[2]
    assert template_node(pool, "n") == {
        "metadata": {"name": "n", "labels": pool.node_labels("n")},
        "spec": {"taints": pool.node_taints()},
        "status": {"allocatable": dict(pool.capacity)},
    }
    like = {"status": {"allocatable": {"cpu": "3", "memory": "1Gi"}}}
    assert template_node(pool, "n", like)["status"] == like["status"]
    assert template_node(pool, "n", {"metadata": {}})["status"] == {"allocatable": dict(pool.capacity)}
    state = pool_state(pool, 2, like, in_backoff=True)
    assert (state.pool, state.size, state.in_backoff, state.template.name) == (pool, 2, True, "template-default-gpu")
    assert state.template.allocatable == {"cpu": 3000, "memory": 2**30}
    assert not pool_state(pool, 2).in_backoff


sizes_of_pods = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 40), st.integers(0, 2)), min_size=0, max_size=25)


@given(asked=sizes_of_pods, default=st.integers(1, 5), gpu=st.integers(0, 2))
@settings(max_examples=150, deadline=None)
def test_pools_keep_their_maximum_and_helped_pods_fit(
    asked: list[tuple[int, int, int]], default: int, gpu: int
) -> None:
    pods = [
        gpu_pod(f"p{index}", cards, cpu=str(cpu), memory=f"{memory}Gi")
        if cards
        else make_pod(f"p{index}", requests={"cpu": str(cpu), "memory": f"{memory}Gi"})
        for index, (cpu, memory, cards) in enumerate(asked)
    ]
    sizes = {"platform": 1, "default": default, "default-gpu": gpu}
    result = plan(pods, sizes=sizes)
    pools = {pool.name: pool for pool in DEFAULT_POOLS}
    for increase in result.increases:
        assert increase.before == sizes[increase.pool]
        assert increase.before < increase.after <= pools[increase.pool].maximum
    assert set(result.triggered) | set(result.refused) == {key_of(pod) for pod in pods}
    assert not set(result.triggered) & set(result.refused)
    _assert_room(pods, result)


def _assert_room(pods: Sequence[Object], result: ScaleUp) -> None:
    """Together, the helped pods of a pool need no more than its new nodes offer."""
    for increase in result.increases:
        pool = next(pool for pool in DEFAULT_POOLS if pool.name == increase.pool)
        new = increase.after - increase.before
        helped = [pod for pod in pods if result.triggered.get(key_of(pod)) == increase]
        assert len(helped) >= new
        offered = pool_state(pool, 0).template.allocatable
        for resource in ("cpu", "memory", "nvidia.com/gpu"):
            assert sum(pod_requests(pod).get(resource, 0) for pod in helped) <= new * offered.get(resource, 0)


@given(asked=st.lists(st.integers(1, 8), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_repeated_plan_while_nodes_boot_adds_nothing(asked: list[int]) -> None:
    pods = [make_pod(f"p{index}", requests={"cpu": str(cpu)}) for index, cpu in enumerate(asked)]
    first = plan(pods)
    sizes = SIZES | {increase.pool: increase.after for increase in first.increases}
    booting = [
        template_node(DEFAULT_POOLS[1], f"upcoming/{index}") for index in range(sizes["default"] - SIZES["default"])
    ]
    helped = [pod for pod in pods if key_of(pod) in first.triggered]
    helped.sort(key=lambda pod: pod_requests(pod)["cpu"], reverse=True)
    assert not plan(helped, sizes=sizes, snapshot=build_snapshot(booting, [])).increases


def test_pod_fitting_an_existing_node_triggers_nothing() -> None:
    there: dict[str, Any] = make_node("default-1")
    result = plan([make_pod("small", requests={"cpu": "1"})], snapshot=build_snapshot([there], []))
    assert (result.increases, dict(result.triggered), dict(result.refused)) == ((), {}, {})
