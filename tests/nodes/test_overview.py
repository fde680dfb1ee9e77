"""The overview: who may see it, what waits and fails, what admins are to mend, and every part in every visual state."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.template.loader import render_to_string
from django.utils import timezone
from msgspec.structs import replace

from dashboard.nodes.pages.infrastructure import rules_in_force
from dashboard.nodes.records import admin_facts, environments_never_started
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
from dashboard.shell.pages.periodic import PeriodicRead
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from grid.audit import entries as audit
from grid.database import write_probe as writing
from grid.diagnosis.shortages import NamespaceLimits
from grid.kube.limits import ResourceQuota
from grid.kube.pools import NodeGroup
from grid.kube.resources import CONFIG_MAPS, NODES, PODS
from grid.kube.store import Freshness
from grid.models import AuditEntry, PlatformReport, State, User
from grid.models.dataplane import LOCAL
from grid.nodes.scaledown import ScaleDownRules
from grid.runtime import Runtime, new_runtime
from grid.runtime.controllerlease import ControllerAway
from tests.conftest import People, page_at
from tests.executions.executing import (
    make_environment,
    make_execution,
    make_project,
    make_tier,
    pod_of,
    read_executions,
)
from tests.nodes.test_node_cells import sums
from tests.shell.live import Clock, connected
from tests.support import builders
from tests.support.builders import MOMENT, decode
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden
from tests.support.runtime import fill, renew_lease, using_runtime

STATUS = "nodeGroups: [{name: default, health: {cloudProviderTarget: 3, minSize: 1, maxSize: 5}}]"


def page_of(user: User) -> str:
    return page_at(user, "/overview/")


@pytest.fixture
def scene(people: People, cluster: FakeCluster, runtime: Runtime, clock: Clock) -> FakeCluster:
    """Two nodes of a pool that grows, one of the platform, and a controller."""
    cluster.put(NODES, builders.node("worker-1"))
    cluster.put(NODES, builders.node("worker-2", unschedulable=True))
    cluster.put(NODES, builders.node("system-1", pool="platform"))
    data = {"status": STATUS}
    cluster.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", data, namespace="kube-system"))
    fill(runtime, cluster)
    renew_lease(runtime, cluster)
    return cluster


def test_overview_shows_pools_with_cells_and_autoscaler_state(people: People, scene: FakeCluster) -> None:
    text = page_of(people.operator)
    assert "2 compute nodes in 1 pool, and 1 platform node." in text
    assert "2 nodes, 1 cordoned. 0 % of CPU and 0 % of memory requested." in text
    assert "Autoscaler: 1 to 5 nodes, 1 on the way" in text
    assert "Fixed size" in text
    assert 'href="/nodes/worker-2/" title="worker-2: cordoned; 4 cores, 16 GiB; up to 20 % requested"' in text


# --- Platform health


def test_unreadable_database_is_told(people: People, scene: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> list[str]:
        raise DatabaseError

    monkeypatch.setattr(writing, "problems", refuse)
    text = page_of(people.operator)
    assert "Trouble with: Database" in text
    assert "The database does not answer as it should; the log says more." in text


def test_overview_and_platform_health_have_one_headline(people: People, scene: FakeCluster) -> None:
    dns = {"key": "dns", "name": "DNS", "severity": "problem", "sentence": "No pod of coredns is ready."}
    PlatformReport.objects.create(pk=LOCAL, checked_at=timezone.now(), lights=[dns])
    for text in (page_of(people.operator), page_at(people.operator, "/platform-health/")):
        assert "Trouble with: DNS<" in text
        assert "No pod of coredns is ready." in text


# --- Waiting and failing work


def test_troubled_executions_show_diagnosis(people: People, scene: FakeCluster, runtime: Runtime, clock: Clock) -> None:
    project = make_project(people.owner)
    bad = make_execution(people.owner, project, state=State.PREPARING, title="Broken image")
    waiting = [{"name": "main", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}}]
    scene.put(PODS, pod_of(bad.pk, node="worker-1", statuses=waiting))
    for minute, title, reason in (
        (5, "Later", "over_user_slots"),
        (0, "First", "over_tier_maximum"),
        (9, "Last", "over_user_slots"),
    ):
        at = MOMENT + timedelta(minutes=minute)
        values: dict[str, Any] = {"title": title, "reason": reason, "requested_at": at, "state_since": at}
        make_execution(
            people.owner, project, state=State.QUEUED, message=f"You wait. It is number {minute} of yours.", **values
        )
    clock.seconds = 3600
    fill(runtime, scene)
    read_executions(runtime)
    text = page_of(people.operator)
    assert "The image" in text
    assert "cannot be pulled" in text
    assert "3 executions" in text
    in_queue = text[text.index("In the queue") :]
    assert "First" in in_queue[: in_queue.index("</p>")]
    assert "2 × All slots of the owner are in use." in in_queue
    assert f"/executions/{bad.pk}/" in text


# --- For admins


def test_tier_without_fitting_node_or_pool_is_linked(people: People, scene: FakeCluster) -> None:
    make_tier("huge", cores="96")
    make_tier("lost", node_pool="tpu")
    make_tier("small")
    make_tier("old", node_pool="tpu", is_archived=True)
    text = page_of(people.admin)
    assert "it asks for 96 cores, but the largest node has 4" in text
    assert "The pool tpu has no node, and the autoscaler may not start one." in text
    assert [id for id in ("huge", "lost", "small", "old") if f'href="/tiers/{id}/"' in text] == ["huge", "lost"]


def test_tiers_are_not_judged_before_nodes_are_known(people: People) -> None:
    make_tier("huge", cores="96")
    with using_runtime(new_runtime({LOCAL: FakeCluster()})):
        assert "Nothing misconfigured." in page_of(people.admin)


def test_the_latest_changes_are_shown_with_a_link(people: People, scene: FakeCluster) -> None:
    for number in range(7):
        audit.record(actor=people.admin, instance=make_tier(f"tier-{number}"), action=AuditEntry.Action.CREATED)
    text = page_of(people.admin)
    assert text.count("created tier") == 5
    assert 'href="/tiers/tier-6/"' in text
    assert 'href="/tiers/tier-1/"' not in text
    assert "created tier" not in page_of(people.operator)


def ended(people: People, project: Any, environment: Any, *, minute: int = 0, **fields: Any) -> None:
    at = MOMENT + timedelta(minutes=minute)
    values = {"state": State.ERROR, "message": f"Cause {minute}.", **fields}
    make_execution(people.owner, project, environment=environment, ended_at=at, settled_at=at, **values)


def test_environments_of_which_no_launch_started_are_found(people: People) -> None:
    project = make_project(people.owner)
    named = ("broken", "works", "stopped", "running", "archived")
    of = {id: make_environment(id, name=id.capitalize(), is_archived=id == "archived") for id in named}
    for id in ("broken", "works", "running", "archived"):
        ended(people, project, of[id], minute=1)
        ended(people, project, of[id], minute=2)
    ended(people, project, of["works"], started_at=MOMENT, state=State.SUCCEEDED)
    ended(people, project, of["stopped"], state=State.STOPPED)
    make_execution(people.owner, project, environment=of["running"], started_at=MOMENT)
    (line,) = environments_never_started()
    assert (line.object_id, line.title) == ("broken", "Environment Broken")
    assert line.sentence == "It has never started: 2 launches failed. The latest: Cause 2."


# --- Live


@pytest.mark.django_db(transaction=True)
async def test_changed_node_sends_its_chunk_and_pool(people: People, scene: FakeCluster, runtime: Runtime) -> None:
    async with connected("/live/overview/", people.operator) as socket:
        assert "worker-1" in await socket.message()
        scene.put(NODES, builders.node("worker-1", unschedulable=True))
        fill(runtime, scene)
        message = await socket.message()
    assert "worker-1: cordoned" in message
    assert "2 nodes, 2 cordoned." in message
    assert "system-1" not in message
    assert "health" not in message


async def test_hanging_database_does_not_delay_node_pages() -> None:
    hangs, answered = asyncio.Event(), ScaleDownRules(threshold_percent=30, unneeded_seconds=60)

    async def read() -> ScaleDownRules:
        await hangs.wait()
        return answered

    answers = PeriodicRead(read, clock=timezone.now)
    async with asyncio.timeout(5):
        first, second = await rules_in_force(answers), await rules_in_force(answers)
    assert first == second
    assert first.threshold_percent == 50, "the default"
    hangs.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await rules_in_force(answers) == answered


WELL = Freshness(True, 0.0, "")


def html_of(*fragments: Fragment) -> str:
    return "\n".join(render_fragment(fragment, now=MOMENT + timedelta(minutes=5)) for fragment in fragments)


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


def limits(**hard: str) -> NamespaceLimits:
    return NamespaceLimits((decode({"metadata": {"name": "team"}, "status": {"hard": hard}}, ResourceQuota),))


def shown(known: NamespaceLimits | None) -> str:
    fragments = admin_fragments(admin_facts(None, (), known))
    ids = [fragment.id for fragment in fragments]
    assert len(ids) == len(set(ids))
    return "".join(
        render_to_string(fragment.template, {"id": fragment.id, "x": fragment.context}) for fragment in fragments
    )


@pytest.mark.django_db
def test_tiers_and_slots_beyond_quota_are_named_with_link() -> None:
    make_tier("small", maximum_simultaneous=8)
    page = shown(limits(**{"pods": "10", "count/pods": "9", "requests.cpu": "4"}))
    assert "One user may hold 25 slots, but the quota “team” of the namespace allows 10 pods in all." in page
    assert "It may run 8 at once, but the quota “team” of the namespace has 4 cores (requests.cpu) in all" in page
    assert 'href="/tiers/small/"' in page
    assert 'href="/configuration/"' in page
