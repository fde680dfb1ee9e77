"""Every fragment in every visual state, as stored HTML; and that nothing hostile in a name gets out of its place."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import URLResolver, clear_url_caches, reverse

from dashboard.nodes.viewmodels.infrastructure import InfrastructureView, activity, node_row
from dashboard.nodes.viewmodels.node import node_facts
from dashboard.nodes.viewmodels.nodes import NodeSums, node_sums
from dashboard.nodes.viewmodels.pods import PodFacts, pod_facts, pod_row, pod_rows
from dashboard.nodes.viewmodels.pools import totals
from dashboard.shell.fragments import KEPT_UNUSED, RenderedFragments, preload, render_fragment
from dashboard.shell.viewmodels.events import event_line, history
from dashboard.shell.viewmodels.freshness import freshness_fragment, freshness_view
from dashboard.shell.viewmodels.listing import Progress, none_so_far, unfinished
from dashboard.shell.viewmodels.live import Fragment, PageUpdate
from grid.core.labels import KEYS
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Node, Pod
from grid.kube.pools import NodeGroup
from grid.kube.store import Freshness
from grid.kube.trouble import ClusterTrouble
from grid.metrics.usage import Usage
from grid.nodes.scaledown import ScaleDown
from grid.runtime.controllerlease import ControllerAway
from tests.nodes.node_listing import cards_of, pools_of, rows_of_nodes
from tests.support import builders
from tests.support.builders import MOMENT, decode, room_of
from tests.support.golden import assert_golden

NOW = MOMENT + timedelta(hours=3)
USAGE = Usage(cpu_millicores=1500, memory_bytes=6 * 2**30)
KEPT = ScaleDown("kept", "Kept: the pool is at its minimum of 1.")


def html_of(fragment: Fragment) -> str:
    return render_fragment(fragment, now=NOW)


def sums(name: str = "worker-1", *pods: Any, usage: Usage | None = USAGE, **arguments: Any) -> NodeSums:
    node = decode(builders.node(name, instance_type="m5.2xlarge", **arguments), Node)
    return node_sums(node, room_of(decode(pod, Pod) for pod in pods).requested("worker-1"), usage)


def running(name: str = "workspace-a", **arguments: Any) -> dict[str, Any]:
    return builders.pod(name, node="worker-1", phase="Running", ready=True, **arguments)


def node_conditions(**statuses: str) -> list[dict[str, Any]]:
    return [builders.condition(kind, status, message=f"About {kind}.") for kind, status in statuses.items()]


FRESHNESS = {
    "live": (Freshness(True, 0.3, ""), True),
    "not followed": (Freshness(True, 0.3, ""), False),
    "unread": (Freshness(False, 0.0, ""), True),
    "old": (Freshness(True, 7200.0, ""), False),
    "silent": (Freshness(True, 60.0, "Refused.", ClusterTrouble.SILENT, 3.0), True),
    "refused": (Freshness(True, 60.0, "The right is missing.", ClusterTrouble.REFUSED, 60.0), True),
    "throttled": (Freshness(True, 0.0, "It asks us to wait 12 s.", ClusterTrouble.THROTTLED, 4.0), True),
    "slow": (Freshness(True, 0.0, "Its last answers took 4.2 s and more.", ClusterTrouble.SLOW), True),
    "refused before all was read": (Freshness(False, 0.0, "The right is missing.", ClusterTrouble.REFUSED, 9.0), True),
}
WITHOUT_CONTROLLER = [NOW - timedelta(seconds=20), datetime(2026, 2, 27, 23, 59, 1, tzinfo=UTC), None]


def test_freshness_is_worded_as_stored() -> None:
    """Where nobody answers, no controller can be known to be away."""
    views = {name: freshness_view(fresh, now=NOW, is_followed=live) for name, (fresh, live) in FRESHNESS.items()}
    silent = Freshness(True, 42.0, "Connection refused.")
    for since in WITHOUT_CONTROLLER:
        for name, fresh in (("live", FRESHNESS["live"][0]), ("silent", silent)):
            views[f"{name}, no controller since {since}"] = freshness_view(fresh, now=NOW, away=ControllerAway(since))
    words = [f"> {name}\n{view.state}: {view.headline}: {view.detail}" for name, view in views.items()]
    assert_golden("words-of-freshness", "\n".join(words), ending="txt")


def test_freshness_behind_the_cluster_looks_as_stored() -> None:
    view = freshness_view(Freshness(True, 42.0, "Connection refused."), now=NOW)
    assert_golden("freshness-behind", html_of(freshness_fragment(view)))


ROWS = {
    "busy": (sums("worker-1", running(requests={"cpu": "3", "memory": "8Gi"}), extended={"nvidia.com/gpu": "2"}), KEPT),
    "platform": (
        sums(pool="core", labels={"dominodatalab.com/platform-node": "true"}),
        ScaleDown("unmanaged", "Not managed."),
    ),
    "marked": (sums(), ScaleDown("marked", "Unneeded; it can be removed", NOW + timedelta(minutes=4))),
}


@pytest.mark.parametrize("name", ROWS)
def test_node_row_looks_as_stored(name: str) -> None:
    node, answer = ROWS[name]
    [row, _paging] = rows_of_nodes([node], InfrastructureView(), lambda _: answer)
    assert_golden(f"node-row-{name}", html_of(row))


NODES: dict[str, dict[str, Any]] = {
    "joining": {"conditions": node_conditions(Other="True")},
    "in trouble": {"conditions": node_conditions(Ready="True", DiskPressure="True", MemoryPressure="True")},
    "cordoned": {"unschedulable": True},
}


def test_a_list_that_is_not_whole_yet() -> None:
    progress = Progress(looked_at=12_000, total=44_441)
    shown = unfinished("executions-paging", "execution", progress, matches=345, reload="?text=train")
    none = none_so_far("executions-none", "executions")
    assert_golden("unfinished-half-way", "\n".join(map(html_of, (shown, none))))


def test_a_pool_in_each_state() -> None:
    nodes = [
        sums("busy", running(requests={"cpu": "3", "memory": "4Gi"})),
        sums("lost", conditions=node_conditions(Ready="Unknown")),
    ]
    groups = {
        "default": NodeGroup("default", 1, 4, 3),
        "empty": NodeGroup("empty", 0, 2, 0, True, "no <b>capacity</b>"),
    }
    cards = cards_of([*nodes, sums("loose", pool="", usage=None)], groups, {"default": 2, "unknown": 1})
    assert [card.id for card in cards] == ["pool-default", "pool-empty", "pool-unknown", "pool-"]
    for name, card in zip(("growing", "empty", "unknown", "none"), cards, strict=True):
        assert_golden(f"pool-card-{name}", html_of(card))


def test_totals_and_empty_lists() -> None:
    assert_golden("totals", html_of(totals(pools_of([sums(), sums("p", pool="platform")]))))
    [nothing, _] = rows_of_nodes([], InfrastructureView(), lambda _: KEPT)
    assert_golden("nodes-none", html_of(nothing))
    [no_match, _] = rows_of_nodes([sums()], InfrastructureView(text="other"), lambda _: KEPT)
    assert_golden("nodes-no-match", html_of(no_match))
    assert_golden("totals-unfinished", html_of(totals({}, is_final=False)))
    assert_golden("events-none", html_of(history([])[0]))
    assert_golden("pods-none", html_of(pod_rows([])[0]))


def test_event_links_its_object_and_counts_repetitions() -> None:
    raw = builders.event("e", about=builders.node("n"), reason="NodeNotReady", kind="Warning", count=3)
    line = event_line(decode(raw, Event))
    assert_golden("event-warning", html_of(Fragment(line.id, "shell/fragments/event_item.html", line)))


def test_the_facts_of_a_node() -> None:
    node = sums(taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}, {"key": "slow", "effect": "NoExecute"}])
    assert_golden("node-facts", html_of(node_facts("worker-1", node.node, node_row(node, KEPT))))
    assert_golden("node-facts-gone", html_of(node_facts("worker-1", None, None)))


def ended(code: int, reason: str = "") -> list[dict[str, Any]]:
    return [builders.container_status(state={"terminated": {"exitCode": code, "reason": reason}})]


WITHOUT_IMAGE = builders.pod(
    "p",
    node="n",
    statuses=[builders.container_status(state={"waiting": {"reason": "ImagePullBackOff", "message": "no"}})],
)
PODS = {
    "running": running(
        labels={KEYS.execution: "abc"},
        owner=builders.config_map("anchor"),
        requests={"cpu": "1", "nvidia.com/gpu": "1"},
    ),
    "bad-image": WITHOUT_IMAGE,
}


@pytest.mark.parametrize("name", PODS)
def test_pod_looks_as_stored(name: str) -> None:
    pod = decode(PODS[name], Pod)
    assert_golden(f"pod-row-{name}", html_of(pod_rows([pod_row(pod, USAGE if name == "running" else None)])[0]))
    facts = pod_facts(
        pod, USAGE if name == "running" else None, KEYS, explain_pod(pod, [], now=NOW), None, sees_all=False
    )
    assert_golden(f"pod-facts-{name}", html_of(Fragment("facts", "nodes/fragments/pod_facts.html", facts)))


PODS_IN_TROUBLE: dict[str, dict[str, Any]] = {
    "waiting": {"conditions": [builders.condition("PodScheduled", "False", message="0/3 nodes.")]},
    "failed": {"node": "n", "phase": "Failed", "statuses": ended(137, "OOMKilled")},
    "ending": {"node": "n", "phase": "Running", "deletionTimestamp": builders.stamp(NOW)},
}


def test_status_of_node_and_pod_is_as_stored() -> None:
    nodes = {f"node, {name}": node_row(sums(**fields), KEPT).status for name, fields in NODES.items()}
    pods = {
        f"pod, {name}": pod_row(decode(builders.pod("p", **fields), Pod), None).status
        for name, fields in PODS_IN_TROUBLE.items()
    }
    words = [f"> {name}\n{status.severity} {status.word}: {status.note}" for name, status in (nodes | pods).items()]
    assert_golden("words-of-nodes-and-pods", "\n".join(words), ending="txt")


def test_row_shows_diagnosis_only_for_problems() -> None:
    troubled, well = (decode(raw, Pod) for raw in (WITHOUT_IMAGE, running()))
    notes = [pod_row(pod, None, None, explain_pod(pod, [], now=NOW)).status.note for pod in (troubled, well)]
    assert notes[0].startswith("The image")
    assert notes[1] == ""


def test_pods_with_similar_names_have_distinct_rows() -> None:
    alike = [("kube", "system-dns"), ("kube-system", "dns")]
    pods = [decode(builders.pod(name, namespace=namespace, node="n"), Pod) for namespace, name in alike]
    first, second = pod_rows(pod_row(pod, None) for pod in pods)
    assert first.id != second.id


def test_the_facts_of_a_pod_that_is_gone() -> None:
    facts = PodFacts("compute-grid", "p", None)
    assert_golden("pod-facts-gone", html_of(Fragment("facts", "nodes/fragments/pod_facts.html", facts)))


HOSTILE = "\"><script>alert(1)</script><hx-partial hx-target='#main'>/../{{ x }}"


def test_hostile_names_stay_text() -> None:
    node = decode(builders.node("n", pool=HOSTILE, instance_type=HOSTILE), Node)
    hostile = node_sums(node, {}, None)
    event = decode(
        builders.event(
            HOSTILE, about={"kind": "Pod", "metadata": {"name": HOSTILE}}, message=HOSTILE, component=HOSTILE
        ),
        Event,
    )
    fragments = [
        *rows_of_nodes([hostile], InfrastructureView(), lambda _: KEPT),
        *cards_of([hostile], {}, {}),
        *activity([event]),
    ]
    changes = [PageUpdate("fill", fragment.id, (fragment,)) for fragment in fragments]
    message = RenderedFragments().message(changes, now=NOW)
    assert "<script" not in message
    assert message.count("<hx-partial") == len(changes)
    assert message.count("</hx-partial>") == len(changes)


def test_rendered_fragments_are_remembered_up_to_a_limit() -> None:
    rendered = RenderedFragments(limit=2)
    fragments = [totals(pools_of([sums(str(number)) for number in range(count)])) for count in range(3)]
    for fragment in [*fragments, fragments[2], fragments[0]]:
        rendered.html(fragment, now=NOW)
    assert rendered.count == 4


def test_rendered_fragments_are_forgotten_when_unused() -> None:
    rendered = RenderedFragments()
    shown, *former = [totals(pools_of([sums(str(number)) for number in range(count)])) for count in range(10)]
    for seconds, fragment in enumerate(former):
        rendered.html(fragment, now=NOW + timedelta(seconds=seconds))
        rendered.html(shown, now=NOW + timedelta(seconds=seconds))
    assert len(rendered) == 10
    rendered.html(shown, now=NOW + KEPT_UNUSED)
    rendered.html(shown, now=NOW + KEPT_UNUSED + timedelta(seconds=6.5))
    assert len(rendered) == 3, "what is shown, and what was used within that time"
    assert rendered.count == 10


def test_tables_of_addresses_are_made_before_the_first_visitor(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(resolver: URLResolver) -> None:
        raise AssertionError("the first visitor waits for it")

    clear_url_caches()
    preload()
    monkeypatch.setattr(URLResolver, "_populate", make)
    assert reverse("queue") == "/queue/"
