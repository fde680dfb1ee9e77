"""Admission keeps its promises for any queue: caps hold, order holds, nobody starves, nothing startable is left waiting."""

from collections import Counter
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from grid.launch.queue import Waiting, lines
from grid.launch.quota import Allowance, Holding, Snapshot, admit
from tests.launch.conftest import NOW

TIERS = ("small", "large", "gpu")


def waiting(id: str, user: int = 1, tier: str = "small", *, slots: int = 1, after: float = 0) -> Waiting:
    return Waiting(id, user, tier, slots, NOW + timedelta(seconds=after))


def messages(snapshot: Snapshot) -> list[str]:
    return [refused.message for refused in admit(snapshot).refused.values()]


@st.composite
def snapshots(draw: st.DrawFn, most_slots: int = 4) -> Snapshot:
    queued = draw(
        st.lists(
            st.tuples(st.integers(1, 4), st.sampled_from(TIERS), st.integers(1, most_slots), st.integers(0, 20)),
            max_size=25,
        )
    )
    held = draw(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(TIERS), st.integers(1, 3)), max_size=6))
    served = draw(st.dictionaries(st.tuples(st.integers(1, 4), st.sampled_from(TIERS)), st.integers(0, 9), max_size=8))
    return Snapshot(
        waiting=tuple(
            waiting(f"e{place:02}", user, tier, slots=slots, after=after)
            for place, (user, tier, slots, after) in enumerate(queued)
        ),
        holding=tuple(Holding(user, tier, 1, slots) for user, tier, slots in held),
        slots_per_user=draw(st.integers(0, 6)),
        tier_maximum=draw(st.dictionaries(st.sampled_from(TIERS), st.integers(1, 4), max_size=3)),
        last_served={key: NOW - timedelta(hours=hours) for key, hours in served.items()},
    )


@given(snapshots())
def test_everybody_is_either_admitted_once_or_told_why_not(snapshot: Snapshot) -> None:
    decisions = admit(snapshot)
    everybody = sorted(one.execution_id for one in snapshot.waiting)
    assert sorted([*decisions.admitted, *decisions.refused]) == everybody
    assert all(refused.message.endswith(".") for refused in decisions.refused.values())


@given(snapshots())
def test_no_cap_is_exceeded_by_an_admission(snapshot: Snapshot) -> None:
    by_id = {one.execution_id: one for one in snapshot.waiting}
    slots: Counter[int] = Counter()
    executions: Counter[str] = Counter()
    for held in snapshot.holding:
        slots[held.user] += held.slots
        executions[held.tier] += held.executions
    for id in admit(snapshot).admitted:
        one = by_id[id]
        slots[one.user] += one.slots
        executions[one.tier] += 1
        assert slots[one.user] <= snapshot.slots_per_user
        assert executions[one.tier] <= snapshot.tier_maximum.get(one.tier, 10**9)


@given(snapshots())
def test_each_user_is_served_first_in_first_out_on_each_tier(snapshot: Snapshot) -> None:
    admitted = admit(snapshot).admitted
    for line in lines(snapshot.waiting).values():
        for tier in TIERS:
            fitting = [one.execution_id for one in line if one.tier == tier and one.slots <= snapshot.slots_per_user]
            started = [id for id in admitted if id in fitting]
            assert started == fitting[: len(started)]


@given(snapshots(most_slots=1))
def test_whatever_may_start_does_start(snapshot: Snapshot) -> None:
    """With a rest of both allowances nobody is left behind; so without tier limits, admissions = min(free, waiting)."""
    decisions = admit(snapshot)
    started = [one for one in snapshot.waiting if one.execution_id in decisions.admitted]
    slots = Counter(one.user for one in started)
    executions = Counter(one.tier for one in started)
    for held in snapshot.holding:
        slots[held.user] += held.slots
        executions[held.tier] += held.executions
    for one in snapshot.waiting:
        if one.execution_id in decisions.refused:
            user_is_full = slots[one.user] >= snapshot.slots_per_user
            tier_is_full = one.tier in snapshot.tier_maximum and executions[one.tier] >= snapshot.tier_maximum[one.tier]
            assert user_is_full or tier_is_full


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_one_users_admissions_are_what_is_free_or_what_waits(most: int, held: int, queued: int) -> None:
    snapshot = Snapshot(
        waiting=tuple(waiting(f"e{place:02}", after=place) for place in range(queued)),
        holding=(Holding(1, "small", held, held),),
        slots_per_user=most,
    )
    assert len(admit(snapshot).admitted) == min(max(most - held, 0), queued)


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(1, 12))
def test_nobody_starves_behind_a_user_with_many_launches(users: int, each: int) -> None:
    """One place on the tier becomes free at a time; after as many turns as users, each has had one."""
    left = [waiting(f"u{user}-{n:02}", user, after=user * 100 + n) for user in range(users) for n in range(each)]
    served: dict[tuple[int, str], object] = {}
    for turn in range(users):
        snapshot = Snapshot(
            waiting=tuple(left),
            holding=(),
            slots_per_user=25,
            tier_maximum={"small": 1},
            last_served=served,  # type: ignore[arg-type]
        )
        (id,) = admit(snapshot).admitted
        one = next(one for one in left if one.execution_id == id)
        assert (one.user, "small") not in served
        served[one.user, "small"] = NOW + timedelta(hours=1, seconds=turn)
        left.remove(one)


def test_users_take_turns_within_one_admission() -> None:
    many = [waiting(f"a{n}", 1, after=n) for n in range(3)] + [waiting(f"b{n}", 2, after=10 + n) for n in range(3)]
    snapshot = Snapshot(waiting=tuple(many), holding=(), slots_per_user=25, tier_maximum={"small": 4})
    assert admit(snapshot).admitted == ("a0", "b0", "a1", "b1")


def test_what_waits_for_a_full_tier_lets_other_tiers_pass() -> None:
    snapshot = Snapshot(
        waiting=(waiting("first", tier="gpu"), waiting("second", tier="small", after=1)),
        holding=(Holding(2, "gpu", 1, 1),),
        slots_per_user=25,
        tier_maximum={"gpu": 1},
        tier_names={"gpu": "GPU"},
    )
    assert admit(snapshot).admitted == ("second",)
    assert messages(snapshot) == [
        "The tier GPU runs 1 of at most 1 executions at once; this starts by itself when one of them ends. Position 1."
    ]


def test_a_large_one_at_the_head_is_not_passed_by_small_ones_of_its_user() -> None:
    snapshot = Snapshot(
        waiting=(waiting("cluster", slots=4), waiting("tiny", after=1)),
        holding=(Holding(1, "small", 2, 2),),
        slots_per_user=5,
    )
    decisions = admit(snapshot)
    assert decisions.admitted == ()
    assert "when 4 are free. Position 1." in decisions.refused["cluster"].message


def test_what_can_never_fit_says_so_and_blocks_nobody() -> None:
    snapshot = Snapshot(waiting=(waiting("huge", slots=30), waiting("tiny", after=1)), holding=(), slots_per_user=25)
    decisions = admit(snapshot)
    assert decisions.admitted == ("tiny",)
    assert decisions.refused["huge"].code == "larger_than_limit"
    assert "This takes 30 slots, and one user may hold 25." in decisions.refused["huge"].message


def test_the_sentence_counts_slots_and_places_in_ones_own_line() -> None:
    queue = tuple(waiting(f"e{n}", after=n) for n in range(3))
    snapshot = Snapshot(waiting=queue, holding=(Holding(1, "small", 25, 25),), slots_per_user=25)
    assert messages(snapshot)[2] == "You use 25 of 25 slots; this starts by itself when one is free. Position 3."


def test_a_limit_of_zero_says_that_launching_is_switched_off() -> None:
    snapshot = Snapshot(waiting=(waiting("e"),), holding=(), slots_per_user=0)
    assert messages(snapshot) == [
        "Launching is switched off: your admin has set the slots per user to 0. This waits until that changes."
    ]


def test_a_limit_lowered_below_what_is_held_admits_nothing() -> None:
    assert not Allowance(most=3, held=5).covers(1)
    assert Allowance(most=None, held=10**9).covers(1)
    assert Allowance(most=3, held=1).plus(1).covers(1)
