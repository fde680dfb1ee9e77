"""Admission keeps its promises for any queue: caps hold, order holds, nobody starves, nothing startable is left waiting."""

from dataclasses import replace
from datetime import timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings, strategies as st

from grid.core.reasons import Reader
from grid.queue.quota import Holding, Part, QueuedUnit, QuotaSnapshot, admit, lines
from tests.queue.queues import Held, moved_snapshots, pair, snapshots, unit_of, waiting
from tests.support.shop import NOW

OWNER, OTHER = Reader("ada", is_owner=True), Reader("ada", is_owner=False)


def messages(snapshot: QuotaSnapshot) -> list[str]:
    return [refused.words(OWNER) for refused in admit(snapshot).refused.values()]


@given(moved_snapshots())
def test_everybody_is_either_admitted_once_or_told_why_not(snapshot: QuotaSnapshot) -> None:
    decisions = admit(snapshot)
    everybody = sorted(unit.execution_id for unit in snapshot.waiting)
    assert sorted([*decisions.admitted, *decisions.refused]) == everybody
    assert all(refused.words(OWNER).endswith(".") for refused in decisions.refused.values())


@given(moved_snapshots())
def test_no_cap_is_exceeded_by_an_admission(snapshot: QuotaSnapshot) -> None:
    by_id = {unit.execution_id: unit for unit in snapshot.waiting}
    held = Held(snapshot)
    for id in admit(snapshot).admitted:
        assert held.has_slots_for(by_id[id])
        assert not held.full_for(by_id[id])
        held.take(by_id[id])


@given(snapshots())
def test_user_is_served_first_in_first_out_per_tier(snapshot: QuotaSnapshot) -> None:
    """Of those that could ever start: what does not fit into the limits at all is passed by everybody."""
    decisions = admit(snapshot)
    nothing_held = Held(replace(snapshot, holding=()))
    order = {id: place for place, id in enumerate(decisions.admitted)}
    for line in lines(snapshot.waiting).values():
        possible = [unit for unit in line if nothing_held.has_slots_for(unit) and not nothing_held.full_for(unit)]
        for earlier, later in combinations(possible, 2):
            if later.execution_id not in order:
                continue
            if earlier.execution_id in order:
                assert order[earlier.execution_id] < order[later.execution_id]
            else:
                assert decisions.refused[earlier.execution_id].code == "over_tier_maximum"
                assert not set(earlier.tiers) <= set(later.tiers)


@given(snapshots())
def test_whatever_may_start_does_start(snapshot: QuotaSnapshot) -> None:
    """Each that is left behind lacks slots or places, or stands behind one that lacks the same: of its user for slots, of
    anybody for several places of a tier."""
    decisions = admit(snapshot)
    held, alone = Held(snapshot), Held(replace(snapshot, holding=()))
    for unit in snapshot.waiting:
        if unit.execution_id in decisions.admitted:
            held.take(unit)
    kept = {
        tier
        for unit in snapshot.waiting
        if unit.execution_id in decisions.refused
        for tier in held.full_for(unit) - alone.full_for(unit)
        if unit.tiers.count(tier) > 1
    }
    for line in lines(snapshot.waiting).values():
        lacks_slots = False
        for unit in line:
            if unit.execution_id in decisions.refused:
                if (snapshot.slots_per_user and not alone.has_slots_for(unit)) or alone.full_for(unit):
                    continue  # it never may, and is in nobody's way
                lacks_slots = lacks_slots or not held.has_slots_for(unit)
                assert lacks_slots or held.full_for(unit) or kept & set(unit.tiers)


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(1, 12))
def test_nobody_starves_behind_a_user_with_many_launches(users: int, each: int) -> None:
    """One place on the tier becomes free at a time; after as many turns as users, each has had one."""
    left = [waiting(f"u{user}-{n:02}", user, after=user * 100 + n) for user in range(users) for n in range(each)]
    served: dict[tuple[int, str], object] = {}
    for turn in range(users):
        snapshot = QuotaSnapshot(
            waiting=tuple(left),
            holding=(),
            slots_per_user=25,
            tier_maximum={"small": 1},
            last_served=served,  # type: ignore[arg-type]
        )
        (id,) = admit(snapshot).admitted
        unit = next(unit for unit in left if unit.execution_id == id)
        assert (unit.user, "small") not in served
        served[unit.user, "small"] = NOW + timedelta(hours=1, seconds=turn)
        left.remove(unit)


def test_users_take_turns_within_one_admission() -> None:
    many = [waiting(f"a{n}", 1, after=n) for n in range(3)] + [waiting(f"b{n}", 2, after=10 + n) for n in range(3)]
    snapshot = QuotaSnapshot(waiting=tuple(many), holding=(), slots_per_user=25, tier_maximum={"small": 4})
    assert admit(snapshot).admitted == ("a0", "b0", "a1", "b1")


def test_execution_waiting_for_full_tier_lets_other_tiers_pass() -> None:
    snapshot = QuotaSnapshot(
        waiting=(waiting("first", tier="gpu"), waiting("second", tier="small", after=1)),
        holding=(Holding(2, "gpu", 1, 1),),
        slots_per_user=25,
        tier_maximum={"gpu": 1},
        tier_names={"gpu": "GPU"},
    )
    assert admit(snapshot).admitted == ("second",)
    assert messages(snapshot) == [
        "The tier GPU runs 1 of at most 1 executions at once; this starts by itself when one of them ends. It is number 1 for this tier."
    ]


MINE, CLUSTER = waiting("e"), unit_of(1, Part("e", "cluster", ("small", "large"), 11))
SWITCHED_OFF = "Launching is switched off: your admin has set the slots per user to 0. This waits until that changes."
SMALLER = " Stop it and launch a smaller one, or ask your admin for more slots."
FEWER = " Give the cluster fewer workers, or ask your admin for more slots."
BOTH = "This takes 26 slots (1 for the workspace and 25 for the cluster), and one user may hold 25."
USES = "{} 2 of 2 slots; this starts by itself when one is free. It is number 2 of yours."


@pytest.mark.parametrize(
    ("queue", "limit", "to_owner", "to_others"),
    [
        (
            (waiting("first", after=-1), MINE),
            2,
            USES.format("You use"),
            USES.format("ada uses").replace("yours", "theirs"),
        ),
        ((MINE,), 0, SWITCHED_OFF, SWITCHED_OFF),
        ((waiting("e", slots=2),), 1, "This takes 2 slots, and one user may hold 1." + SMALLER, None),
        ((waiting("e", slots=3),), 2, "This takes 3 slots, and one user may hold 2." + SMALLER, None),
        ((pair("e", slots=25),), 25, BOTH + FEWER, None),
        ((CLUSTER,), 10, "This takes 11 slots, and one user may hold 10." + FEWER, None),
    ],
    ids=["no free slot", "switched off", "above 1", "above 2", "a pair", "a cluster"],
)
def test_refusal_is_worded_for_its_owner_and_for_others(
    queue: tuple[QueuedUnit, ...], limit: int, to_owner: str, to_others: str | None
) -> None:
    """What is larger than the limit is for its owner to change, so others read nothing of that."""
    refused = admit(QuotaSnapshot(queue, (Holding(1, "small", limit, limit),), slots_per_user=limit)).refused["e"]
    fact = to_owner.removesuffix(SMALLER).removesuffix(FEWER)
    assert (refused.words(OWNER), refused.words(OTHER)) == (to_owner, to_others or fact)


def test_place_is_not_kept_for_a_never_fitting_pair() -> None:
    queue = (pair("w", 1, cluster_tiers=("small",)), waiting("other", 2, after=1))
    assert admit(QuotaSnapshot(queue, (), slots_per_user=25, tier_maximum={"small": 1})).admitted == ("other",)


def test_full_tier_is_given_first_to_longest_unserved_user() -> None:
    queue = (
        waiting("gpu-lately", 1, "gpu"),
        waiting("gpu-long-ago", 2, "gpu", after=1),
        waiting("gpu-never", 3, "gpu", after=2),
        waiting("gpu-never-second", 3, "gpu", after=3),
        waiting("large", 4, "large", after=4),
    )
    snapshot = QuotaSnapshot(
        waiting=queue,
        holding=(Holding(9, "gpu", 1, 1), Holding(9, "large", 1, 1)),
        slots_per_user=25,
        tier_maximum={"gpu": 1, "large": 1},
        last_served={(1, "gpu"): NOW, (2, "gpu"): NOW - timedelta(days=1), (3, "large"): NOW},
    )
    refused = admit(snapshot).refused
    positions = {id: why.position for id, why in refused.items()}
    assert positions == {"gpu-never": 1, "gpu-long-ago": 2, "gpu-lately": 3, "gpu-never-second": 4, "large": 1}
    assert refused["gpu-lately"].words(OWNER).endswith(" It is number 3 for this tier.")


def test_pair_waits_together_and_says_slots_of_both() -> None:
    snapshot = QuotaSnapshot(
        waiting=(pair("w"), waiting("tiny", after=1)), holding=(Holding(1, "small", 21, 21),), slots_per_user=25
    )
    decisions = admit(snapshot)
    assert decisions.admitted == ()
    assert decisions.refused["w"].words(OWNER) == (
        "You use 21 of 25 slots; this starts by itself when 5 are free (1 for the workspace and 4 for the cluster). "
        "It is number 1 of yours."
    )
    assert decisions.refused["tiny"].position == 2


def test_pair_on_a_single_tier_takes_two_places() -> None:
    both = QuotaSnapshot((pair("w", cluster_tiers=("small",)),), (), slots_per_user=25, tier_maximum={"small": 2})
    assert admit(both).admitted == ("w",)
    one_is_taken = replace(both, holding=(Holding(2, "small", 1, 1),))
    (message,) = messages(one_is_taken)
    assert message == (
        "The tier small runs 1 of at most 2 executions at once, and this takes 2 places "
        "(one for the workspace and one for the cluster); it starts by itself when enough of them end. It is number 1 for this tier."
    )
    (never,) = messages(replace(both, tier_maximum={"small": 1}))
    assert never.endswith("which runs at most 1 executions at once. Stop it and launch it with other tiers.")


def test_execution_waiting_for_two_places_keeps_its_turn() -> None:
    queue = (pair("w", cluster_tiers=("small",)), waiting("later", after=1), waiting("else", tier="gpu", after=2))
    snapshot = QuotaSnapshot(queue, (Holding(2, "small", 1, 1),), slots_per_user=25, tier_maximum={"small": 2})
    decisions = admit(snapshot)
    assert decisions.admitted == ("else",)
    assert {id: refused.position for id, refused in decisions.refused.items()} == {"w": 1, "later": 2}


def test_first_in_turn_takes_place_before_it_is_kept() -> None:
    queue = (pair("w", 1, cluster_tiers=("small",)), waiting("other", 2, after=1))
    snapshot = QuotaSnapshot(
        queue, (Holding(3, "small", 1, 1),), 25, {"small": 2}, last_served={(1, "small"): NOW - timedelta(hours=1)}
    )
    assert admit(snapshot).admitted == ("other",)
    assert admit(replace(snapshot, last_served={(2, "small"): NOW})).admitted == ()


def cluster(id: str, user: int) -> QueuedUnit:
    return unit_of(user, Part(id, "cluster", ("small", "gpu"), 3))


@pytest.mark.parametrize(
    ("full", "hours"),
    [
        ({"gpu": 1}, {(1, "gpu"): 1, (2, "small"): 0}),
        ({"small": 1, "gpu": 1}, {(1, "small"): 10, (1, "gpu"): 1, (2, "small"): 5, (2, "gpu"): 5}),
    ],
    ids=["only full tiers count", "the latest of several counts"],
)
def test_user_served_last_on_any_full_tier_goes_behind(full: dict[str, int], hours: dict[tuple[int, str], int]) -> None:
    served = {key: NOW - timedelta(hours=ago) for key, ago in hours.items()}
    units = (cluster("a", 1), cluster("b", 2))
    snapshot = QuotaSnapshot(waiting=units, holding=(), slots_per_user=25, tier_maximum=full, last_served=served)
    assert admit(snapshot).admitted == ("b",)
