"""What the tier doctor and the right-size hint say on pages, and how that looks."""

from decimal import Decimal
from typing import Any

import pytest
from django.template.loader import render_to_string

from dashboard.shell.fragments import render_fragment
from dashboard.tiers.viewmodels.tierchecks import TierCheck, tier_check
from dashboard.usage.viewmodels.sizehints import SizeFacts, size_notes
from grid.diagnosis.nodeshapes import NodeShape, PoolShapes
from grid.kube.objects import Taint
from grid.tiers.rightsize import SizedTier, SmallerTier
from grid.tiers.tierdoctor import ComparedTier, Overlap, TierRequest, examine
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

GIB = 2**30
GPU = "nvidia.com/gpu"


def shape(
    cores: int, gibibytes: int, nodes: int = 1, *, away: int = 0, taints: tuple[Taint, ...] = (), gpus: int = 0
) -> NodeShape:
    allocatable = {"cpu": cores * 1000, "memory": gibibytes * GIB, "pods": 110, **({GPU: gpus} if gpus else {})}
    return NodeShape(allocatable, {"cpu": 500, "memory": GIB, "pods": 3}, taints, nodes, away)


def checked(
    cores: int, gibibytes: int, *shapes: NodeShape, maximum: int = 0, rival: Overlap | None = None
) -> TierCheck:
    request = TierRequest("default", {"cpu": cores * 1000, "memory": gibibytes * GIB, "pods": 1})
    return tier_check(examine(request, PoolShapes("default", shapes, maximum)), rival, maximum_nodes=maximum)


def as_seen(cores: int, seen: NodeShape) -> TierCheck:
    request = TierRequest("default", {"cpu": cores * 1000, "memory": 16 * GIB, "pods": 1})
    pool = PoolShapes("default", (), 3, seen, "24 November 2026")
    return tier_check(examine(request, pool), None, maximum_nodes=3)


RIVAL = Overlap("beaten", ComparedTier("large", "Large", {}, Decimal("0.40"), ""))
CHECKS = {
    "packs-better": checked(8, 30, shape(16, 64, 3), maximum=5),
    "several-shapes": checked(4, 16, shape(8, 33, 2), shape(16, 65, 1, away=2), rival=RIVAL),
    "gpu-nodes": checked(4, 16, shape(8, 33, 2, gpus=1)),
    "tainted": checked(4, 16, shape(8, 33, 2, taints=(Taint(key=GPU, value="present", effect="NoSchedule"),))),
    "pool-empty": checked(4, 16, maximum=3),
    "when-last-seen": as_seen(4, shape(8, 33, 0)),
}


@pytest.mark.parametrize("name", ["several-shapes", "tainted", "when-last-seen"])
def test_how_a_check_looks(name: str) -> None:
    html = render_to_string("tiers/fragments/tier_check.html", {"check": CHECKS[name], "relaunch": ""})
    assert_golden(f"tier-check-{name}", html)


def test_executor_share_is_mentioned() -> None:
    request = TierRequest(
        "default", {"cpu": 4000, "memory": 16 * GIB, "pods": 1}, sidecar_requests={"cpu": 50, "memory": 64 * 2**20}
    )
    made = tier_check(examine(request, PoolShapes("default", (shape(8, 33),), 0)), None, maximum_nodes=0)
    assert made.sentence.endswith(
        "Each place has 0.05 cores and 64 MiB of memory more, for the executor of a project whose files are in Git, "
        "which adds 1.2 % to the price."
    )


def test_empty_pool_says_that_the_autoscaler_may_start_nodes() -> None:
    problem = CHECKS["pool-empty"].problem
    assert problem is not None
    assert problem.sentence == (
        "The pool default has no node now; the autoscaler starts one when somebody launches on this tier (at most 3 nodes). "
        "Only then is it known whether the tier fits."
    )


def test_the_words_of_a_tier_that_packs_badly() -> None:
    check = CHECKS["packs-better"]
    assert check.sentence == (
        "1 place on each of 3 nodes of the pool default, 3 in all when they are empty. "
        "The autoscaler may grow the pool to 5 nodes."
    )
    assert check.advice[0] == "With 7.75 cores instead of 8, 2 would fit on a node instead of 1."
    assert (check.places, check.short_advice) == ("1", "7.75 cores: 2 places instead of 1")
    assert CHECKS["gpu-nodes"].advice[-1] == (
        "It asks for no GPU, and a node full of it leaves 1 GPU unused. Choose a pool without GPUs."
    )


SMALL = SizedTier("small", "Small", 1000, 4 * GIB, 4 * GIB, 0, "", Decimal("0.05"))
LARGE = SizedTier("large", "Large", 4000, 16 * GIB, 16 * GIB, 0, "", Decimal("0.35"))
USED: dict[str, Any] = {
    "memory_peak": 3 * GIB, "cpu_peak": 700, "cpu_mean": 200, "memory_limit": 16 * GIB, "cpu_limit": 4000, "current": LARGE,
}  # fmt: skip
SHORT: dict[str, Any] = {**USED, "memory_limit": 4 * GIB, "ran_out_of_memory": True}
NOTES = {
    "used": SizeFacts(**USED),
    "smaller": SizeFacts(**USED, smaller=SmallerTier(SMALL, Decimal("0.30"), 4, 3 * GIB, 700)),
    "out-of-memory": SizeFacts(**SHORT, larger=LARGE),
    "out-of-memory-largest": SizeFacts(**SHORT),
    "none": None,
}


def notes_of(name: str, execution_id: str, *, workspace_id: str = "", is_owner: bool = True) -> str:
    """Return both places of the note, the one by the status first."""
    notes = size_notes(NOTES[name], execution_id=execution_id, workspace_id=workspace_id, is_owner=is_owner)
    return "".join(render_fragment(note, now=MOMENT) for note in notes)


@pytest.mark.parametrize("name", NOTES)
def test_how_the_note_of_an_ended_run_looks(name: str) -> None:
    assert_golden(f"size-note-{name}", notes_of(name, "abcd2345ef"))


def test_only_owner_gets_link_and_workspace_is_resumed() -> None:
    for name in ("smaller", "out-of-memory"):
        assert 'href="/workspaces/w1/resume/?tier=' in notes_of(name, "e", workspace_id="w1")
        assert "<a " not in notes_of(name, "e", workspace_id="w1", is_owner=False)
