"""The answer before a launch: now, on a new node, later or never. Every verdict comes with the facts next to it that give another."""

import random
from dataclasses import replace

import pytest

from grid.core.wording import about
from grid.diagnosis.launchfit import AlikeNodes, LaunchFacts, LaunchPool, PodPlan, QueuePlace, fit, never_fits, places
from grid.diagnosis.shortages import NamespaceRefusal
from grid.kube.objects import Taint, Toleration

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


def test_launch_starts_now_with_room_and_counts_free_places() -> None:
    answer = fit([plan()], pool(node(3.5), node(1, count=2), node(0.5)))
    assert (answer.code, answer.severity, answer.headline, answer.free_places) == ("starts_now", "ok", "Starts now", 5)
    assert answer.sentence == "The pool default has 5 free places for Small."


def test_the_scarcest_resource_counts() -> None:
    full_of_pods = AlikeNodes(offers(8, pods=2), offers(8))
    assert fit([plan()], pool(full_of_pods)).free_places == 2
    assert fit([plan(memory=20)], pool(full_of_pods)).free_places == 1
    assert (
        fit([PodPlan("Disk", "default", size(1) | {"ephemeral-storage": 1})], pool(full_of_pods)).code == "never_fits"
    )


def test_full_pool_needs_new_node_while_it_may_grow() -> None:
    answer = fit([plan(2)], pool(node(1), node(1.5), maximum=5, start_seconds=220))
    assert (answer.code, answer.headline) == ("needs_nodes", "Needs 1 new node")
    assert (
        answer.sentence
        == "The pool default has no free place on its 2 nodes; it may have 5, and a new one is started for you."
    )
    assert answer.then == ("A node usually takes 3 min 40 s to start here.",)
    assert fit([plan(2)], pool(node(1), maximum=5)).then == ("How long a node takes to start here is not known yet.",)
    at_its_maximum = fit([plan(2)], pool(node(1), node(1.5), maximum=2))
    assert (at_its_maximum.code, at_its_maximum.headline) == ("waits_for_room", "Waits for room")
    assert "and it may not have more than 2" in at_its_maximum.sentence
    assert "no autoscaler is known" in fit([plan(2)], pool(node(1))).sentence


def test_backed_off_cloud_is_said_and_never_advised_instead() -> None:
    for nodes in ((node(1),), ()):
        answer = fit([plan(2)], pool(*nodes, maximum=5, start_seconds=220, is_backed_off=True))
        assert (answer.code, answer.can_start) == ("needs_nodes", False)
        assert answer.then[0] == ("The cloud could not deliver a node of this pool, and is asked again after a while.")
        assert answer.next_step
    assert not fit([plan(2)], pool(node(2), maximum=5, is_backed_off=True)).next_step, "it needs none"


def test_a_pool_without_nodes_starts_one_or_has_none() -> None:
    answer = fit([plan()], LaunchFacts({"default": LaunchPool("default", maximum=3)}))
    assert (answer.code, answer.headline) == ("needs_nodes", "Needs a new node")
    assert "Whether Small fits its nodes is known only when one has started." in answer.then
    nothing = fit([plan()], LaunchFacts({}))
    assert (nothing.code, nothing.who) == ("no_nodes", "operator")
    assert nothing.sentence == "The pool default has no node, and no autoscaler is known that starts one."


def test_launch_too_large_for_empty_nodes_never_fits() -> None:
    answer = fit([plan(64, tier="Huge")], pool(node(7.92), maximum=9))
    assert (answer.code, answer.headline, answer.who) == ("never_fits", "Can never fit", "admin")
    assert answer.sentence == (
        "Huge asks for 64 cores; the largest node of the pool default offers 7.92 cores after overhead."
    )
    barely = fit([PodPlan("Whole", "default", {"cpu": 7921})], pool(node(7.92)))
    assert "a little more than 7.92 cores" in barely.sentence
    together = AlikeNodes(offers(8, 4), offers(8, 4)), AlikeNodes(offers(2, 64), offers(2, 64))
    assert "no node of the pool default offers them together" in fit([plan(8, 64)], pool(*together)).sentence
    assert fit([plan(7.92)], pool(node(0), maximum=9)).code == "needs_nodes"


def test_cordoned_node_takes_nothing_and_makes_nothing_too_large() -> None:
    cordoned = replace(node(7.92), takes_pods=False)
    answer = fit([plan()], pool(cordoned))
    assert answer.code == "waits_for_room"
    assert answer.then == ("1 of its nodes is cordoned or not ready.",)
    assert fit([plan()], pool(cordoned, node(1))).code == "starts_now"
    small = AlikeNodes(offers(1), offers(1))
    assert fit([plan(4)], pool(cordoned, small)).code == "waits_for_room"
    assert fit([plan(64)], pool(cordoned, small)).code == "never_fits"


def test_nodes_whose_taint_is_not_tolerated_count_as_none() -> None:
    tainted = replace(node(7.92), taints=(Taint(key="team", value="vision", effect="NoSchedule"),))
    answer = fit([plan()], pool(tainted, maximum=5))
    assert (answer.code, answer.headline) == ("no_nodes", "No node takes it")
    assert "the taint team=vision:NoSchedule, which Small does not tolerate" in answer.sentence
    tolerant = replace(plan(), tolerations=(Toleration(key="team", value="vision"),))
    assert fit([tolerant], pool(tainted)).code == "starts_now"
    soft = replace(node(7.92), taints=(Taint(key="team", effect="PreferNoSchedule"),))
    assert fit([plan()], pool(soft)).code == "starts_now"
    assert fit([plan(4)], pool(tainted, node(1, 4), maximum=5)).headline == "Needs 1 new node"


def test_launch_of_several_pods_equals_its_worst_pod() -> None:
    two_pools = {
        "default": LaunchPool("default", (node(7),), 3),
        "gpu": LaunchPool("gpu", (AlikeNodes(offers(8, **{CARD: 0}), offers(8, **{CARD: 1})),), 3),
    }
    head, worker = plan(), PodPlan("GPU", "gpu", size(1, **{CARD: 1}), count=2)
    assert fit([head], LaunchFacts(two_pools)).code == "starts_now"
    answer = fit([head, worker], LaunchFacts(two_pools))
    assert (answer.code, answer.headline) == ("needs_nodes", "Needs 2 new nodes")
    assert "2 new ones are started for you" in answer.sentence
    too_many = fit([head, replace(worker, count=3)], LaunchFacts(two_pools))
    assert too_many.code == "waits_for_room"
    assert "it may have 3, and this needs 3 new ones" in too_many.sentence
    assert fit([head, replace(head, pool="nowhere")], LaunchFacts(two_pools)).code == "no_nodes"


def test_equal_pods_share_what_is_free() -> None:
    assert fit([plan(count=3)], pool(node(2), node(1))).code == "starts_now"
    assert fit([plan(count=4)], pool(node(2), node(1))).code == "waits_for_room"
    partly = fit([plan(count=4)], pool(node(2), node(1), maximum=5))
    assert partly.sentence.startswith("The pool default has room for 3 of 4 pods on its 2 nodes; it may have 5")
    assert fit([plan(count=1), plan(2)], pool(node(2), node(1))).code == "starts_now"


def test_queue_comes_first_and_says_what_follows() -> None:
    place = QueuePlace(
        4, "You use 25 of 25 slots; this starts by itself when one is free. It is number 4 of yours.", "Stop one."
    )
    with_room = replace(pool(node(3)), queue=place)
    answer = fit([plan()], with_room)
    assert (answer.code, answer.headline, answer.severity) == ("queues", "Waits in the queue", "wait")
    assert answer.sentence.startswith("You use 25 of 25 slots")
    assert answer.then == ("How long that takes is not known yet.",)
    assert fit([plan()], replace(with_room, expected=("Expected to start in about 25 min.",))).then == (
        "Expected to start in about 25 min.",
    )
    full = fit([plan(2)], replace(pool(node(1), maximum=5), queue=place))
    assert full.then[1].startswith("After that: The pool default has no free place")
    assert fit([plan(64)], with_room).code == "never_fits"
    for_good = fit([plan()], replace(with_room, queue=replace(place, for_good=True)))
    assert (for_good.code, for_good.headline) == ("never_fits", "Can never start")


def test_launch_that_stands_aside_has_no_place() -> None:
    answer = fit([plan()], replace(pool(node(3)), queue=QueuePlace(0, "mara decides by hand what starts.")))
    assert (answer.code, answer.headline) == ("queues", "Waits in the queue")


def test_unknown_cluster_is_said_and_hinders_no_launch() -> None:
    answer = fit([plan()], LaunchFacts(None))
    assert (answer.code, answer.severity) == ("not_known", "wait")
    assert "You can launch it anyway" in answer.next_step
    place = QueuePlace(1, "You use 25 of 25 slots.")
    queued = fit([plan()], LaunchFacts(None, place, trouble="The cluster limits our requests"))
    assert "The cluster limits our requests, so it is not known whether there is room." in queued.then
    known = fit([plan()], replace(pool(node(3)), trouble="The cluster answers slowly", usual_start=9.0))
    assert known.then == ("The cluster answers slowly: this is what was known before.",)


def test_namespace_refusal_precedes_queue_but_never_hides_misfits() -> None:
    refused = replace(
        pool(node(3)), refusal=NamespaceRefusal("The quota “team” of the namespace has 0 of 10 pods left.")
    )
    answer = fit([plan()], refused)
    assert (answer.code, answer.sentence) == ("refused", "The quota “team” of the namespace has 0 of 10 pods left.")
    assert fit([plan()], replace(refused, queue=QueuePlace(1, "Wait."))).code == "refused"
    assert fit([plan(64)], refused).code == "never_fits"
    for_good = fit([plan()], replace(refused, refusal=NamespaceRefusal("The limit range says no.", for_good=True)))
    assert for_good.headline == "The namespace never takes it"
    assert "anyway" in answer.next_step
    assert "anyway" not in for_good.next_step


def test_a_full_queue_takes_nothing_more() -> None:
    answer = fit([plan()], replace(pool(node(3)), full="900 executions wait already."))
    assert (answer.code, answer.headline, answer.sentence) == (
        "refused",
        "Not accepted now",
        "900 executions wait already.",
    )


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


SEEN = "24 November 2026"
TAINT = Taint(key=CARD, value="present", effect="NoSchedule")


def at_zero(maximum: int = 3, cores: float = 7.92, *, taints: tuple[Taint, ...] = ()) -> LaunchPool:
    return LaunchPool("default", (), maximum, remembered=replace(node(cores, cores), taints=taints), seen=SEEN)


def test_pool_at_zero_is_judged_by_its_last_nodes() -> None:
    answer = fit([plan()], LaunchFacts({"default": at_zero()}))
    assert (answer.code, answer.headline, answer.can_start) == ("needs_nodes", "Needs 1 new node", True)
    assert answer.sentence == "The pool default has no node now; it may have 3, and one is started for you."
    assert answer.then[-1] == f"It fits, as its nodes were when last seen on {SEEN}."
    some = fit([plan(3, count=5)], LaunchFacts({"default": at_zero()}))
    assert (some.headline, some.then[-1][:14]) == ("Needs 3 new nodes", "All of it fits")
    assert some.sentence.endswith("it may have 3, and 3 are started for you.")
    more = fit([plan(3, count=7)], LaunchFacts({"default": at_zero()}))
    assert (more.code, more.can_start) == ("waits_for_room", False)
    assert more.sentence.endswith(f"and this needs 4, as its nodes were when last seen on {SEEN}.")


def test_launch_too_large_for_last_nodes_never_fits() -> None:
    large = fit([plan(64, tier="Huge")], LaunchFacts({"default": at_zero()}))
    assert (large.code, large.headline) == ("never_fits", "Can never fit")
    assert large.sentence == (
        "Huge asks for 64 cores; the largest node of the pool default offers 7.92 cores after overhead, "
        f"as its nodes were when last seen on {SEEN}."
    )
    kept = fit([plan()], LaunchFacts({"default": at_zero(taints=(TAINT,))}))
    assert (kept.code, kept.headline) == ("no_nodes", "No node takes it")
    assert kept.sentence.endswith(f"which Small does not tolerate, as its nodes were when last seen on {SEEN}.")


def test_present_nodes_or_no_future_nodes_override_remembered_ones() -> None:
    larger = replace(at_zero(cores=16), nodes=(node(1),))
    answer = fit([plan(8)], LaunchFacts({"default": larger}))
    assert (answer.code, SEEN in answer.sentence) == ("never_fits", False)
    assert fit([plan(1)], LaunchFacts({"default": at_zero(0)})).headline == "No node"
    assert fit([plan(64)], LaunchFacts({"default": at_zero(0)})).headline == "No node"


def test_no_launch_is_refused_by_what_is_only_remembered() -> None:
    assert never_fits(plan(64), {"default": at_zero()}) is None
    assert never_fits(plan(64), {}) is None
    refused = never_fits(plan(64), {"default": LaunchPool("default", (node(1),))})
    assert refused is not None and refused.code == "never_fits"


def test_a_pool_of_unknown_size_makes_no_start_certain() -> None:
    unknown, known = LaunchPool("a", (), 3), replace(at_zero(), name="b")
    alone = fit([plan(pool="a")], LaunchFacts({"a": unknown}))
    assert (alone.code, alone.can_start) == ("needs_nodes", False)
    for order in (("a", "b"), ("b", "a")):
        together = fit([plan(pool=name) for name in order], LaunchFacts({"a": unknown, "b": known}))
        assert (together.code, together.can_start) == ("needs_nodes", False)
