"""Every part of the overview in every visual state, as stored HTML."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from dashboard.nodes.viewmodels.misconfigured import AdminFacts, ChangeLine, Misconfigured, admin_fragments
from dashboard.nodes.viewmodels.nodes import NodeSums
from dashboard.nodes.viewmodels.overview import (
    QUEUED,
    CellMap,
    WorkLine,
    nodes_summary,
    pool_fragments,
    waiting,
    waiting_lines,
    work_counts,
    work_lines,
)
from dashboard.nodes.viewmodels.pools import PoolSums
from dashboard.platformhealth.viewmodels.platform_health import (
    HealthPart,
    caches_part,
    controller_part,
    database_part,
    health,
    metrics_part,
)
from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from grid.kube.pools import NodeGroup
from grid.kube.store import Freshness
from grid.runtime.controllerlease import ControllerAway
from tests.nodes.test_node_cells import sums
from tests.support import builders
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

NOW = MOMENT + timedelta(minutes=5)
WELL = Freshness(True, 0.0, "")


def html_of(*fragments: Fragment) -> str:
    return "\n".join(render_fragment(fragment, now=NOW) for fragment in fragments)


PARTS: list[HealthPart] = [
    controller_part(ControllerAway(MOMENT)),
    controller_part(ControllerAway(None)),
    controller_part(None, is_known=False),
    caches_part({"pods": Freshness(True, 42.0, "Connection refused."), "nodes": WELL}),
    caches_part({"pods": Freshness(False, 0.0, ""), "nodes": WELL}),
    metrics_part("This cluster has no metrics."),
    database_part((), MOMENT),
    database_part(("The disk is full.",), None),
]


def test_a_healthy_platform_is_one_line() -> None:
    parts = [controller_part(None), caches_part({"pods": WELL}), database_part((), None)]
    assert_golden("overview-health-well", html_of(health(parts, [HealthPart("DNS", "ok", "2 pods are ready.")])))


def test_failing_parts_are_reported_in_words() -> None:
    assert_golden("overview-health-troubled", html_of(*(health([part], []) for part in PARTS)))


LINE = WorkLine(
    "Train", "Workspace, alice, Churn", StatusLine("problem", "Preparing", "No image."), MOMENT, execution_id="abc"
)
ORPHAN = WorkLine("p-1", "", StatusLine("wait", "Deploying"), MOMENT, pod_namespace="compute-grid", pod_name="p-1")


def test_work_that_waits_or_fails() -> None:
    counts: dict[str, Any] = {"trouble": 2, "queued": 1500, "deploying": 3, "preparing": 0, "failed": 1}
    assert_golden("overview-counts", html_of(work_counts(active=5000, is_whole=True, **counts)))
    nothing = dict.fromkeys(counts, 0)
    assert "Nothing is waiting or failing." in html_of(work_counts(active=0, is_whole=True, **nothing))
    assert "The executions are still being counted." in html_of(work_counts(active=0, is_whole=False, **nothing))
    assert_golden(
        "overview-work",
        html_of(*work_lines("troubles", [LINE, ORPHAN, replace(LINE, execution_id="def", has_ended=True)])),
    )
    queue = waiting("In the queue", QUEUED, 3, LINE, ["Over the quota.", "Over the quota.", "The tier is full."])
    alone = waiting("For a node", QUEUED, 1, ORPHAN)
    assert_golden("overview-waiting", html_of(*waiting_lines([queue, alone])))


def pool(*nodes: NodeSums) -> tuple[PoolSums, CellMap]:
    sums_of_pool, cells = PoolSums(), CellMap("default")
    for node in nodes:
        sums_of_pool.add(node)
        cells.put(node)
    return sums_of_pool, cells


def test_pools_with_their_cells() -> None:
    busy, cells = pool(
        sums("a", cpu="3500m"),
        sums("b", unschedulable=True),
        sums("c", ready=False),
        sums("d", conditions=[builders.condition("Ready", "Unknown")]),
    )
    growing = pool_fragments("default", busy, NodeGroup("default", 1, 9, 6), 2, cells)
    assert_golden("overview-pool-growing", html_of(*growing))
    assert_golden(
        "overview-pool-empty", html_of(*pool_fragments("gpu", None, NodeGroup("gpu", 0, 0, 0), 0, CellMap("gpu")))
    )
    platform = pool(sums("p", pool="platform"))
    assert_golden("overview-pool-platform", html_of(*pool_fragments("core", platform[0], None, 0, platform[1])))
    assert_golden("overview-nodes", html_of(nodes_summary([busy, platform[0]], is_whole=True)))
    assert_golden("overview-nodes-unfinished", html_of(nodes_summary([busy], is_whole=False)))


def test_admin_panel_shows_misconfigurations_and_changes() -> None:
    facts = AdminFacts(
        (Misconfigured("tier", "huge", "Tier Huge", "No node is large enough.", "Make it smaller."),),
        (
            ChangeLine("1", MOMENT, "ada", "changed tier", "Huge", "tier", "huge"),
            ChangeLine("2", MOMENT, "ada", "changed setting", "a.b = 3", "configuration", ""),
            ChangeLine("3", MOMENT, "ada", "changed thing", "Its <name>", "", ""),
        ),
    )
    assert_golden("overview-admin", html_of(*admin_fragments(facts)))
    assert_golden("overview-admin-nothing", html_of(*admin_fragments(AdminFacts())))
    assert_golden("overview-admin-reading", html_of(*admin_fragments(None)))
