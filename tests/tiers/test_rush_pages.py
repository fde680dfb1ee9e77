"""The rush planner's page: what operators are told, what they save once, what is refused and why. Who may: tests/access."""

import re
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from html import unescape
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.template.loader import render_to_string
from django.test import Client

from dashboard.tiers.viewmodels.rush import PlanFacts, plan_row, rush_answer
from grid.configuration import NAMESPACE, WARM_PLACES
from grid.core.labels import APP_COMPONENT, APP_NAME, KEYS, MANAGER, NODE_POOL, PLACEHOLDER, RUSH_PLAN
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, PodPlan
from grid.kube.resources import CONFIG_MAPS, NODES, PODS
from grid.models import AuditEntry, ConfigRecord, Environment, HardwareTier, RushPlan, StartUp
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, new_runtime
from grid.tiers.placeholders import PRIORITY
from grid.tiers.rush import ImageNodes, MeasuredTime, RushFacts, RushTimes, plan_rush
from grid.tiers.warmhours import WarmHours
from tests.conftest import People, client_of
from tests.executions.executing import make_environment, make_tier
from tests.shell.live import Clock
from tests.support import builders
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden
from tests.support.runtime import fill, using_runtime

PAGE = "/rush/"
IMAGE = "compute-grid/jupyterlab:4.6"
STATUS = "nodeGroups: [{{name: default, health: {{cloudProviderTarget: 2, minSize: 1, maxSize: {0}}}}}]"
# MOMENT is Wednesday, 4 March 2026, 09:00 UTC.
ASKED = {
    "places": "40",
    "tier": "medium",
    "environment": "jupyterlab",
    "ready": "09:00",
    "until": "12:00",
    "zone": "Europe/Berlin",
    "on": "2026-03-05",
}
WEEKLY = {name: value for name, value in ASKED.items() if name != "on"} | {"days": ["mon", "thu"]}


@pytest.fixture
def scene(db: None, cluster: FakeCluster, runtime: Runtime) -> FakeCluster:
    """Two nodes for four Medium each, one of them with the image, in a pool of at most 12; up to 100 warm places."""
    make_environment(image=IMAGE)
    make_tier("medium", name="Medium", cores="1900m", memory="7Gi", cost_per_hour=Decimal("0.20"))
    ConfigRecord.objects.create(namespace=NAMESPACE, key=WARM_PLACES.key, value="100")
    for name, image in (("n1", IMAGE), ("n2", "python:3.11")):
        images = [{"names": [image], "sizeBytes": 900_000_000}]
        cluster.put(NODES, builders.node(name, cpu="8", memory="32Gi", status={"images": images}))
    grow(cluster, runtime, 12)
    return cluster


def grow(cluster: FakeCluster, runtime: Runtime, maximum: int) -> None:
    status = {"status": STATUS.format(maximum)}
    cluster.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", status, namespace="kube-system"))
    fill(runtime, cluster)


def text(answer: Any) -> str:
    """What a person reads, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def starts(count: int, **fields: Any) -> None:
    """Starts that waited 1, 2, 3 ... minutes for a new node, and pulled the image in 10, 20, 30 ... seconds."""
    tier, environment = HardwareTier.objects.get(pk="medium"), Environment.objects.get()
    common = {"ran": True, "tier": tier, "environment": environment, "node_pool": "default", "image": IMAGE}
    StartUp.objects.bulk_create(
        StartUp(
            execution_id=f"s{number}",
            at=MOMENT - timedelta(days=number),
            total=900.0,
            node_started=True,
            node_wait=60.0 * number,
            image_cached=False,
            image_bytes=1_000,
            pulling=10.0 * number,
            **(common | fields),
        )
        for number in range(1, count + 1)
    )


def test_an_operator_is_told_nodes_minutes_images_and_cost(scene: FakeCluster, people: People) -> None:
    starts(6)
    page = text(client_of(people.operator).get(PAGE, ASKED))
    for sentence in (
        "40 places of Medium at 5 March, 09:00 (Europe/Berlin)",
        "8 of 40 fit on the 2 nodes of the pool default now.",
        "8 nodes must be added, with 4 places each. The pool has 2 nodes and may have 12.",
        "A new node: 95 % within 6 min, of 6 measured.",
        "The pull of the image: 95 % within 1 min, of 6 measured.",
        "5 March, 08:52 (Europe/Berlin), 8 min before.",
        f"{IMAGE} is on 1 node (n1). 1 node (n2) must pull it. New nodes pull it before the places are ready.",
        "$20.05: 8 new nodes for 3 h 8 min at $0.80 an hour, by the price of the tier Medium.",
        "The warm places themselves are charged to nobody",
    ):
        assert sentence in page, sentence


def test_single_click_saves_plan_and_second_adds_none(scene: FakeCluster, people: People) -> None:
    client = client_of(people.operator)
    for _ in range(2):
        assert client.post(PAGE, WEEKLY).status_code == 302
    plan = RushPlan.objects.get()
    assert (plan.places, plan.tier_id, plan.environment_id, plan.days) == (40, "medium", "jupyterlab", ["mon", "thu"])
    assert (plan.ready, plan.until, plan.zone, plan.early_minutes) == ("09:00", "12:00", "Europe/Berlin", 30)
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.object_type) == (plan.made_by, "created", "rushplan")
    assert entry.object_name == "40 Medium at 09:00" and entry.changes["places"] == [None, 40]
    page = text(client.get(PAGE))
    assert "This plan exists already." in page and "existed" not in page
    assert "Planned Next run: 5 March, 08:30 (Europe/Berlin) 40 Medium JupyterLab Mon, Thu 09:00 to 12:00" in page


def test_resaved_plan_begins_as_early_as_known_now(scene: FakeCluster, people: People) -> None:
    client = client_of(people.operator)
    client.post(PAGE, WEEKLY)
    starts(6)
    client.post(PAGE, WEEKLY)
    assert RushPlan.objects.get().early_minutes == 8
    assert AuditEntry.objects.get(action="changed").changes == {"early_minutes": [30, 8]}
    assert "This plan existed already. It now begins 8 min before." in text(client.get(PAGE))


def test_plan_is_removed_after_confirmation_with_audit_entry(scene: FakeCluster, people: People) -> None:
    client = client_of(people.operator)
    client.post(PAGE, ASKED)
    path = f"{PAGE}{RushPlan.objects.get().pk}/remove/"
    assert "Remove the plan 40 Medium at 09:00" in text(client.get(path))
    assert RushPlan.objects.exists(), "a question removes nothing"
    for _ in range(2):
        assert client.post(path).status_code == 302
    assert not RushPlan.objects.exists()
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == ["created", "deleted"]
    assert AuditEntry.objects.get(action="deleted").changes["on"] == ["2026-03-05", None]
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("changed", "sentence", "step"),
    [
        ({"places": "0"}, "Plan at least 1 place.", ""),
        ({"places": "1000000"}, "Plan at most 1,000 places", "write several plans"),
        ({"on": "2026-03-04"}, "09:00 on 4 March 2026 has passed.", "Choose a time that is yet to come."),
        ({"on": "0001-01-01"}, "Choose a day within a year from today.", ""),
        ({"on": "2026-03-29", "ready": "02:30", "until": "03:15"}, "do not exist on that day: the clocks change", ""),
        ({"days": ["mon"]}, "Choose either one day or days of the week.", ""),
        ({"until": "09:00"}, "Choose a time other than the one at which the places are ready.", ""),
        ({"ready": "25:00"}, "such as 08:00", ""),
        ({"zone": "Nowhere/Here"}, "There is no time zone “Nowhere/Here”.", "such as Europe/Berlin"),
        ({"environment": "old"}, "Old is archived.", "Choose another environment, or ask an admin to restore it."),
        ({"tier": "old"}, "Old is archived.", "Choose another tier"),
        ({"places": "60"}, "The pool default may have 12 nodes, on which 48 places", "Plan at most 48 places"),
        ({"tier": "<script>"}, "Select a valid choice", ""),
    ],
)
def test_refused_plan_says_why_and_what_to_do(
    scene: FakeCluster, people: People, changed: dict[str, Any], sentence: str, step: str
) -> None:
    make_environment("old", name="Old", is_archived=True)
    make_tier("old", name="Old", is_archived=True)
    client = client_of(people.operator)
    for answer in (client.post(PAGE, ASKED | changed), client.get(PAGE, ASKED | changed)):
        shown = text(answer)
        assert sentence in shown and step in shown
        assert "<script>" not in answer.content.decode()[answer.content.decode().index("<main") :].replace("&lt;", "")
    assert not RushPlan.objects.exists() and not AuditEntry.objects.exists()


def test_while_the_cluster_is_not_known_nothing_is_saved(db: None, people: People) -> None:
    make_environment()
    make_tier("medium")
    with using_runtime(new_runtime({LOCAL: FakeCluster()}, clock=lambda: MOMENT)):
        answer = client_of(people.operator).post(PAGE, ASKED)
    assert answer.status_code == 422 and "The cluster is not read yet" in text(answer)
    assert not RushPlan.objects.exists()


def test_other_warm_places_of_the_same_hours_count(scene: FakeCluster, people: People) -> None:
    client = client_of(people.operator)
    assert client.post(PAGE, WEEKLY | {"places": "30"}).status_code == 302
    page = text(client.get(PAGE, ASKED))
    assert "and 30 other places" not in page and "on which 18 places" in page, "the pool has room for 48"
    HardwareTier.objects.update(warm_places=61, warm_days=["thu"], warm_from="10:00", warm_until="11:00")
    assert "and 91 other places of these hours count too" in text(client.get(PAGE, ASKED))
    assert "other places" not in text(client.get(PAGE, ASKED | {"on": "2026-03-06", "places": "8"}))


def test_the_list_tells_how_far_a_plan_is(scene: FakeCluster, people: People, runtime: Runtime, clock: Clock) -> None:
    client = client_of(people.operator)
    client.post(PAGE, ASKED | {"places": "3"})
    plan = RushPlan.objects.get()
    labels = {APP_NAME: MANAGER, APP_COMPONENT: PLACEHOLDER, KEYS.tier: "medium"}
    done: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    for number, state in enumerate((done, {"waiting": {"reason": "PodInitializing"}})):
        pod = builders.pod(f"warm-{number}", node="n1", labels=labels, annotations={RUSH_PLAN: plan.pk})
        pod["spec"] |= {"priority": PRIORITY, "nodeSelector": {NODE_POOL: "default"}}
        pod["spec"]["initContainers"] = [{"name": "image", "image": IMAGE}]
        pod["status"]["initContainerStatuses"] = [builders.container_status("image", state=state)]
        scene.put(PODS, pod)
    fill(runtime, scene)
    clock.seconds = 22.75 * 3600
    page = text(client.get(PAGE))
    assert "Starting 1 ready, 2 not yet and 0 taken by launches, until 5 March, 12:00 (Europe/Berlin)" in page
    ConfigRecord.objects.update(value="2")
    page = text(client.get(PAGE))
    assert "Held up The central configuration allows 2 warm places at once. Plan at most 2 places, or ask an" in page
    assert "“Most warm places” to 3 or more. 1 ready, 2 not yet and 0 taken" in page
    clock.seconds = 48 * 3600
    assert "Over 3 Medium" in text(client.get(PAGE))


def test_a_form_of_another_site_saves_nothing(scene: FakeCluster, people: People) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.operator)
    assert client.post(PAGE, ASKED).status_code == 403
    assert not RushPlan.objects.exists()


# --- As it looks ---

READY = datetime(2026, 3, 5, 8, 0, tzinfo=UTC)
TIMES = RushTimes(READY, READY + timedelta(hours=3))
BERLIN = ZoneInfo("Europe/Berlin")
EMPTY = {"cpu": 8000, "pods": 110}
FACTS = RushFacts(
    pool=LaunchPool("default", (AlikeNodes(EMPTY, EMPTY, 2),), 12),
    plan=PodPlan("Medium", "default", {"cpu": 2000, "pods": 1}, count=40),
    most=100,
    price=Decimal("0.20"),
    node=MeasuredTime(240.0, 20),
    pull=MeasuredTime(60.0, 20),
    images=ImageNodes(("n1",), ("n2",)),
)


@pytest.mark.parametrize(
    ("name", "facts", "now"),
    [
        ("planned", {}, MOMENT),
        ("late", {"pull": MeasuredTime(90.0, 2, is_estimate=True)}, READY - timedelta(minutes=2)),
        (
            "not-known",
            {
                "pool": LaunchPool("default", (), 12),
                "price": Decimal(0),
                "node": MeasuredTime(None, 3),
                "pull": MeasuredTime(),
                "images": ImageNodes(),
            },
            MOMENT,
        ),
        (
            "short",
            {
                "pool": LaunchPool("default", (AlikeNodes(EMPTY | {"cpu": 2000}, EMPTY, 12),)),
                "pool_others": (PodPlan("Small", "default", {"cpu": 1000, "pods": 1}, count=3),),
                "images": ImageNodes(unknown=tuple(f"n{number}" for number in range(12))),
            },
            MOMENT,
        ),
    ],
)
def test_answers_look_as_stored(name: str, facts: dict[str, Any], now: datetime) -> None:
    known = replace(FACTS, **facts)
    answer = rush_answer(plan_rush(known, TIMES, now), known, TIMES, image=IMAGE, zone=BERLIN, now=now)
    context = {"answer": answer, "sent": [("places", "40"), ("days", "mon"), ("days", "thu")]}
    assert_golden(f"rush-{name}", render_to_string("tiers/fragments/rush_answer.html", context))


def test_the_list_looks_as_stored() -> None:
    hours = WarmHours(frozenset({"mon", "fri"}), time(9), time(12), BERLIN)
    once = WarmHours(frozenset(), time(9), time(12), ZoneInfo("UTC"), date(2026, 3, 5))
    is_now, later = (MOMENT, MOMENT + timedelta(hours=2)), (READY, READY + timedelta(hours=3))
    plans = [
        PlanFacts("a", "40 Medium", "JupyterLab", 40, hours, is_now, "olga", taken=10, ready=30),
        PlanFacts("b", "40 Medium", "JupyterLab", 40, hours, is_now, "olga", taken=1, ready=2),
        PlanFacts("c", "3 <b>Small</b>", "JupyterLab", 3, once, later, "olga"),
        PlanFacts("d", "3 Small", "JupyterLab", 3, once, later, "olga", limits="The tier Small is archived."),
        PlanFacts("e", "3 Small", "JupyterLab", 3, once, None, "olga"),
        PlanFacts("f", "3 Small", "JupyterLab", 3, None, None, "olga"),
    ]
    rows = [plan_row(plan, MOMENT) for plan in plans]
    assert_golden("rush-plans", render_to_string("tiers/fragments/rush_plans.html", {"rows": rows}))
