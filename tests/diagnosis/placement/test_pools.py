"""What is said of a pod that waits for a node of a pool: with the autoscaler, with those who run there, and with foreign nodes around."""

from datetime import timedelta
from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Node, Pod
from grid.kube.pools import NodeGroup
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, NAMESPACE, condition, decode, node, pod, stamp

ASKED = {"cpu": "3"}
FOREIGN = [node("f1", pool="q", unschedulable=True), node("f2", pool="q", ready=False), node("f3", pool="r", cpu="1")]
FULL = [node("n1", pool="p"), node("n2", pool="p")]
TAKERS = [pod(f"on-{name}", node=name, phase="Running", requests={"cpu": cpu}) for name, cpu in (("n1", "2"), ("n2", "3"))]  # fmt: skip
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "uid": "agent"}}
REFUSED = "pod didn't trigger scale-up: "


def explain(
    nodes: list[Any],
    pods: list[Any] | None = None,
    *,
    group: tuple[int, int] | None = None,
    events: list[Any] | None = None,
    minutes: float = 5,
    spec: dict[str, Any] | None = None,
    backed_off: bool | None = None,
    **scheduling: Any,
) -> Diagnosis:
    """`group` is the target and the maximum of the pool's node group."""
    unscheduled = condition("PodScheduled", "False", "Unschedulable", "0/9 nodes are available: 9 Insufficient cpu.")
    waiting = pod("w", requests=ASKED, conditions=[unscheduled], spec={"nodeSelector": {NODE_POOL: "p"}, **(spec or {})})  # fmt: skip
    groups = {"p": NodeGroup("p", 0, group[1], group[0], backed_off, "no capacity")} if group else None
    return explain_pod(
        decode(waiting, Pod), [decode(event, Event) for event in events or ()],
        now=MOMENT + timedelta(minutes=minutes), scheduling=surroundings(nodes, pods or (), groups=groups, **scheduling),
    )  # fmt: skip


BUSY = "Both nodes of the pool p that may take this are full: this needs 3 cores, none has more than 2 cores free"


@pytest.mark.parametrize(
    ("is_backed_off", "message", "code"),
    [
        (True, "", "no_stock"),
        (True, "1 node(s) didn't match Pod's node affinity/selector", "no_stock"),
        (False, "1 in backoff after failed scale-up, 1 node(s) didn't match Pod's node affinity/selector", "busy"),
        (None, "1 in backoff after failed scale-up, 1 node(s) didn't match Pod's node affinity/selector", "no_stock"),
    ],
)
def test_cloud_out_of_nodes_is_told_from_group_status(is_backed_off: bool | None, message: str, code: str) -> None:
    events = [event_saying("NotTriggerScaleUp", REFUSED + message)] if message else []
    diagnosis = explain(FULL, TAKERS, group=(2, 5), events=events, backed_off=is_backed_off)
    assert diagnosis.code == code
    assert ("no capacity" in diagnosis.evidence) == (code == "no_stock")


def test_full_group_elsewhere_does_not_hide_too_small_nodes() -> None:
    small = [node("n1", pool="p", cpu="2"), node("n2", pool="p", cpu="2")]
    events = [event_saying("NotTriggerScaleUp", f"{REFUSED}1 Insufficient cpu, 1 max node group size reached")]
    diagnosis = explain(small, group=(2, 5), events=events)
    assert (diagnosis.code, "not known" in diagnosis.sentence) == ("too_large", False)
    untold = explain(small, group=(2, 5))
    assert (untold.code, "not known" in untold.sentence) == ("too_large", True)


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        ({}, "busy", f"{BUSY}."),
        ({"group": (2, 2)}, "pool_full", f"{BUSY}; the pool has as many nodes as it may have (2)."),
        ({"group": (3, 5)}, "scale_up", f"{BUSY}; 1 more node is starting."),
        ({"group": (2, 5)}, "busy", f"{BUSY}; the autoscaler may start another (2 of at most 5 exist)."),
        (
            {"group": (2, 5), "events": [event_saying("NotTriggerScaleUp", REFUSED + "1 in backoff after failed scale-up")]},
            "no_stock", f"{BUSY}; the cloud could not deliver another node and is asked again after a while.",
        ),
    ],
)  # fmt: skip
def test_a_busy_pool_says_what_the_autoscaler_may_do(more: dict[str, Any], code: str, sentence: str) -> None:
    diagnosis = explain([*FULL, *FOREIGN], TAKERS, **more)
    assert (diagnosis.code, diagnosis.sentence) == (code, sentence)
    assert diagnosis.severity == "wait"


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        ({}, "no_such_node", "There is no node of the pool p."),
        ({"group": (0, 5)}, "no_such_node", "There is no node of the pool p; the autoscaler may start one (0 of at most 5 exist)."),
        ({"group": (0, 0)}, "no_such_node", "There is no node of the pool p; the pool may have 0 nodes."),
        ({"group": (1, 5)}, "scale_up", "There is no node of the pool p; 1 more node is starting."),
        (
            {"group": (0, 5), "templates": {"p": decode(node("t", pool="p", cpu="2"), Node)}},
            "too_large", "There is no node of the pool p, and a new one would be too small.",
        ),
        (
            {"group": (0, 5), "events": [event_saying("NotTriggerScaleUp", REFUSED + "2 node(s) didn't match, 1 Insufficient cpu")]},
            "too_large", "There is no node of the pool p, and a new one would be too small.",
        ),
    ],
)  # fmt: skip
def test_foreign_nodes_never_hide_that_the_pool_is_empty(more: dict[str, Any], code: str, sentence: str) -> None:
    diagnosis = explain(FOREIGN, **more)
    assert (diagnosis.code, diagnosis.sentence) == (code, sentence)


def test_pool_of_small_nodes_may_get_a_larger_one() -> None:
    large = decode(node("t", pool="p", cpu="8"), Node)
    small = [node("n1", pool="p", cpu="2")]
    assert explain(small).code == "too_large"
    assert explain(small, group=(1, 1), templates={"p": large}).code == "small_nodes"
    assert "the autoscaler may start another" in explain(small, group=(1, 4), templates={"p": large}).sentence


def test_node_filled_by_its_own_pods_stays_too_small() -> None:
    agent = pod("agent", node="n1", phase="Running", requests={"cpu": "1500m"}, owner=DAEMON_SET)
    diagnosis = explain([node("n1", pool="p")], [agent])
    assert diagnosis.code == "too_large"
    assert diagnosis.sentence.endswith("it needs 3 cores, the largest has 2.5 cores beside its own pods.")


@pytest.mark.parametrize(("template", "code"), [("4", "too_large"), ("5", "small_nodes")])
def test_new_node_will_run_the_pods_of_each_node(template: str, code: str) -> None:
    agent = pod("agent", node="n1", phase="Running", requests={"cpu": "1500m"}, owner=DAEMON_SET)
    templates = {"p": decode(node("t", pool="p", cpu=template), Node)}
    assert explain([node("n1", pool="p", cpu="2")], [agent], group=(1, 4), templates=templates).code == code


def test_alike_nodes_differ_by_whose_pods_fill_them() -> None:
    takers = [
        pod("someones", node="n1", phase="Running", requests={"cpu": "2"}),
        pod("agent", node="n2", phase="Running", requests={"cpu": "2"}, owner=DAEMON_SET),
    ]
    for nodes in (FULL, FULL[::-1]):
        rows = {row.names: row.lasting for row in explain(nodes, takers).table}
        assert rows == {("n1",): "for_now", ("n2",): "always"}


def test_the_table_says_who_runs_there_and_until_when() -> None:
    more: dict[str, Any] = {"phase": "Running", "status": {"startTime": stamp(MOMENT)}}
    takers = [
        pod("on-n1", node="n1", requests={"cpu": "2"}, spec={"activeDeadlineSeconds": 7200}, **more),
        pod("on-n2", node="n2", requests={"cpu": "3"}, spec={"activeDeadlineSeconds": 3600}, **more),
    ]
    (row,) = explain(FULL, takers, holder=lambda taker: f"alice's {taker.metadata.name}").table
    assert row.what == "full: at most 2 cores free, but 3 cores needed; taken by alice's on-n1 and alice's on-n2"
    until = MOMENT + timedelta(hours=1)
    assert (row.nodes, row.names, row.lasting, row.until) == (2, ("n1", "n2"), "for_now", until)
    assert explain(FULL, TAKERS).table[0].until is None, "pods without a deadline may run for ever"


def test_taken_port_is_free_when_all_its_users_ended() -> None:
    listening = {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 80}]}
    port: dict[str, Any] = {"initContainers": [listening]}
    here: dict[str, Any] = {"node": "n1", "phase": "Running", "requests": {"cpu": "100m"}}
    ending = {**port, "activeDeadlineSeconds": 3600}
    has_it = pod("has-it", spec=ending, status={"startTime": stamp(MOMENT)}, **here)
    for more, names, until in (
        ([], "alice's has-it", MOMENT + timedelta(hours=1)),
        ([pod("for-ever", spec=port, **here)], "alice's has-it and alice's for-ever", None),
    ):
        pods = [has_it, pod("beside", **here), *more]
        diagnosis = explain([FULL[0]], pods, spec=port, holder=lambda taker: f"alice's {taker.metadata.name}")
        (row,) = diagnosis.table
        assert (diagnosis.code, row.what, row.until) == ("conflict", f"port 80 is taken; used by {names}", until)


def test_deleted_pod_ends_with_its_grace_period() -> None:
    leaves = MOMENT + timedelta(minutes=6)
    leaving = pod("on-n1", node="n1", phase="Running", requests={"cpu": "2"}, deletionTimestamp=stamp(leaves))
    assert explain([FULL[0]], [leaving]).table[0].until == leaves


def test_started_node_taken_by_others_is_no_longer_awaited() -> None:
    started = event_saying("TriggeredScaleUp", "pod triggered scale-up: [{p 1->2 (max: 5)}]", seconds=0)
    assert explain(FULL, TAKERS, group=(3, 5), events=[started]).code == "scale_up", "the node is not there yet"
    assert explain(FULL, TAKERS, group=(2, 5), events=[started], minutes=0.5).code == "scale_up", "its status is old"
    diagnosis = explain(FULL, TAKERS, group=(2, 5), events=[started])
    assert (diagnosis.code, diagnosis.sentence) == (
        "busy", f"{BUSY}; the autoscaler may start another (2 of at most 5 exist).",
    )  # fmt: skip
    fresh = [*FULL, node("n3", pool="p", ready=False)]
    assert explain(fresh, TAKERS, group=(3, 5), events=[started]).code == "scale_up", "the node is about to be ready"


def test_unknown_claims_are_explained_by_the_message() -> None:
    scratch = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]}
    diagnosis = explain([node("n1", pool="p")], spec=scratch, claims=None)
    assert diagnosis.code != "volume", "nothing said that the volume is the reason"


@pytest.mark.parametrize("volume", ["project", "scratch"])
def test_a_missing_claim_is_named_by_what_it_holds(volume: str) -> None:
    source = {"ephemeral": {}} if volume == "scratch" else {"persistentVolumeClaim": {"claimName": "c"}}
    diagnosis = explain([node("n1", pool="p")], spec={"volumes": [{"name": volume, **source}]})
    assert diagnosis.code == "volume"
    assert ("project's files" in diagnosis.sentence) == (volume == "project")


def test_a_new_pod_that_fits_is_simply_placed_soon() -> None:
    diagnosis = explain([node("n1", pool="p")], minutes=0.1)
    assert (diagnosis.code, diagnosis.sentence) == ("scheduling", "Node n1 has room; looking.")


def test_pods_are_looked_at_on_named_nodes_only() -> None:
    asked: set[str] = set()
    nodes = [node(f"n{number}", pool="p", cpu="8") for number in range(500)]

    def pods_on(name: str) -> tuple[()]:
        asked.add(name)
        return ()

    takers = [pod(f"on-n{number}", node=f"n{number}", phase="Running", requests={"cpu": "6"}) for number in range(500)]
    explain(nodes, takers, pods_on=pods_on)
    assert 0 < len(asked) <= 3


def a_template(**more: Any) -> dict[str, Node]:
    return {"p": decode(node("t", pool="p", **{"cpu": "8", **more}), Node)}


NO_NODE = "There is no node of the pool p"
MAY_START = f"{NO_NODE}; the autoscaler may start one (0 of at most 5 exist)."
TOO_SMALL = f"{NO_NODE}, and a new one would be too small."
IN_ZONE_A = [
    {
        "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
        ]}}},
    },
    {
        "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": NAMESPACE},
        "spec": {"volumeName": "v"}, "status": {"phase": "Bound"},
    },
]  # fmt: skip


@pytest.mark.parametrize(
    ("cpu", "own", "sentence"),
    [("8", {}, MAY_START), ("2", {}, TOO_SMALL), ("3", {}, MAY_START), ("3", {"cpu": 1}, TOO_SMALL),
     ("8", {"cpu": 5001}, TOO_SMALL), ("8", {"cpu": 5000}, MAY_START)],
)  # fmt: skip
def test_pool_at_zero_gets_nodes_of_template_beside_daemons(cpu: str, own: dict[str, int], sentence: str) -> None:
    diagnosis = explain(FOREIGN, group=(0, 5), templates=a_template(cpu=cpu), templates_own={"p": own})
    assert diagnosis.sentence == sentence


@pytest.mark.parametrize(("cpu", "sentence"), [("8", MAY_START), ("2", TOO_SMALL)])
def test_volume_of_another_zone_makes_new_node_unknown(cpu: str, sentence: str) -> None:
    volumes = [{"name": "project", "persistentVolumeClaim": {"claimName": "c"}}]
    template, world = a_template(cpu=cpu, labels={"zone": "b"}), surroundings([], (), IN_ZONE_A)
    more: dict[str, Any] = {"templates": template, "claims": world.claims, "volumes": world.volumes}
    assert explain(FOREIGN, group=(0, 5), spec={"volumes": volumes}, **more).sentence == sentence


@pytest.mark.parametrize(("labels", "is_possible"), [({}, True), ({"disk": "ssd"}, True), ({"disk": "hdd"}, False)])
def test_unreported_label_may_be_there_unlike_another_value(labels: dict[str, str], is_possible: bool) -> None:
    spec = {"nodeSelector": {NODE_POOL: "p", "disk": "ssd"}}
    diagnosis = explain([], group=(0, 5), spec=spec, templates=a_template(labels=labels))
    assert ("the autoscaler may start one" in diagnosis.sentence, "too small" in diagnosis.sentence) == (
        is_possible,
        False,
    )


def test_taint_keeps_pod_off_new_nodes_without_shrinking_them() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    diagnosis = explain([], group=(0, 5), templates=a_template(taints=[taint]))
    assert (diagnosis.severity, diagnosis.sentence) == ("problem", f"{NO_NODE}.")
    tolerated = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    assert explain([], group=(0, 5), templates=a_template(taints=[taint]), spec=tolerated).sentence == MAY_START


def test_fitting_present_node_shows_that_new_one_may_fit() -> None:
    diagnosis = explain(FULL, TAKERS, group=(2, 5), templates=a_template(cpu="2"))
    assert diagnosis.sentence == f"{BUSY}; the autoscaler may start another (2 of at most 5 exist)."


@pytest.mark.parametrize(("group", "named"), [("p", "p ("), ("eks-p-0cc1", "p, its node group eks-p-0cc1 (")])
def test_scale_up_names_the_pool_and_its_group(group: str, named: str) -> None:
    events = [event_saying("TriggeredScaleUp", f"pod triggered scale-up: [{{{group} 2->3 (max: 5)}}]", seconds=-290)]
    diagnosis = explain(FULL, TAKERS, events=events)
    assert (diagnosis.code, f"in the pool {named}from 2 to 3 of at most 5); this" in diagnosis.sentence) == (
        "scale_up",
        True,
    )
