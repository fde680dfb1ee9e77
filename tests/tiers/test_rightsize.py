"""Which tier would have done for the last runs, and which one has enough memory after one ran out of it; against brute force."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from grid.tiers.rightsize import PastRun, SizedTier, larger_tier, smaller_tier

GIB = 2**30


def tier(id: str, cores: int, gibibytes: int, price: str = "0", **more: Any) -> SizedTier:
    values = {"gpus": 0, "gpu_resource": "", "memory_limit": gibibytes * GIB, **more}
    return SizedTier(id, id.title(), cores * 1000, gibibytes * GIB, price=Decimal(price), **values)


SMALL, MEDIUM, LARGE = tier("small", 1, 4, "0.05"), tier("medium", 2, 8, "0.15"), tier("large", 4, 16, "0.35")
OFFERED = (LARGE, SMALL, MEDIUM)


def run(gibibytes: float = 3.0, cores: float = 0.7, *, on: SizedTier = LARGE, **more: Any) -> PastRun:
    return PastRun(on.cpu, int(gibibytes * GIB), int(cores * 1000), **more)


def test_oversized_runs_are_advised_with_savings() -> None:
    found = smaller_tier([run(), run(2.0), run(1.0, 0.2)], LARGE, OFFERED)
    assert found is not None
    assert (found.tier, found.saves, found.runs) == (SMALL, Decimal("0.30"), 3)
    assert (found.memory_peak, found.cpu_peak) == (3 * GIB, 700)


def test_the_margin_counts() -> None:
    found = smaller_tier([run(3.2)] * 3, LARGE, OFFERED)  # 4.2 GiB with the margin
    assert found is not None
    assert found.tier == MEDIUM


def test_two_runs_are_too_few_and_last_five_count() -> None:
    assert smaller_tier([run()] * 2, LARGE, OFFERED) is None
    found = smaller_tier([*[run()] * 5, run(15.0)], LARGE, OFFERED)
    assert found is not None
    assert found.runs == 5


def test_runs_out_of_memory_are_not_advised_to_shrink() -> None:
    assert smaller_tier([run(), run(), run(ran_out_of_memory=True)], LARGE, OFFERED) is None


def test_run_throttled_at_cpu_limit_keeps_its_cores() -> None:
    held_back = run(1.0, 1.9, on=MEDIUM)
    found = smaller_tier([held_back] * 3, LARGE, OFFERED)
    assert found is not None
    assert found.tier == MEDIUM
    assert smaller_tier([held_back] * 3, MEDIUM, OFFERED) is None


def test_gpu_number_stays_because_its_use_is_unknown() -> None:
    with_gpu = tier("gpu", 4, 16, "1", gpus=1, gpu_resource="nvidia.com/gpu")
    less = tier("gpu-small", 2, 8, "0.8", gpus=1, gpu_resource="nvidia.com/gpu")
    assert smaller_tier([run()] * 3, with_gpu, OFFERED) is None
    found = smaller_tier([run()] * 3, with_gpu, (*OFFERED, less))
    assert found is not None
    assert found.tier == less


def test_a_smaller_tier_that_costs_more_is_not_told() -> None:
    assert smaller_tier([run()] * 3, LARGE, [tier("odd", 1, 4, "9")]) is None


def test_memory_shortage_offers_larger_tier_with_same_cores() -> None:
    assert larger_tier(1000, 4 * GIB, (0, ""), OFFERED) == MEDIUM
    narrow = tier("narrow", 1, 12, "0.10")
    assert larger_tier(2000, 8 * GIB, (0, ""), [narrow, *OFFERED]) == LARGE
    assert larger_tier(8000, 8 * GIB, (0, ""), [narrow, *OFFERED]) == narrow  # none has as many cores
    assert larger_tier(1000, 16 * GIB, (0, ""), OFFERED) is None
    assert larger_tier(1000, 4 * GIB, (1, "nvidia.com/gpu"), OFFERED) is None


TIERS = st.lists(
    st.builds(
        tier, st.text("ab", min_size=1, max_size=3), st.integers(1, 8), st.integers(1, 32), st.sampled_from("012")
    ),
    max_size=6,
)
RUNS = st.lists(st.builds(run, st.floats(0, 20), st.floats(0, 4)), max_size=7)


@given(RUNS, TIERS)
def test_tier_is_suggested_exactly_when_smaller_holds_every_run(runs: list[PastRun], offered: list[SizedTier]) -> None:
    last = runs[:5]

    def holds(one: SizedTier) -> bool:
        return all(
            one.memory * 100 >= each.memory_peak * 130
            and (one.cpu >= 4000 if each.cpu_peak >= 3200 else one.cpu * 100 >= each.cpu_peak * 130)
            for each in last
        )

    def is_less(one: SizedTier) -> bool:
        sizes = (one.cpu, one.memory)
        return one.cpu <= 4000 and one.memory <= 16 * GIB and one.price <= LARGE.price and sizes != (4000, 16 * GIB)

    possible = [one for one in offered if holds(one) and is_less(one)] if len(last) >= 3 else []
    found = smaller_tier(runs, LARGE, offered)
    assert (found is not None) == bool(possible)
    if found is not None:
        assert found.tier in possible
        assert found.tier.price == min(one.price for one in possible)
