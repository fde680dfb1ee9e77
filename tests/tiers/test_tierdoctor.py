"""How a tier fits its pool's nodes: places, what is left, what keeps it off, and sizes that pack better; against brute force."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from grid.core.quantity import format_bytes, format_cores, millicores, whole
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.nodeshapes import NodeShape, PoolShapes, ShapeTally
from grid.kube.objects import Node, Pod, Toleration
from grid.tiers.tierdoctor import MOST_CUT, ComparedTier, Overlap, TierRequest, examine, overlap, pack, rounded, words
from tests.diagnosis.situations import assert_answers_as_stored
from tests.support.builders import decode, node, pod, room_of

GIB = 2**30
GPU = "nvidia.com/gpu"
DAEMON: dict[str, Any] = {
    "owner": {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": {"name": "agent", "uid": "1"}}
}
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}


def problem_of(request: TierRequest, pool: PoolShapes) -> Diagnosis:
    problem = examine(request, pool).problem
    assert problem is not None
    return problem


def asks(cpu: int = 1000, memory: int = 4 * GIB, *tolerations: Toleration, **more: int) -> TierRequest:
    return TierRequest("default", {"cpu": cpu, "memory": memory, "pods": 1, **more}, tolerations)


def pool(*nodes: dict[str, Any], own: Mapping[str, str] | None = None, maximum: int = 0) -> PoolShapes:
    tally = ShapeTally()
    daemon = [decode(pod("agent-1", node="n", phase="Running", requests=own, **DAEMON), Pod)] if own else []
    for place, arguments in enumerate(nodes):
        tally.count(decode(node(f"n{place}", **arguments), Node), room_of(daemon).own("n"))
    return PoolShapes("default", tally.shapes(), maximum)


EIGHT: dict[str, Any] = {"cpu": "8", "memory": "32Gi"}
OWN = {"cpu": "500m", "memory": "1Gi"}


def test_similar_nodes_share_a_shape_and_unavailable_are_separate() -> None:
    leaving = [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]
    away = [{**EIGHT, "unschedulable": True}, {**EIGHT, "ready": False}, {**EIGHT, "taints": leaving}]
    eight, four = pool(EIGHT, EIGHT, *away, {"cpu": "4"}).shapes
    assert (eight.allocatable["cpu"], eight.nodes, eight.away, eight.taints) == (8000, 2, 3, ())
    assert (four.allocatable["cpu"], four.nodes, four.away) == (4000, 1, 0)


def test_machines_differing_by_kibibytes_share_a_shape() -> None:
    (shape,) = pool(*({"cpu": "8", "memory": f"{32 * 2**20 + 1000 + place}Ki"} for place in range(9)), own=OWN).shapes
    assert (shape.nodes, shape.own["memory"]) == (9, GIB)
    assert shape.free["memory"] == 31 * GIB
    assert pack(asks(100, 31 * GIB), shape).places == 1


def test_only_the_nodes_own_pods_are_subtracted() -> None:
    running: dict[str, Any] = {"node": "n", "phase": "Running", "requests": OWN}
    pods = [
        decode(pod("agent", **running, **DAEMON), Pod),
        decode(pod("static", **running, annotations={"kubernetes.io/config.mirror": "x"}), Pod),
        decode(pod("execution", **running), Pod),
        decode(pod("ended", **{**running, "phase": "Failed"}, **DAEMON), Pod),
    ]
    tally = ShapeTally()
    tally.count(decode(node("n", **EIGHT), Node), room_of(pods).own("n"))
    (shape,) = tally.shapes()
    assert (shape.own, shape.free["cpu"]) == ({"cpu": 1000, "memory": 2 * GIB, "pods": 2}, 7000)
    assert shape.free["pods"] == 108


def test_a_core_less_packs_two_instead_of_one() -> None:
    fit = examine(asks(8000, 16 * GIB), pool({"cpu": "15", "memory": "64Gi"}))
    assert fit.best is not None
    assert fit.best.places == 1
    assert (fit.suggestions[0].kind, fit.suggestions[0].requests["cpu"], fit.suggestions[0].places) == ("more", 7500, 2)


def test_the_executor_beside_takes_its_room_of_each_place() -> None:
    sidecars = {"cpu": 50, "memory": GIB // 16}
    fit = examine(replace(asks(2000, 4 * GIB), sidecar_requests=sidecars), pool(EIGHT))
    assert fit.best is not None
    assert (fit.best.places, fit.best.left["cpu"]) == (3, 8000 - 3 * 2050)
    # What is suggested is the tier's own size.
    assert (fit.suggestions[0].kind, fit.suggestions[0].requests["cpu"], fit.suggestions[0].places) == ("more", 1750, 4)


def test_the_node_is_used_fully_with_the_same_places() -> None:
    fit = examine(asks(2000, 4 * GIB), pool(EIGHT))
    assert fit.best is not None
    assert (fit.best.places, fit.best.binding, fit.best.wastes) == (4, ("cpu",), ("memory",))
    full = fit.suggestions[-1]
    assert (full.kind, full.places, full.requests["memory"]) == ("full", 4, 8 * GIB)


def test_a_tier_without_gpus_strands_the_nodes_gpus() -> None:
    (packing,) = examine(asks(8000, 32 * GIB), pool({**EIGHT, "extended": {GPU: "4"}})).packings
    assert packing.wastes == (GPU,)
    assert words(packing.left, packing.wastes) == "4 GPUs"


def test_toleration_admits_the_tier() -> None:
    tainted = pool({**EIGHT, "taints": [GPU_TAINT]})
    assert examine(asks(1000, GIB, Toleration(key=GPU, operator="Exists")), tainted).problem is None
    soft = {**GPU_TAINT, "effect": "PreferNoSchedule"}
    assert examine(asks(), pool({**EIGHT, "taints": [soft]})).problem is None, "it only prefers"


SIZES = st.builds(
    lambda cpu, memory, gpus: {"cpu": cpu, "memory": memory * 2**26, "pods": 1, GPU: gpus},
    st.integers(1, 20_000),
    st.integers(1, 1000),
    st.integers(0, 2),
)
NODES = st.builds(
    lambda cpu, memory, gpus, pods: {"cpu": cpu, "memory": memory * 2**26 + 12345, "pods": pods, GPU: gpus},
    st.integers(0, 64_000),
    st.integers(0, 4000),
    st.integers(0, 4),
    st.integers(0, 40),
)

BESIDE: st.SearchStrategy[dict[str, int]] = st.just({}) | st.builds(
    lambda cpu, memory: {"cpu": cpu, "memory": memory}, st.integers(1, 200), st.integers(1, 2**28)
)


def brute_force(requests: Mapping[str, int], free: Mapping[str, int]) -> int:
    """Start executions one by one until one resource is short."""
    left, started = dict(free), 0
    while all(left.get(name, 0) >= amount for name, amount in requests.items()):
        left = {name: amount - requests.get(name, 0) for name, amount in left.items()}
        started += 1
    return started


@given(SIZES, NODES)
def test_packing_equals_starting_executions_one_by_one(requests: dict[str, int], free: dict[str, int]) -> None:
    packing = pack(TierRequest("p", requests), NodeShape(free, {}, (), 1, 0))
    assert packing.places == brute_force(requests, free)
    assert all(amount >= 0 for amount in packing.left.values())
    assert packing.binding
    for name in packing.binding:
        assert packing.left[name] < requests[name]


@example(
    {"cpu": 1, "memory": 27 * 2**26, "pods": 1, GPU: 0}, {"cpu": 10, "memory": 240 * 2**26, "pods": 10, GPU: 0}, {}
)
@given(SIZES, NODES, BESIDE)
def test_suggestion_packs_as_promised(requests: dict[str, int], free: dict[str, int], sidecars: dict[str, int]) -> None:
    fit = examine(
        TierRequest("p", requests, sidecar_requests=sidecars), PoolShapes("p", (NodeShape(free, {}, (), 1, 0),))
    )
    assert fit.best is None or fit.best.places == brute_force(Counter(requests) + Counter(sidecars), free)
    for better in fit.suggestions:
        assert fit.best is not None
        assert brute_force(Counter(better.requests) + Counter(sidecars), free) == better.places
        assert better.requests != requests
        assert all(better.requests[name] == requests[name] for name in ("pods", GPU))
        if better.kind == "more":
            assert better.places > fit.best.places
            assert all(
                requests[name] * (MOST_CUT - 1) <= better.requests[name] * MOST_CUT <= requests[name] * MOST_CUT
                for name in requests
            )
        else:
            assert better.places == fit.best.places
            assert all(better.requests[name] >= requests[name] for name in requests)


@given(SIZES, NODES)
def test_suggestion_is_absent_exactly_when_too_costly(requests: dict[str, int], free: dict[str, int]) -> None:
    """The other direction: where nothing is suggested, no size that a person would type gives one more place for a fourth less."""
    fit = examine(TierRequest("p", requests), PoolShapes("p", (NodeShape(free, {}, (), 1, 0),)))
    if fit.best is None or fit.best.places > 16 or any(better.kind == "more" for better in fit.suggestions):
        return
    if not fit.best.wastes:
        assert fit.suggestions == ()
        return
    places = fit.best.places + 1
    least = {
        name: rounded(name, free[name] // places) if requests[name] * places > free[name] else requests[name]
        for name in ("cpu", "memory")
    }
    is_short = any(requests[name] * places > free[name] for name in ("pods", GPU))
    assert is_short or any(4 * least[name] < 3 * requests[name] for name in least)


@given(st.integers(0, 200_000), st.integers(0, 10**12))
def test_a_suggested_size_is_said_exactly(cpu: int, memory: int) -> None:
    assert millicores(format_cores(rounded("cpu", cpu)).replace(",", "")) == rounded("cpu", cpu)
    typed = format_bytes(rounded("memory", memory)).removesuffix("B").replace(" ", "")
    if memory < 2**40:
        assert whole(typed) == rounded("memory", memory)


@given(st.lists(NODES, min_size=1, max_size=4), SIZES)
def test_problem_exists_exactly_when_no_node_fits(nodes: list[dict[str, int]], requests: dict[str, int]) -> None:
    shapes = tuple(NodeShape(free, {}, (), 1, 0) for free in nodes)
    fit = examine(TierRequest("p", requests), PoolShapes("p", shapes))
    assert (fit.problem is None) == any(brute_force(requests, free) for free in nodes)


def compared(id: str, cpu: int, memory: int, price: str, audience: str = "all") -> ComparedTier:
    return ComparedTier(id, id.title(), {"cpu": cpu, "memory": memory * GIB}, Decimal(price), audience)


MEDIUM = compared("medium", 4000, 16, "0.40")


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (compared("big", 8000, 32, "0.40"), "beaten"),
        (compared("cheap", 4000, 16, "0.30"), "beaten"),
        (compared("twin", 4000, 16, "0.40"), "alike"),
        (compared("near", 3700, 17, "0.50"), "alike"),
        (compared("small", 2000, 8, "0.20"), None),
        (compared("worse", 4000, 15, "0.50"), None),
        (compared("elsewhere", 8000, 32, "0.10", audience="group"), None),
    ],
)
def test_a_tier_is_compared_with_its_alternatives(other: ComparedTier, kind: str | None) -> None:
    assert overlap(MEDIUM, [MEDIUM, other]) == (Overlap(kind, other) if kind in ("beaten", "alike") else None)  # type: ignore[arg-type]


def at_zero(*nodes: dict[str, Any], maximum: int = 3) -> PoolShapes:
    """A pool without nodes whose last node was like the first of these."""
    (shape,) = pool(*nodes, own=OWN).shapes
    return PoolShapes("default", (), maximum, replace(shape, nodes=0), "24 November 2026")


def test_empty_pool_is_packed_as_last_seen() -> None:
    fit = examine(asks(4000, 8 * GIB), at_zero(EIGHT))
    assert (fit.problem, fit.seen) == (None, "24 November 2026")
    assert fit.best is not None
    assert (fit.best.places, fit.best.left["cpu"], [packing.places for packing in fit.usable]) == (1, 3500, [1])
    assert fit.suggestions == examine(asks(4000, 8 * GIB), pool(EIGHT, own=OWN)).suggestions != ()


def test_current_nodes_ignore_last_seen_ones() -> None:
    small = replace(at_zero({"cpu": "64", "memory": "256Gi"}), shapes=pool(EIGHT).shapes)
    fit = examine(asks(16000), small)
    assert (fit.seen, len(fit.packings)) == ("", 1)
    assert fit.problem is not None
    assert fit.problem.code == "too_large"


def test_problems_of_tiers_are_as_stored() -> None:
    tainted, cordoned = {**EIGHT, "taints": [GPU_TAINT]}, {**EIGHT, "unschedulable": True}
    exact = replace(asks(8000, 4 * GIB), sidecar_requests={"cpu": 50, "memory": 64 * 2**20})
    large = replace(exact, requests={**exact.requests, "cpu": 9000})
    problems = {
        "as large as a node, which has pods of its own": problem_of(asks(8000, 4 * GIB), pool(EIGHT, own=OWN)),
        "as large as a node, and its executor": problem_of(exact, pool(EIGHT)),
        "as large as a node, and its nginx": problem_of(replace(exact, sidecars=("front",)), pool(EIGHT)),
        "as large as a node, and both": problem_of(replace(exact, sidecars=("front", "executor")), pool(EIGHT)),
        "larger than a node, and its executor": problem_of(large, pool(EIGHT)),
        "a tainted node": problem_of(asks(), pool(tainted)),
        "a tainted node and a cordoned one": problem_of(asks(), pool(tainted, cordoned)),
        "a node with two taints": problem_of(
            asks(), pool({**EIGHT, "taints": [GPU_TAINT, {**GPU_TAINT, "key": "team"}]})
        ),
        "two cordoned nodes": problem_of(asks(), pool(cordoned, cordoned)),
        "a kibibyte more than a node": problem_of(asks(1000, 32 * GIB + 1024), pool(EIGHT)),
        "more cores and GPUs than a node": problem_of(asks(9000, **{GPU: 2}), pool({**EIGHT, "extended": {GPU: "1"}})),
        "the cores of one node and the memory of another": problem_of(
            asks(8000, 32 * GIB), pool({**EIGHT, "memory": "16Gi"}, {**EIGHT, "cpu": "4"})
        ),
        "no node yet, and one at most": problem_of(asks(), pool(maximum=1)),
        "no node for ever": problem_of(asks(), pool(maximum=0)),
        "no node yet": problem_of(asks(), pool(maximum=3)),
        "larger than the nodes last seen": problem_of(asks(8000), at_zero(EIGHT)),
        "tainted nodes were last seen": problem_of(asks(), at_zero(tainted)),
        "nodes were last seen, and none comes again": problem_of(asks(), at_zero(EIGHT, maximum=0)),
    }
    assert_answers_as_stored("words-of-tier-problems", problems.items())
