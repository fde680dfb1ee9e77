"""What is said of a pod that waits for a node of a pool: with the autoscaler, with those who run there, and with foreign nodes around.

Read `tests/golden/words-of-pools.txt`.
"""

from datetime import timedelta
from typing import Any

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Node, Pod
from grid.kube.pools import NodeGroup
from tests.diagnosis.placement.worlds import as_read, surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, NAMESPACE, condition, decode, node, pod, stamp
from tests.support.golden import assert_golden

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


def refused(why: str) -> dict[str, Any]:
    return {"events": [event_saying("NotTriggerScaleUp", REFUSED + why)]}


def of_busy_pools() -> dict[str, Diagnosis]:
    other, failed = "1 node(s) didn't match Pod's node affinity/selector", "1 in backoff after failed scale-up"
    started = event_saying("TriggeredScaleUp", "pod triggered scale-up: [{p 1->2 (max: 5)}]", seconds=0)
    fresh = [*FULL, node("n3", pool="p", ready=False)]
    grown = {
        group: [event_saying("TriggeredScaleUp", f"pod triggered scale-up: [{{{group} 2->3 (max: 5)}}]", seconds=-290)]
        for group in ("p", "eks-p-0cc1")
    }

    def busy(nodes: list[Any] = FULL, **more: Any) -> Diagnosis:
        return explain(nodes, TAKERS, **more)

    return {
        "foreign nodes, no autoscaler": busy([*FULL, *FOREIGN]),
        "foreign nodes, the pool is at its maximum": busy([*FULL, *FOREIGN], group=(2, 2)),
        "foreign nodes, another is starting": busy([*FULL, *FOREIGN], group=(3, 5)),
        "foreign nodes, another may start": busy([*FULL, *FOREIGN], group=(2, 5)),
        "foreign nodes, the cloud has none": busy([*FULL, *FOREIGN], group=(2, 5), **refused(failed)),
        "the group is backed off": busy(group=(2, 5), backed_off=True),
        "the group is backed off, an event says another reason": busy(group=(2, 5), backed_off=True, **refused(other)),
        "another group is backed off": busy(group=(2, 5), backed_off=False, **refused(f"{failed}, {other}")),
        "some group is backed off": busy(group=(2, 5), **refused(f"{failed}, {other}")),
        "a started node is not there yet": busy(group=(3, 5), events=[started]),
        "a node was started, the status is old": busy(group=(2, 5), events=[started], minutes=0.5),
        "others took the started node": busy(group=(2, 5), events=[started]),
        "a started node is about to be ready": busy(fresh, group=(3, 5), events=[started]),
        "a present node shows that a new one may fit": busy(group=(2, 5), templates=a_template(cpu="2")),
        "a scale-up of the pool": busy(events=grown["p"]),
        "a scale-up of its group": busy(events=grown["eks-p-0cc1"]),
    }


def of_small_nodes() -> dict[str, Diagnosis]:
    small, two = [node("n1", pool="p", cpu="2")], [node("n1", pool="p", cpu="2"), node("n2", pool="p", cpu="2")]
    agent = pod("agent", node="n1", phase="Running", requests={"cpu": "1500m"}, owner=DAEMON_SET)
    full_elsewhere = refused("1 Insufficient cpu, 1 max node group size reached")
    return {
        "small, and another group is full": explain(two, group=(2, 5), **full_elsewhere),
        "small, and nothing is known of new ones": explain(two, group=(2, 5)),
        "small": explain(small),
        "small, and no larger one may come": explain(small, group=(1, 1), templates=a_template()),
        "small, and a larger one may come": explain(small, group=(1, 4), templates=a_template()),
        "too small beside its own pods": explain([node("n1", pool="p")], [agent]),
        "a new one is too small beside its own pods": explain(
            small, [agent], group=(1, 4), templates=a_template(cpu="4")
        ),
        "a new one is large enough beside its own pods": explain(
            small, [agent], group=(1, 4), templates=a_template(cpu="5")
        ),
    }


def of_empty_pools() -> dict[str, Diagnosis]:
    volumes = {"volumes": [{"name": "project", "persistentVolumeClaim": {"claimName": "c"}}]}
    world, zone = surroundings([], (), IN_ZONE_A), {"zone": "b"}
    elsewhere: dict[str, Any] = {"spec": volumes, "claims": world.claims, "volumes": world.volumes}
    ssd = {"nodeSelector": {NODE_POOL: "p", "disk": "ssd"}}
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    tolerated = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}

    def empty(nodes: list[Any] = FOREIGN, **template: Any) -> dict[str, Any]:
        return {"nodes": nodes, "group": (0, 5), "templates": a_template(**template)}

    return {
        "no node": explain(FOREIGN),
        "no node, and may start one": explain(FOREIGN, group=(0, 5)),
        "no node, and may have none": explain(FOREIGN, group=(0, 0)),
        "no node, and one is starting": explain(FOREIGN, group=(1, 5)),
        "no node, an event says too small": explain(
            FOREIGN, group=(0, 5), **refused("2 node(s) didn't match, 1 Insufficient cpu")
        ),
        **{f"a new node of {cpu} cores": explain(**empty(cpu=cpu)) for cpu in "238"},
        **{
            f"a new node of {cpu} cores beside {own} m": explain(**empty(cpu=cpu), templates_own={"p": {"cpu": own}})
            for cpu, own in (("3", 1), ("8", 5001), ("8", 5000))
        },
        "volume of another zone": explain(**empty(cpu="8", labels=zone), **elsewhere),
        "volume of another zone, and too small": explain(**empty(cpu="2", labels=zone), **elsewhere),
        "label not reported": explain(**empty([]), spec=ssd),
        "label reported": explain(**empty([], labels={"disk": "ssd"}), spec=ssd),
        "another value reported": explain(**empty([], labels={"disk": "hdd"}), spec=ssd),
        "tainted": explain(**empty([], taints=[taint])),
        "tainted, and tolerated": explain(**empty([], taints=[taint]), spec=tolerated),
    }


def of_present_nodes() -> dict[str, Diagnosis]:
    here = [node("n1", pool="p")]
    scratch: dict[str, Any] = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}
    missing: dict[str, dict[str, Any]] = {
        "project": {"persistentVolumeClaim": {"claimName": "c"}},
        "scratch": {"ephemeral": {}},
    }
    return {
        "claims are not known": explain(here, spec={"volumes": [scratch]}, claims=None),
        **{
            f"no claim for {name}": explain(here, spec={"volumes": [{"name": name, **source}]})
            for name, source in missing.items()
        },
        "new, and fits": explain(here, minutes=0.1),
    }


def test_pods_waiting_for_a_pool_are_told_as_stored() -> None:
    blocks = []
    for situations in (of_busy_pools(), of_small_nodes(), of_empty_pools(), of_present_nodes()):
        for name, why in situations.items():
            blocks += [f"# {name}", as_read(why), *(f"> {text}" for text in why.evidence)]
    assert_golden("words-of-pools", "\n".join(blocks), ending="txt")
