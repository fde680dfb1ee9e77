"""The answer before a launch: now, on a new node, later or never. Every verdict comes with the facts next to it that give another.

Read `tests/golden/words-of-launch-answers.txt`.
"""

import random
from dataclasses import replace
from typing import Any

import pytest

from grid.core.wording import about
from grid.diagnosis.launchfit import (
    AlikeNodes,
    Fit,
    LaunchFacts,
    LaunchPool,
    PodPlan,
    QueuePlace,
    fit,
    never_fits,
    places,
)
from grid.diagnosis.shortages import NamespaceRefusal
from grid.kube.objects import Taint, Toleration
from tests.support.golden import assert_golden

GIB = 2**30
CARD = "nvidia.com/gpu"


def size(cores: float, memory: float = 4, **more: int) -> dict[str, int]:
    return {"cpu": round(cores * 1000), "memory": round(memory * GIB), "pods": 1, **more}


def offers(cores: float, memory: float = 32, pods: int = 110, **more: int) -> dict[str, int]:
    return {**size(cores, memory, **more), "pods": pods}


def plan(cores: float = 1, memory: float = 4, *, pool: str = "default", count: int = 1, tier: str = "Small") -> PodPlan:
    return PodPlan(tier, pool, size(cores, memory), count=count)


def pool(
    *nodes: AlikeNodes, maximum: int = 0, start_seconds: float | None = None, is_backed_off: bool = False
) -> LaunchFacts:
    state = LaunchPool("default", nodes, maximum, start_seconds, is_backed_off=is_backed_off)
    return LaunchFacts({"default": state})


def node(free: float, empty: float = 7.92, count: int = 1) -> AlikeNodes:
    return AlikeNodes(offers(free), offers(empty), count)


SEEN = "24 November 2026"
TAINT = Taint(key=CARD, value="present", effect="NoSchedule")


def at_zero(maximum: int = 3, cores: float = 7.92, *, taints: tuple[Taint, ...] = ()) -> LaunchPool:
    return LaunchPool("default", (), maximum, remembered=replace(node(cores, cores), taints=taints), seen=SEEN)


def of_pools() -> dict[str, Fit]:
    grows = pool(node(1), node(1.5), maximum=5, start_seconds=220)
    crowded = pool(AlikeNodes(offers(8, pods=2), offers(8)))
    disk = PodPlan("Disk", "default", size(1) | {"ephemeral-storage": 1})
    backed_off: dict[str, Any] = {"maximum": 5, "start_seconds": 220, "is_backed_off": True}
    apart = AlikeNodes(offers(8, 4), offers(8, 4)), AlikeNodes(offers(2, 64), offers(2, 64))
    return {
        "five places": fit([plan()], pool(node(3.5), node(1, count=2), node(0.5))),
        "two places for pods": fit([plan()], crowded),
        "memory for one": fit([plan(memory=20)], crowded),
        "a resource that no node has": fit([disk], crowded),
        "full, and may grow": fit([plan(2)], grows),
        "full, and nobody knows how long a node takes": fit([plan(2)], pool(node(1), maximum=5)),
        "full, and at its maximum": fit([plan(2)], pool(node(1), node(1.5), maximum=2)),
        "full, without an autoscaler": fit([plan(2)], pool(node(1))),
        "the cloud has none": fit([plan(2)], pool(node(1), **backed_off)),
        "the cloud has none, and there is no node": fit([plan(2)], pool(**backed_off)),
        "the cloud has none, and none is needed": fit([plan(2)], pool(node(2), **backed_off)),
        "no node, and may grow": fit([plan()], LaunchFacts({"default": LaunchPool("default", maximum=3)})),
        "no such pool": fit([plan()], LaunchFacts({})),
        "too large": fit([plan(64, tier="Huge")], pool(node(7.92), maximum=9)),
        "a little too large": fit([PodPlan("Whole", "default", {"cpu": 7921})], pool(node(7.92))),
        "too large together": fit([plan(8, 64)], pool(*apart)),
        "as large as an empty node": fit([plan(7.92)], pool(node(0), maximum=9)),
        "as many pods as there is room for": fit([plan(count=3)], pool(node(2), node(1))),
        "one pod too many": fit([plan(count=4)], pool(node(2), node(1))),
        "one pod too many, and may grow": fit([plan(count=4)], pool(node(2), node(1), maximum=5)),
        "a small and a large one": fit([plan(count=1), plan(2)], pool(node(2), node(1))),
    }


def of_closed_nodes() -> dict[str, Fit]:
    cordoned, small = replace(node(7.92), takes_pods=False), AlikeNodes(offers(1), offers(1))
    tainted = replace(node(7.92), taints=(Taint(key="team", value="vision", effect="NoSchedule"),))
    tolerant = replace(plan(), tolerations=(Toleration(key="team", value="vision"),))
    soft = replace(node(7.92), taints=(Taint(key="team", effect="PreferNoSchedule"),))
    return {
        "cordoned": fit([plan()], pool(cordoned)),
        "cordoned beside another": fit([plan()], pool(cordoned, node(1))),
        "fits the cordoned one only": fit([plan(4)], pool(cordoned, small)),
        "too large for the cordoned one, too": fit([plan(64)], pool(cordoned, small)),
        "tainted": fit([plan()], pool(tainted, maximum=5)),
        "tainted, and tolerated": fit([tolerant], pool(tainted)),
        "softly tainted": fit([plan()], pool(soft)),
        "tainted beside another": fit([plan(4)], pool(tainted, node(1, 4), maximum=5)),
    }


def of_several_pods() -> dict[str, Fit]:
    gpus = AlikeNodes(offers(8, **{CARD: 0}), offers(8, **{CARD: 1}))
    pools = LaunchFacts({"default": LaunchPool("default", (node(7),), 3), "gpu": LaunchPool("gpu", (gpus,), 3)})
    head, worker = plan(), PodPlan("GPU", "gpu", size(1, **{CARD: 1}), count=2)
    unknown = {"a": LaunchPool("a", (), 3), "b": replace(at_zero(), name="b")}
    return {
        "a head": fit([head], pools),
        "a head and two workers": fit([head, worker], pools),
        "a head and three workers": fit([head, replace(worker, count=3)], pools),
        "a head, and one in no pool": fit([head, replace(head, pool="nowhere")], pools),
        "a pool of unknown size": fit([plan(pool="a")], LaunchFacts(unknown)),
        "a pool of unknown size first": fit([plan(pool="a"), plan(pool="b")], LaunchFacts(unknown)),
        "a pool of unknown size last": fit([plan(pool="b"), plan(pool="a")], LaunchFacts(unknown)),
    }


def of_what_comes_first() -> dict[str, Fit]:
    line = "You use 25 of 25 slots; this starts by itself when one is free. It is number 4 of yours."
    place, room = QueuePlace(4, line, "Stop one."), pool(node(3))
    queued = replace(room, queue=place)
    left = NamespaceRefusal("The quota “team” of the namespace has 0 of 10 pods left.")
    refused = replace(room, refusal=left)
    for_good = NamespaceRefusal("The limit range says no.", for_good=True)
    busy = LaunchFacts(None, QueuePlace(1, "You use 25 of 25 slots."), trouble="The cluster limits our requests")
    slow = replace(room, trouble="The cluster answers slowly", usual_start=9.0)
    return {
        "queued": fit([plan()], queued),
        "queued, with an estimate": fit([plan()], replace(queued, expected=("Expected to start in about 25 min.",))),
        "queued before a full pool": fit([plan(2)], replace(pool(node(1), maximum=5), queue=place)),
        "queued, and too large": fit([plan(64)], queued),
        "queued for good": fit([plan()], replace(queued, queue=replace(place, for_good=True))),
        "aside": fit([plan()], replace(room, queue=QueuePlace(0, "mara decides by hand what starts."))),
        "cluster unknown": fit([plan()], LaunchFacts(None)),
        "cluster unknown, and queued": fit([plan()], busy),
        "cluster slow": fit([plan()], slow),
        "refused": fit([plan()], refused),
        "refused, and would be queued": fit([plan()], replace(refused, queue=QueuePlace(1, "Wait."))),
        "refused, and too large": fit([plan(64)], refused),
        "refused for good": fit([plan()], replace(refused, refusal=for_good)),
        "queue full": fit([plan()], replace(room, full="900 executions wait already.")),
    }


def of_pools_at_zero() -> dict[str, Fit]:
    remembered, tainted = LaunchFacts({"default": at_zero()}), LaunchFacts({"default": at_zero(taints=(TAINT,))})
    small = LaunchFacts({"default": replace(at_zero(cores=16), nodes=(node(1),))})
    none = LaunchFacts({"default": at_zero(0)})
    return {
        "at zero": fit([plan()], remembered),
        "at zero, three nodes": fit([plan(3, count=5)], remembered),
        "at zero, four nodes where there may be three": fit([plan(3, count=7)], remembered),
        "at zero, too large": fit([plan(64, tier="Huge")], remembered),
        "at zero, tainted": fit([plan()], tainted),
        "present nodes count more than remembered ones": fit([plan(8)], small),
        "at zero for ever": fit([plan(1)], none),
        "at zero for ever, too large": fit([plan(64)], none),
    }


def answer_words(answer: Fit) -> str:
    facts = f"{answer.code}, {answer.severity}, {answer.who or 'nobody'}, {answer.free_places} free places"
    start = "can start" if answer.can_start else "cannot start by itself"
    return "\n".join(
        (
            f"[{facts}, {start}] {answer.headline}",
            f"{answer.sentence} {answer.next_step}",
            *(f"- {words}" for words in answer.then),
        )
    )


def test_answers_before_a_launch_are_as_stored() -> None:
    kinds = (of_pools(), of_closed_nodes(), of_several_pods(), of_what_comes_first(), of_pools_at_zero())
    blocks = [f"# {name}\n{answer_words(answer)}" for answers in kinds for name, answer in answers.items()]
    assert_golden("words-of-launch-answers", "\n".join(blocks), ending="txt")


def test_no_launch_is_refused_by_what_is_only_remembered() -> None:
    assert never_fits(plan(64), {"default": at_zero()}) is None
    assert never_fits(plan(64), {}) is None
    refused = never_fits(plan(64), {"default": LaunchPool("default", (node(1),))})
    assert refused is not None and refused.code == "never_fits"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (59.4, "59 s"), (60, "1 min"), (220, "3 min 40 s"), (1520, "25 min")]
)
def test_waits_are_said_as_exactly_as_they_matter(seconds: float, words: str) -> None:
    assert about(seconds) == words


@pytest.mark.parametrize("seed", range(40))
def test_free_places_equal_those_placed_one_by_one(seed: int) -> None:
    """Against the simplest possible code: put one pod after the other on any node that takes it."""
    rng = random.Random(seed)
    kinds = [
        AlikeNodes(
            offers(rng.randrange(9), rng.randrange(20), rng.randrange(1, 6)), offers(8), rng.randrange(1, 4),
            takes_pods=rng.random() < 0.8,
        )
        for _ in range(rng.randrange(1, 5))
    ]  # fmt: skip
    asked = plan(rng.choice([0.5, 1, 2, 3]), rng.choice([1, 3, 5]))
    frees = [dict(kind.free) for kind in kinds if kind.takes_pods for _ in range(kind.count)]
    placed = 0
    while target := next((free for free in frees if all(free[k] >= v for k, v in asked.requests.items())), None):
        for name, amount in asked.requests.items():
            target[name] -= amount
        placed += 1
    answer = fit([asked], pool(*kinds))
    assert (answer.code == "starts_now", answer.free_places) == (placed > 0, placed)
    for count in (placed, placed + 1):
        if count > 1:
            assert (fit([replace(asked, count=count)], pool(*kinds)).code == "starts_now") is (count <= placed)


def test_pool_of_thousands_of_nodes_is_answered_quickly() -> None:
    nodes = [node(0.001 * number) for number in range(5000)]
    assert fit([plan(count=4000), plan(2)], pool(*nodes, maximum=9000)).code == "starts_now"
    assert places({}, {}) == 1
