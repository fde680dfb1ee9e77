"""The card beside the launch form, asked over HTTP: its verdict follows the cluster, the queue and the history; links and objects."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.utils import timezone

from dashboard.executions.viewmodels.launch import ClusterKnown, FitCard, FitQuestion, TierChoice, fit_card, slots
from dashboard.starts.expected_waits import SECONDS
from dashboard.starts.viewmodels.expected_wait import brief_wait, launch_wait
from grid.configuration import GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, PodPlan, QueuePlace
from grid.diagnosis.nodeimages import ImagePull
from grid.diagnosis.nodeshapes import TemplateTally
from grid.diagnosis.shortages import NamespaceLimits, PodNeeds
from grid.kube.limits import ResourceQuota
from grid.kube.objects import Node
from grid.kube.resources import CONFIG_MAPS, NODES, PODS, RESOURCE_QUOTAS
from grid.models import Execution, HardwareTier, Project, State
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.runtime import Runtime
from tests.browser.administering import AUTOSCALER
from tests.conftest import People
from tests.executions.executing import ALONE, ATTACHED, FORM, configure, make_execution, page, put, sent
from tests.shell.live import Clock
from tests.support.builders import NAMESPACE, config_map, decode, node, pod
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden

GIB = 2**30


def asked(people: People, **changed: str) -> str:
    status, shown = sent(people.owner, FORM | changed, "/launch/estimate/")
    assert status == 200
    assert not Execution.objects.filter(title="never launched").exists()
    return shown


def ran_for_25_minutes(people: People, project: Project) -> None:
    """Ten of the owner's executions have, after a start of half a minute."""
    now = timezone.now()
    times = {name: now + timedelta(minutes=25) for name in ("slots_freed_at", "ended_at", "settled_at")}
    times |= {"slots_reserved_at": now, "started_at": now + timedelta(seconds=30)}
    for _ in range(10):
        make_execution(people.owner, project, state=State.STOPPED, **times)


@pytest.mark.django_db
def test_the_verdict_follows_the_cluster(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime
) -> None:
    assert "No node" in asked(people)
    put(runtime, cluster, NODES, node("node-a", cpu="4", memory="16Gi"))
    assert "The pool default has 4 free places for Small." in asked(people)
    put(runtime, cluster, PODS, pod("busy", node="node-a", requests={"cpu": "3500m", "memory": "1Gi"}))
    assert "Waits for room" in asked(people)
    put(runtime, cluster, CONFIG_MAPS, config_map("status", {"status": AUTOSCALER}, namespace="kube-system"))
    assert "Needs 1 new node" in asked(people)
    HardwareTier.objects.filter(pk="medium").update(cores="64")
    never = asked(people, tier="medium")
    assert "Can never fit" in never
    assert "asks for 64 cores; the largest node of the pool default offers 4" in never
    assert 'name="choose" value="tier:small"' in never
    assert "$0.05 an hour, $1.20 a day" in asked(people)


@pytest.mark.django_db
def test_verdict_of_pool_at_zero_uses_its_last_nodes(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime
) -> None:
    put(runtime, cluster, CONFIG_MAPS, config_map("status", {"status": AUTOSCALER}, namespace="kube-system"))
    assert "is known only when one has started" in asked(people)
    tally = TemplateTally()
    tally.count(decode(node("gone", cpu="4", memory="16Gi"), Node), {})
    template = tally.template(datetime(2026, 11, 24, tzinfo=UTC))
    assert template is not None
    runtime.templates.take({"default": template})
    assert "It fits, as its nodes were when last seen on 24 November 2026." in asked(people)
    HardwareTier.objects.filter(pk="medium").update(cores="64")
    assert "Can never fit" in asked(people, tier="medium")


@pytest.mark.django_db
def test_the_verdict_knows_the_queue(people: People, offered: Project, runtime: Runtime) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER.key, 1)
    sent(people.owner, FORM)
    Execution.objects.update(slots_reserved_at="2026-01-01T00:00Z", state="running")
    HardwareTier.objects.update(node_pool="default")
    shown = asked(people, token="t2")
    assert "No node" in shown, "what can never start comes first"
    configure(GLOBAL_QUEUE_LIMIT.key, 0)
    assert "Not accepted now" in asked(people, token="t2")


@pytest.mark.django_db
def test_queueing_time_is_said_once_history_tells(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime, clock: Clock
) -> None:
    put(runtime, cluster, NODES, node("node-a", cpu="4", memory="16Gi"))
    configure(MAXIMUM_EXECUTIONS_PER_USER.key, 1)
    now = timezone.now()
    make_execution(people.owner, offered, slots_reserved_at=now, started_at=now)
    shown = asked(people, token="t2")
    assert "number 1 of yours" in shown
    assert "When it starts is not known yet: too few executions like those that hold the slots have ended." in shown
    ran_for_25_minutes(people, offered)
    clock.seconds += SECONDS
    shown = asked(people, token="t2")
    assert "Expected to start in about 25 min" in shown
    assert "launches like this one usually start within 30 seconds." in shown


@pytest.mark.django_db
def test_namespace_quota_is_named_before_the_launch(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime, clock: Clock
) -> None:
    cluster.put(NODES, node("node-a", cpu="4", memory="16Gi"))
    meta = {"name": "team", "namespace": NAMESPACE}
    status = {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "1500m"}}
    put(runtime, cluster, RESOURCE_QUOTAS, {"metadata": meta, "spec": {"hard": status["hard"]}, "status": status})
    shown = asked(people)
    assert "The namespace refuses it now" in shown
    assert "has 0.5 of 2 cores (requests.cpu) left, and this takes 1 core (requests.cpu)." in shown
    cluster.remove(RESOURCE_QUOTAS, "team", namespace=NAMESPACE)
    assert "The namespace refuses it now" in asked(people), "it is remembered for half a minute"
    clock.seconds += 31
    assert "Starts now" in asked(people)


@pytest.mark.django_db
def test_without_a_script_checking_and_choosing_launch_nothing(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime
) -> None:
    put(runtime, cluster, NODES, node("node-a", cpu="4", memory="16Gi"))
    status, shown = sent(people.owner, FORM | {"check": "on", "tier": "medium"})
    assert (status, Execution.objects.count()) == (200, 0)
    assert "The pool default has 1 free place for Medium." in shown
    status, shown = sent(people.owner, FORM | {"choose": "tier:medium"})
    assert (status, Execution.objects.count()) == (200, 0)
    assert re.search(r'value="medium" required checked', shown)
    status, shown = sent(people.owner, FORM | {"choose": "project:other"})
    assert (status, Execution.objects.count()) == (200, 0)
    assert 'value="churn" selected' in shown


def link_in(shown: str) -> str:
    link = re.search(r'href="(/launch/\?[^"]*)" data-copy-link', shown)
    assert link is not None
    return link[1].replace("&amp;", "&").removeprefix("/launch/")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fields", [FORM | {"tier": "medium", "title": "A & B"}, ATTACHED, ALONE | {"workers_maximum": "9", "autoscale": ""}]
)
def test_a_link_opens_the_form_as_it_was(
    people: People, offered: Project, runtime: Runtime, fields: dict[str, str]
) -> None:
    first = link_in(sent(people.owner, fields, "/launch/estimate/")[1])
    for reader in (people.owner, people.teammate):
        opened = page(reader, first)
        assert link_in(opened) == first
        assert "not available" not in opened
    if "title" in fields:
        assert 'value="A &amp; B"' in opened
        assert 'value="medium" required checked' in opened
    if fields["kind"] == "cluster":
        assert not re.search(r'name="autoscale"[^>]* checked', opened)


@pytest.mark.django_db
def test_link_to_forbidden_choices_says_so_and_chooses_none(people: People, offered: Project, runtime: Runtime) -> None:
    HardwareTier.objects.filter(pk="medium").update(is_visible=False)
    shown = page(people.owner, "?kind=workspace&project=secret-project&tier=medium&environment=jupyterlab")
    assert "The project that was asked for is not available to you; choose another." in shown
    assert "The hardware tier that was asked for is not available to you; choose another." in shown
    assert "The environment that" not in shown
    assert not re.search(r'name="tier"[^>]* checked', shown)
    assert '<option value="" selected>Choose a project</option>' in shown
    assert "Fill in what is missing" in shown


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    [
        '?title=%3Cscript%3Ealert(1)%3C/script%3E&tier="><b>&project=%00&environment=%27',
        "?kind=cluster&workers_minimum=%3Cb%3E&framework=%22%3E&worker_tier=%00&autoscale=maybe&local_storage=%3Cb%3E",
        "?kind=%3Cscript%3E&with_cluster=on&head_tier=x" + "y" * 3000,
    ],
)
def test_hostile_links_are_only_text(people: People, offered: Project, runtime: Runtime, query: str) -> None:
    shown = page(people.owner, query)
    assert "<script>alert" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;alert(1)" in shown or "title=" not in query
    assert Execution.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize(("fields", "kinds"), [(FORM, ["Pod"]), (ALONE, ["Deployment", "Deployment"])])
def test_the_objects_are_shown_without_secret_values(
    people: People, offered: Project, runtime: Runtime, fields: dict[str, str], kinds: list[str]
) -> None:
    status, shown = sent(people.owner, fields, "/launch/objects/")
    assert status == 200
    assert Execution.objects.count() == 0
    assert re.findall(r"^kind: (Pod|Deployment)$", shown, re.MULTILINE) == kinds
    if fields is FORM:
        assert "token: (hidden)" in shown
    sent(people.owner, fields)
    assert f"-{Execution.objects.get().pk}" in shown, "the names are those of the launch"


@pytest.mark.django_db
def test_nonmember_sees_no_objects_of_the_project(people: People, offered: Project, runtime: Runtime) -> None:
    status, shown = sent(people.stranger, FORM, "/launch/objects/")
    assert status == 422
    assert "churn" not in shown


def plan(cores: int, tier: str = "Large", pool: str = "default") -> PodPlan:
    return PodPlan(tier, pool, {"cpu": cores * 1000, "memory": 4 * GIB, "pods": 1})


def room(free: int, empty: int = 8, count: int = 1) -> AlikeNodes:
    rest = {"memory": 32 * GIB, "pods": 110}
    return AlikeNodes({"cpu": free * 1000, **rest}, {"cpu": empty * 1000, **rest}, count)


def quota(pods: str, used: str) -> NamespaceLimits:
    status = {"hard": {"pods": pods}, "used": {"pods": used}}
    return NamespaceLimits((decode({"metadata": {"name": "team"}, "status": status}, ResourceQuota),))


FULL = LaunchPool("default", (room(1),), 1)
AT_ZERO = LaunchPool("default", (), 3, start_seconds=220, remembered=room(8), seen="24 November 2026")
QUEUE = QueuePlace(
    4, "You use 25 of 25 slots; this starts by itself when one is free. It is number 4 of yours.", "Stop something."
)
EXPECTED = WaitEstimate(1500.0, 1200.0, 2400.0, "Your executions usually end after another 24 minutes.", 4)
HOW_RIGHT = "9 of the last 10 expected waits were within 30 % or 10 seconds of what happened."
NOT_EXPECTED = WaitEstimate(None, why="Not known yet: too few launches like this one have started.", position=4)
ROOM = WaitEstimate(1250.0, 600.0, 2400.0, "Room for it is usually free after another 20 minutes.")
PULL = ImagePull(2_254_857_830, 40.0, is_missing=True)
SMALL = TierChoice("tier", "small", "Small", (plan(1, "Small"),), 0)
SITUATIONS: dict[str, tuple[dict[str, Any], ClusterKnown]] = {
    "starts-now": ({"usual_start": 43.0}, ClusterKnown({"default": LaunchPool("default", (room(8, count=2),))})),
    "needs-node": ({}, ClusterKnown({"default": LaunchPool("default", (room(1),), 5, start_seconds=220)})),
    "queues": (
        {"queue": QUEUE, "expected": launch_wait(EXPECTED, HOW_RIGHT), "wait": brief_wait(EXPECTED)},
        ClusterKnown({"default": FULL}),
    ),
    "queues-unknown": (
        {"queue": QUEUE, "expected": launch_wait(NOT_EXPECTED), "wait": brief_wait(NOT_EXPECTED)},
        ClusterKnown({"default": FULL}),
    ),
    "starts-now-pulls": (
        {"usual_start": 53.0, "pull": PULL},
        ClusterKnown({"default": LaunchPool("default", (room(8, count=2),))}),
    ),
    "needs-node-pulls": (
        {"pull": replace(PULL, is_missing=False)},
        ClusterKnown({"default": LaunchPool("default", (room(1),), 5, start_seconds=220)}),
    ),
    "waits-for-room": ({"choices": (SMALL,)}, ClusterKnown({"default": FULL})),
    "waits-for-room-expected": (
        {"choices": (SMALL,), "expected": launch_wait(ROOM), "wait": brief_wait(ROOM), "pull": PULL},
        ClusterKnown({"default": FULL}),
    ),
    "never-fits": (
        {"pods": (plan(64, "Huge"),), "choices": (SMALL,)},
        ClusterKnown({"default": LaunchPool("default", (room(4),))}),
    ),
    "first-node": ({"choices": (SMALL,)}, ClusterKnown({"default": AT_ZERO})),
    "unknown-node": ({"choices": (SMALL,)}, ClusterKnown({"default": LaunchPool("default", (), 3)})),
    "never-fits-as-seen": ({"pods": (plan(64, "Huge"),), "choices": (SMALL,)}, ClusterKnown({"default": AT_ZERO})),
    "no-nodes": ({}, ClusterKnown({})),
    "refused": (
        {"needs": (PodNeeds("Large", {}, {}),)},
        ClusterKnown({"default": LaunchPool("default", (room(8),))}, quota("10", "10")),
    ),
    "nearly-refused": (
        {"needs": (PodNeeds("Large", {}, {}),)},
        ClusterKnown({"default": LaunchPool("default", (room(8),))}, quota("10", "9")),
    ),
    "not-known": ({}, ClusterKnown()),
}


def card_of(situation: str) -> FitCard:
    changes, known = SITUATIONS[situation]
    values: dict[str, Any] = {"pods": (plan(4),), "slots": 1, "price": Decimal("0.19"), **changes}
    return fit_card(FitQuestion(**values), known, slots(used=3, queued=0, maximum=25))


def rendered(situation: str) -> str:
    context = {"card": card_of(situation), "link": "/launch/?kind=workspace"}
    summary = render_to_string("executions/fragments/fit_summary.html", context)
    summary += render_to_string("executions/fragments/launch_button.html", context)
    return summary + render_to_string("executions/fragments/fit_card.html", context)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_verdict_looks_as_stored(situation: str) -> None:
    assert_golden(f"fit-{situation}", rendered(situation))


def test_other_tier_is_advised_only_where_it_starts_sooner() -> None:
    advised = {situation for situation in SITUATIONS if 'name="choose" value="tier:small"' in rendered(situation)}
    assert advised == {"waits-for-room", "waits-for-room-expected", "never-fits", "never-fits-as-seen"}


def test_a_tier_whose_places_are_taken_is_not_advised() -> None:
    full = TierChoice("tier", "small", "Small", (plan(1),), 0, is_full=True)
    question = FitQuestion((plan(4),), 1, Decimal(0), choices=(full,))
    assert fit_card(question, ClusterKnown({"default": FULL}), slots(used=0, queued=0, maximum=5)).suggestions == ()


@pytest.mark.parametrize(
    ("sooner", "used", "advised"),
    [
        pytest.param("Stop something that you no longer need.", 4, [], id="slots"),
        pytest.param("Choose another tier.", 4, ["Small"], id="full tier"),
        pytest.param("Choose another tier.", 5, [], id="both"),
    ],
)
def test_no_tier_starts_now_while_queue_gate_is_closed(sooner: str, used: int, advised: list[str]) -> None:
    """Another tier helps against a full tier, and frees no slot of the person."""
    known, held = ClusterKnown({"default": LaunchPool("default", (room(4),))}), slots(used=used, queued=0, maximum=5)
    queue = QueuePlace(1, "It waits.", sooner)
    question = FitQuestion((plan(64, "Huge"),), 1, Decimal(0), queue=queue, choices=(SMALL,))
    card = fit_card(question, known, held)
    assert card.fit.code == "never_fits"
    assert [tier.name for tier in card.suggestions] == advised


def test_gpu_tier_is_advised_only_without_an_alternative() -> None:
    card = TierChoice("tier", "gpu", "GPU", (plan(1),), 1)
    known, held = ClusterKnown({"default": FULL}), slots(used=0, queued=0, maximum=5)
    both = FitQuestion((plan(4),), 1, Decimal(0), choices=(card, SMALL))
    assert [tier.name for tier in fit_card(both, known, held).suggestions] == ["Small"]
    only = FitQuestion((plan(4),), 1, Decimal(0), choices=(card,))
    assert [tier.name for tier in fit_card(only, known, held).suggestions] == ["GPU"]


def test_an_unfinished_form_gets_no_verdict() -> None:
    assert "Fill in what is missing" in render_to_string("executions/fragments/fit_summary.html", {"card": None})


def test_needs_of_nginx_and_executor_are_said_with_price() -> None:
    sidecars = {"cpu": 10, "memory": 32 * 2**20}
    question = FitQuestion((plan(4),), 1, Decimal("0.1918"), sidecars=sidecars, price_of_sidecars=Decimal("0.0018"))
    card = fit_card(question, ClusterKnown(), slots(used=3, queued=0, maximum=25))
    shown = render_to_string("executions/fragments/fit_card.html", {"card": card, "link": "/launch/"})
    assert (
        "0.01 cores and 32 MiB of memory of its node, for the platform’s own containers; $0.0018 an hour of the price"
        in shown
    )
    assert "Beside it" not in rendered("starts-now")


def test_tier_is_advised_only_where_pool_surely_takes_it() -> None:
    elsewhere = TierChoice("tier", "gpu", "Elsewhere", (plan(1, "Elsewhere", "gpu"),), 0)
    question = FitQuestion((plan(4),), 1, Decimal(0), choices=(elsewhere,))
    for at_zero, advised in (
        (LaunchPool("gpu", (), 3), []),
        (replace(AT_ZERO, name="gpu"), ["Elsewhere"]),
        (replace(AT_ZERO, name="gpu", remembered=room(8, empty=0)), []),
    ):
        known = ClusterKnown({"default": FULL, "gpu": at_zero})
        card = fit_card(question, known, slots(used=0, queued=0, maximum=5))
        assert [tier.name for tier in card.suggestions] == advised
