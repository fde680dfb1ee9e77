"""What waits for room, for its image and for its program: against a simulation of every pod and node; what is not known is not claimed."""

from collections.abc import Mapping
from math import inf

import pytest
from hypothesis import given, strategies as st

from grid.queue.quota import QuotaSnapshot
from grid.queue.wait_estimate.capacity import Occupant, RoomFacts, RoomSeeker, room_waits
from grid.queue.wait_estimate.estimate import estimates
from grid.queue.wait_estimate.inputs import Key, SurvivalCurve, WaitEstimate, WaitFacts, Work, placed
from grid.queue.wait_estimate.observing import Observed, OnNode
from grid.queue.wait_estimate.simulation import Holder

KEY: Key = ("in", "workspace", "default", "lab")
LIFE: Key = ("kind", "workspace")
UNPULLED, WHOLE = placed(KEY, with_pull=False), placed(KEY, with_pull=True)
SIZE = 2_000_000_000
SLOW = 1 / 50_000_000  # seconds for each byte at 50 MB/s
NODES = ("a", "b", "c")
LAST = 60  # seconds: all that ends has ended by then
amounts = st.fixed_dictionaries({"cpu": st.integers(1, 4), "memory": st.integers(1, 4)})
lives = st.dictionaries(st.sampled_from([f"r{number}" for number in range(6)]), st.integers(0, 12))


def always(seconds: float) -> SurvivalCurve:
    return SurvivalCurve([(seconds, True)] * 8)


def work(id: str, *, age: float = 0.0, starting: bool = False) -> Work:
    return Work(id, Holder(1, ("small",), 1), (LIFE,), (KEY,), age, starting, "default")


def estimate(
    observed: Observed,
    *,
    starts: Mapping[Key, SurvivalCurve] | None = None,
    paces: Mapping[str, SurvivalCurve] | None = None,
    sizes: Mapping[str, int] | None = None,
    lives: Mapping[Key, SurvivalCurve] | None = None,
    others: tuple[Work, ...] = (),
    age: float = 0.0,
) -> WaitEstimate:
    works = {other.id: other for other in (work("w", age=age, starting=True), *others)}
    known = {KEY: always(90.0), UNPULLED: always(12.0), WHOLE: always(30.0)} if starts is None else starts
    snapshot = QuotaSnapshot((), (), 9, {})
    return estimates(WaitFacts(snapshot, works, lives or {}, known, paces or {}, sizes or {}, observed))["w"]


def on_node(seconds: float, **more: float | bool | None) -> Observed:
    return Observed(on_node={"w": OnNode("lab:1", seconds, **more)})  # type: ignore[arg-type]


PULLED = "Its image of 1.9 GiB is pulled, usually in about 40 seconds here; launches like this one then start within 12 seconds."


@pytest.mark.parametrize(
    ("observed", "expected", "why"),
    [
        (on_node(5.0, has_image=False, size=SIZE), 40 + 12 - 5, PULLED),
        (on_node(25.0, pulling=20.0, has_image=False, size=SIZE), 40 - 20 + 12 - 5, PULLED),
        (on_node(3.0, has_image=True, size=SIZE), 9, "Launches that have their image usually start within 12 seconds."),
        *(
            (observed, 25, "Launches like this one that have a node usually start within 30 seconds.")
            for observed in (on_node(5.0, has_image=None, size=SIZE), on_node(5.0, has_image=False), on_node(5.0))
        ),
        (
            on_node(90.0, pulling=60.0, has_image=False, size=SIZE),
            None,
            "Not known: pulling its image takes longer than nearly all pulls here took.",
        ),
        (
            on_node(50.0, has_image=True),
            None,
            "Not known: starting takes longer than nearly all launches like this one took.",
        ),
    ],
    ids=["pull", "pull under way", "there", "not known", "unknown size", "no facts", "long pull", "long start"],
)
def test_start_on_a_node_depends_on_its_image(observed: Observed, expected: float | None, why: str) -> None:
    estimated = estimate(observed, paces={"default": always(SLOW)})
    assert (estimated.expected, estimated.why) == (expected, why)


def test_unknown_size_is_that_of_the_last_pull() -> None:
    estimated = estimate(on_node(0.0, has_image=False), paces={"default": always(SLOW)}, sizes={"lab:1": SIZE})
    assert estimated.expected == 52


def test_whole_starts_are_used_without_pace_or_node_starts() -> None:
    estimated = estimate(on_node(5.0, has_image=False, size=SIZE), starts={KEY: always(90.0)}, age=8.0)
    assert estimated.expected == 82


def crowded(*occupants: Occupant, before: int = 0) -> Observed:
    line = [
        RoomSeeker(f"b{number}", {"cpu": 1}, frozenset({"a"}), (0, float(number), ""), "first")
        for number in range(before)
    ]
    own = RoomSeeker("w", {"cpu": 1}, frozenset({"a"}), (0, 99.0, ""), "first")
    return Observed(room=RoomFacts([own, *line], occupants, {"a": {"cpu": 0}}))


def test_room_is_free_when_what_holds_it_usually_ends() -> None:
    estimated = estimate(
        crowded(Occupant("r", "a", {"cpu": 1})), lives={LIFE: always(600.0)}, others=(work("r", age=100.0),)
    )
    assert estimated.expected == 500 + 30
    assert estimated.why == (
        "Room for it is usually free after another 8 minutes; launches like this one then start within 30 seconds."
    )


def test_earlier_pods_take_the_room_first() -> None:
    estimated = estimate(
        crowded(Occupant("r", "a", {"cpu": 1}), before=1),
        lives={LIFE: always(600.0)},
        others=(work("r", age=100.0), work("b0", starting=True)),
    )
    assert estimated.expected == 500 + 600 + 30
    assert estimated.why.startswith("1 pod before it. Room for it is usually free after another 18 minutes;")


@pytest.mark.parametrize(
    ("occupant", "age", "lives", "why"),
    [
        (
            Occupant("r", "a", {"cpu": 1}),
            0.0,
            {},
            "Not known yet: too few executions like those that hold the nodes have ended.",
        ),
        (
            Occupant("r", "a", {"cpu": 1}),
            50.0,
            {LIFE: SurvivalCurve([(40.0, True)] * 6)},
            "Not known: what holds the nodes runs longer than nearly all executions like it did.",
        ),
        (
            Occupant("", "a", {"cpu": 1}, ends_within=inf),
            0.0,
            {LIFE: always(600.0)},
            "Not known: the pods on the nodes that it may use are no executions, and nothing tells when they end.",
        ),
    ],
)
def test_unknown_facts_of_the_nodes_are_said(
    occupant: Occupant, age: float, lives: Mapping[Key, SurvivalCurve], why: str
) -> None:
    estimated = estimate(crowded(occupant), lives=lives, others=(work("r", age=age),))
    assert (estimated.expected, estimated.why) == (None, why)


@st.composite
def rooms(draw: st.DrawFn) -> RoomFacts:
    occupants = draw(
        st.lists(
            st.builds(
                Occupant,
                st.sampled_from(["", *(f"r{number}" for number in range(6))]),
                st.sampled_from(NODES),
                amounts,
                st.one_of(st.just(inf), st.integers(0, 12).map(float)),
            ),
            max_size=8,
        )
    )
    count = draw(st.integers(1, 6))
    seekers = [
        RoomSeeker(
            draw(st.sampled_from(["w0", "w1", "w2", "w3"])),
            draw(amounts),
            draw(st.frozensets(st.sampled_from(NODES), min_size=1)),
            (draw(st.integers(-1, 1)), float(draw(st.integers(0, 3))), f"pod-{number}"),
            draw(st.sampled_from(["", "first", "worker"])),
        )
        for number in range(count)
    ]
    free = {node: {name: draw(st.integers(0, 4)) for name in ("cpu", "memory")} for node in NODES}
    return RoomFacts(seekers, occupants, free)


def by_the_second(facts: RoomFacts, rest: dict[str, int], holds: dict[str, int]) -> dict[str, float]:
    """The same in the simplest way: in each second, end what ends, then go through the whole line, and through all nodes for each."""
    there = []
    for occupant in facts.occupants:
        usual = float(rest.get(occupant.execution, inf)) if occupant.execution else inf
        there.append((min(usual, occupant.ends_within), occupant.node, occupant.requests))
    line = sorted(facts.seekers, key=lambda seeker: seeker.rank)
    size = {node: dict(free) for node, free in facts.free.items()}
    for _, node, requests in there:
        for name, amount in requests.items():
            size[node][name] += amount
    placed: dict[str, dict[str, float]] = {}
    for second in range(LAST):
        there = [held for held in there if held[0] > second]
        for seeker in list(line):
            rooms = []
            for node in sorted(seeker.nodes):
                left = {
                    name: size[node][name] - sum(asked[name] for _, other, asked in there if other == node)
                    for name in ("cpu", "memory")
                }
                if all(seeker.requests[name] <= left[name] for name in left):
                    rooms.append((left["cpu"], left["memory"], node))
            if rooms:
                line.remove(seeker)
                there.append((second + float(holds.get(seeker.execution, inf)), max(rooms)[2], seeker.requests))
                parts = placed.setdefault(seeker.execution, {})
                parts[seeker.part] = min(parts.get(seeker.part, inf), float(second))
    needed: dict[str, set[str]] = {}
    for seeker in facts.seekers:
        if seeker.part:
            needed.setdefault(seeker.execution, set()).add(seeker.part)
    return {
        id: max(placed[id][part] for part in parts)
        for id, parts in needed.items()
        if parts <= placed.get(id, {}).keys()
    }


@given(rooms(), lives, st.dictionaries(st.sampled_from(["w0", "w1", "w2", "w3"]), st.integers(1, 6)))
def test_waits_equal_those_of_a_scheduler_by_the_second(
    facts: RoomFacts, rest: dict[str, int], holds: dict[str, int]
) -> None:
    waits = room_waits(
        facts,
        {id: float(seconds) for id, seconds in rest.items()},
        {id: float(seconds) for id, seconds in holds.items()},
    )
    assert waits == by_the_second(facts, rest, holds)
