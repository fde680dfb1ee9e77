"""Which tier would have done for the last runs, and which one has enough memory after one ran out of it; against brute force."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.tiers.rightsize import PastRun, SizedTier, SmallerTier, larger_tier, smaller_tier

GIB = 2**30


def tier(id: str, cores: int, gibibytes: int, price: str = "0", **more: Any) -> SizedTier:
    values = {"gpus": 0, "gpu_resource": "", "memory_limit": gibibytes * GIB, **more}
    return SizedTier(id, id.title(), cores * 1000, gibibytes * GIB, price=Decimal(price), **values)


SMALL, MEDIUM, LARGE = tier("small", 1, 4, "0.05"), tier("medium", 2, 8, "0.15"), tier("large", 4, 16, "0.35")
OFFERED = (LARGE, SMALL, MEDIUM)


def run(gibibytes: float = 3.0, cores: float = 0.7, *, on: SizedTier = LARGE, **more: Any) -> PastRun:
    return PastRun(on.cpu, int(gibibytes * GIB), int(cores * 1000), **more)


GPU = tier("gpu", 4, 16, "1", gpus=1, gpu_resource="nvidia.com/gpu")
LESS_GPU = tier("gpu-small", 2, 8, "0.8", gpus=1, gpu_resource="nvidia.com/gpu")
HELD_BACK = run(1.0, 1.9, on=MEDIUM)


@pytest.mark.parametrize(
    ("runs", "current", "offered", "smaller"),
    [
        pytest.param([run(), run(2.0), run(1.0, 0.2)], LARGE, OFFERED, SMALL, id="oversized"),
        pytest.param([run(3.2)] * 3, LARGE, OFFERED, MEDIUM, id="4.2 GiB with the margin"),
        pytest.param([run()] * 2, LARGE, OFFERED, None, id="too few"),
        pytest.param([*[run()] * 5, run(15.0)], LARGE, OFFERED, SMALL, id="the last five"),
        pytest.param([run(), run(), run(ran_out_of_memory=True)], LARGE, OFFERED, None, id="out of memory"),
        pytest.param([HELD_BACK] * 3, LARGE, OFFERED, MEDIUM, id="throttled"),
        pytest.param([HELD_BACK] * 3, MEDIUM, OFFERED, None, id="throttled on the smallest"),
        pytest.param([run()] * 3, GPU, OFFERED, None, id="without the GPU"),
        pytest.param([run()] * 3, GPU, (*OFFERED, LESS_GPU), LESS_GPU, id="same GPUs"),
        pytest.param([run()] * 3, LARGE, [tier("odd", 1, 4, "9")], None, id="dearer"),
    ],
)
def test_smaller_tier_holds_the_last_runs_and_saves(
    runs: list[PastRun], current: SizedTier, offered: Sequence[SizedTier], smaller: SizedTier | None
) -> None:
    advice = smaller_tier(runs, current, offered)
    assert (advice and advice.tier) == smaller


def test_advice_tells_savings_runs_and_peaks() -> None:
    runs = [run(), run(2.0), run(1.0, 0.2)]
    assert smaller_tier(runs, LARGE, OFFERED) == SmallerTier(SMALL, Decimal("0.30"), 3, 3 * GIB, 700)
    assert smaller_tier([*[run()] * 5, run(15.0)], LARGE, OFFERED) == SmallerTier(
        SMALL, Decimal("0.30"), 5, 3 * GIB, 700
    )


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


@given(st.lists(st.builds(run, st.floats(0, 20), st.floats(0, 4)), max_size=7), TIERS)
def test_tier_is_suggested_exactly_when_smaller_holds_every_run(runs: list[PastRun], offered: list[SizedTier]) -> None:
    last = runs[:5]

    def holds(tier: SizedTier) -> bool:
        return all(
            tier.memory * 100 >= past.memory_peak * 130
            and (tier.cpu >= 4000 if past.cpu_peak >= 3200 else tier.cpu * 100 >= past.cpu_peak * 130)
            for past in last
        )

    def is_less(tier: SizedTier) -> bool:
        sizes = (tier.cpu, tier.memory)
        return tier.cpu <= 4000 and tier.memory <= 16 * GIB and tier.price <= LARGE.price and sizes != (4000, 16 * GIB)

    possible = [tier for tier in offered if holds(tier) and is_less(tier)] if len(last) >= 3 else []
    advice = smaller_tier(runs, LARGE, offered)
    assert (advice is not None) == bool(possible)
    if advice is not None:
        assert advice.tier in possible
        assert advice.tier.price == min(tier.price for tier in possible)
