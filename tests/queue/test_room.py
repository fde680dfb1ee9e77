"""Waits for room on nodes, against a simulation that looks at every pod and every node in every second."""

from math import inf

from hypothesis import given, strategies as st

from grid.queue.wait_estimate.capacity import Occupant, RoomFacts, RoomSeeker, room_waits

NODES = ("a", "b", "c")
LAST = 60  # seconds: all that ends has ended by then

amounts = st.fixed_dictionaries({"cpu": st.integers(1, 4), "memory": st.integers(1, 4)})
lives = st.dictionaries(st.sampled_from([f"r{number}" for number in range(6)]), st.integers(0, 12))


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
