"""CPU contention: when a node's CPU counts as used up, who takes too much, who gets too little, and what is not said."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from grid.kube.objects import Pod
from grid.nodes.contention import (
    ROUNDS,
    Contention,
    NodeRounds,
    PodSample,
    advance,
    contention,
    for_operators,
    for_owner,
    pod_sample,
)
from tests.support import builders

CORES = 4000


def sample(key: str, used: int, requested: int = 1000, limit: int | None = None, **fields: float) -> PodSample:
    return PodSample(key, key, used, requested, limit, fields.get("at", 0.0), fields.get("waiting"))


def rounds_of(rounds: Iterable[Sequence[PodSample]], before: NodeRounds | None = None) -> NodeRounds:
    """Each round is measured 15 seconds after the one before."""
    rounds_so_far = before or NodeRounds()
    for samples in rounds:
        at = rounds_so_far.until + 15
        rounds_so_far = advance(rounds_so_far, CORES, [each._replace(measured_at=at) for each in samples])
    return rounds_so_far


def found_after(samples: Sequence[PodSample], rounds: int = ROUNDS) -> Contention | None:
    return contention(rounds_of([samples] * rounds), "n1", CORES)


GREEDY, SHORT = sample("greedy", 3000, 2000), sample("short", 950, 750)


def test_largest_overuser_and_its_victims_are_named() -> None:
    contended_node = found_after([SHORT, GREEDY, sample("idle", 10)])
    assert contended_node is not None
    assert [(pod.key, pod.role) for pod in contended_node.pods] == [
        ("greedy", "offender"),
        ("short", "victim"),
        ("idle", ""),
    ]
    assert (contended_node.used, contended_node.score, contended_node.until - contended_node.since) == (
        3960,
        1000,
        45.0,
    )


def test_contention_needs_all_rounds() -> None:
    assert found_after([GREEDY, SHORT], ROUNDS - 1) is None


def test_a_measurement_that_is_reported_again_counts_once() -> None:
    rounds = NodeRounds()
    for _ in range(10):
        rounds = advance(rounds, CORES, [each._replace(measured_at=60.0) for each in (GREEDY, SHORT)])
    assert rounds.busy == 1


def test_older_measurement_of_another_server_counts_as_repeated() -> None:
    rounds = rounds_of([[GREEDY, SHORT]] * 2)
    assert advance(rounds, CORES, [GREEDY._replace(measured_at=20.0), SHORT._replace(measured_at=20.0)]) is rounds


def test_node_with_clock_set_back_is_still_measured() -> None:
    rounds = replace(rounds_of([[GREEDY, SHORT]]), measured_at={"greedy": 9000.0, "short": 9000.0})
    assert advance(rounds, CORES, [GREEDY._replace(measured_at=20.0), SHORT._replace(measured_at=20.0)]).busy == 2


def test_measurements_without_a_time_count_for_nothing() -> None:
    assert advance(NodeRounds(), CORES, [GREEDY, SHORT]) == NodeRounds()


@pytest.mark.parametrize(
    "short",
    [
        pytest.param(SHORT._replace(limit=1000), id="at its own limit"),
        pytest.param(SHORT._replace(requested=1000), id="below its request"),
        pytest.param(SHORT._replace(requested=0), id="without a request"),
        pytest.param(SHORT._replace(group="greedy"), id="of the same execution"),
    ],
)
def test_pod_that_others_do_not_harm_is_no_victim(short: PodSample) -> None:
    assert found_after([GREEDY, short]) is None


def test_pod_with_far_smaller_share_wants_no_more() -> None:
    one_thread = sample("short", 1000, 1000)  # the kernel would give it six times as much before the other got this
    assert found_after([sample("greedy", 2900, 500), one_thread]) is None


def test_victim_stays_while_its_share_is_somewhat_smaller() -> None:
    samples = [GREEDY, SHORT._replace(used=800, requested=800)]
    contended_node = contention(rounds_of([samples] * ROUNDS, rounds_of([[GREEDY, SHORT]] * ROUNDS)), "n1", CORES)
    assert contended_node is not None
    assert found_after(samples) is None


def test_pod_without_request_only_takes_leftovers() -> None:
    leftovers = sample("leftovers", 3000, 0)
    assert found_after([leftovers, SHORT]) is None
    assert found_after([leftovers, SHORT._replace(waiting=60.0)]) is None
    waits = found_after([GREEDY, leftovers, SHORT._replace(waiting=60.0)])
    assert waits is not None
    assert [pod.key for pod in waits.offenders] == ["greedy"]


def test_pod_using_nearly_as_much_as_offender_is_neither() -> None:
    roles = {}
    for used in (1124, 1125, 1249, 1250, 1499, 1500):
        contended_node = found_after([GREEDY, SHORT, sample("other", used, 1000)])
        assert contended_node is not None
        roles[used] = next(pod.role for pod in contended_node.pods if pod.key == "other")
    assert roles == {1124: "", 1125: "victim", 1249: "victim", 1250: "", 1499: "", 1500: "offender"}


def test_victim_by_pressure_stays_until_waiting_clearly_less() -> None:
    contended = rounds_of([[GREEDY, SHORT._replace(waiting=30.0)]] * ROUNDS)
    for waiting, expected in ((20.0, True), (10.0, False)):
        samples = [GREEDY, SHORT._replace(waiting=waiting)]
        assert (contention(rounds_of([samples], contended), "n1", CORES) is not None) is expected
        assert found_after(samples) is None


def test_pressure_stall_information_decides_where_it_is_known() -> None:
    waits = found_after([GREEDY, sample("short", 1100, 1500, waiting=60.0)])
    assert waits is not None
    assert [pod.key for pod in waits.victims] == ["short"]
    assert found_after([GREEDY, SHORT._replace(waiting=3.0)]) is None


def test_a_node_stays_contended_until_it_is_clearly_calm() -> None:
    wavering = [GREEDY._replace(used=2600), SHORT]  # 89 %
    contended = rounds_of([[GREEDY, SHORT]] * ROUNDS)
    assert rounds_of([wavering] * 20).is_contended is False
    assert rounds_of([wavering] * 20, contended).is_contended
    calm = [GREEDY._replace(used=900), SHORT]
    assert rounds_of([calm, calm, wavering] * 5, contended).is_contended
    assert not rounds_of([calm] * ROUNDS, contended).is_contended


def test_victim_stays_while_a_little_below_its_request() -> None:
    contended = rounds_of([[GREEDY, SHORT]] * ROUNDS)
    lower = [GREEDY._replace(used=3100), SHORT._replace(used=700)]
    assert contention(rounds_of([lower] * ROUNDS, contended), "n1", CORES) is not None
    assert found_after(lower) is None


def test_a_node_without_cores_says_nothing() -> None:
    assert advance(rounds_of([[GREEDY, SHORT]] * ROUNDS), 0, [GREEDY]) == NodeRounds()


def test_pods_that_left_are_forgotten() -> None:
    rounds = rounds_of([[GREEDY, SHORT], [GREEDY]])
    assert set(rounds.uses) == set(rounds.measured_at) == {"greedy"}


def test_the_largest_limit_of_the_containers_counts() -> None:
    containers = [
        {"name": "run", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
        {"name": "executor", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "what"}}},
    ]
    pod = builders.decode(builders.pod("p", containers=containers), Pod)
    assert pod_sample(pod, 5, 7.0, group="e1", waiting=None) == PodSample(pod.metadata.key, "e1", 5, 1100, 2000, 7.0)


def test_pod_level_limit_replaces_container_limits() -> None:
    body = builders.pod("p", containers=[{"name": "run", "resources": {"limits": {"cpu": "8"}}}])
    body["spec"]["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}
    assert pod_sample(builders.decode(body, Pod), 5, 7.0, group="e1", waiting=None).limit == 3000


def test_contention_names_pods_to_operators_and_not_owners() -> None:
    contended_node = found_after([GREEDY, SHORT])
    assert contended_node is not None
    assert for_operators(contended_node, lambda pod: pod.key.title()) == (
        "Its pods use 3.95 of 4 cores. Greedy uses 3 cores, 1 more than it requested. Short may get less than it could use. "
        "To prevent this, set a CPU limit on the tier of pods above their request, or a larger request on the tier of the others."
    )
    several = found_after([GREEDY, GREEDY._replace(key="second"), SHORT, SHORT._replace(key="other")])
    assert several is not None
    words = for_operators(several, lambda pod: pod.key.title())
    assert "Second also uses more than it requested. Other and Short may get less than they could use." in words
    words = for_owner(contended_node.victims[0], "workspace")
    assert words == (
        "Other pods on its node use more CPU than they requested, so it may run slower: it uses 0.95 of the 4 cores that it may "
        "use, and requested 0.75. Stop it and resume it on a tier with a larger request to be sure of more."
    )
    assert "greedy" not in words
    words = for_owner(contended_node.victims[0], "cluster")
    assert "slower: one of its pods uses 0.95" in words and "0.75. Launch it again on a tier" in words


ROUNDS_TRIED = ROUNDS + 1
PODS = st.lists(
    st.tuples(
        st.sampled_from([0, 500, 1000, 2000]),
        st.none() | st.integers(min_value=1, max_value=4000),
        st.sampled_from([None, 0.0, 80.0]),
        st.lists(st.integers(min_value=-5, max_value=4000), min_size=ROUNDS_TRIED, max_size=ROUNDS_TRIED),
    ),
    min_size=1,
    max_size=4,
)


def played(pods: Sequence[tuple[int, int | None, float | None, list[int]]], cores: int) -> Iterable[Contention | None]:
    rounds = NodeRounds()
    for place in range(ROUNDS_TRIED):
        samples = [
            PodSample(f"p{number}", f"p{number}", uses[place], requested, limit, 15.0 * (place + 1), waiting)
            for number, (requested, limit, waiting, uses) in enumerate(pods)
        ]
        rounds = advance(rounds, cores, samples)
        assert all(len(uses) <= ROUNDS for uses in rounds.uses.values())
        yield contention(rounds, "n1", cores)


@settings(max_examples=60)
@given(pods=PODS, cores=st.integers(min_value=0, max_value=8000))
def test_whatever_is_measured_nobody_is_accused_below_the_request(
    pods: list[tuple[int, int | None, float | None, list[int]]], cores: int
) -> None:
    for contended_node in filter(None, played(pods, cores)):
        assert contended_node.offenders
        assert contended_node.victims
        assert all(pod.used > pod.requested > 0 for pod in contended_node.offenders)
        assert all(pod.requested > 0 for pod in contended_node.victims)


@settings(max_examples=30)
@given(pods=PODS)
def test_there_is_no_victim_on_a_node_with_room(pods: list[tuple[int, int | None, float | None, list[int]]]) -> None:
    assert not any(played(pods, 100_000))
