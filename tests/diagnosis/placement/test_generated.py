"""Random clusters: no sentence about a waiting pod contradicts what a simple second opinion says of each node."""

import os
import random
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Node, Pod
from grid.kube.pools import NodeGroup
from tests.diagnosis.placement.oracle import CONTROL_PLANE, CORDON, Raw, alone, devices, in_domains, on, reasons, spread
from tests.diagnosis.placement.worlds import as_read, surroundings
from tests.support.builders import MOMENT, NAMESPACE, condition, decode, node, pod, stamp

FOREIGN = {"pool", "selector", "affinity", "label", "control_plane"}
BETWEEN = {"port", "apart", "beside", "spread"}
TAINTS: list[Raw] = [
    {"key": "dedicated", "value": "infra", "effect": "NoSchedule"},
    {"key": "soft", "value": "1", "effect": "PreferNoSchedule"},
    {"key": "spot", "value": "yes", "effect": "NoExecute"},
    {"key": CONTROL_PLANE, "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"},
]
TOLERATIONS: list[Raw] = [
    {"key": "dedicated", "operator": "Equal", "value": "infra", "effect": "NoSchedule"},
    {"key": "dedicated", "operator": "Equal", "value": "other"},
    {"key": "spot", "operator": "Exists"},
    {"operator": "Exists", "effect": "NoExecute"},
]


EXPRESSIONS: list[Raw] = [
    {"key": "zone", "operator": "In", "values": ["a"]},
    {"key": "zone", "operator": "In", "values": ["b", "c"]},
    {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
    {"key": "rack", "operator": "Exists"},
    {"key": "rack", "operator": "DoesNotExist"},
    {"key": "rack", "operator": "Gt", "values": ["1"]},
    {"key": "host", "operator": "NotIn", "values": ["n0", "n1"]},
]
TOPOLOGY = ["zone", "rack", "host", "kubernetes.io/hostname"]


EVERY = -1
ALL_OF = {"it": 1, "the other": 1, "the third": 1, "the last": 1, "both": 2, "each": EVERY, "none": EVERY, "neither": 2}
_WHO = r"(it|both|each|the other \d+|the other|the third|the last|\d+|none|neither)"
# A kind of clause, and whether it speaks of all nodes of its kind; there may be several clauses on other pods.
CLAUSES = [
    ("full", re.compile(rf"{_WHO} (?:is|are) full"), True),
    ("apart", re.compile(rf"{_WHO} (?:already runs?|(?:is|are) in a \S+ that already runs) .*"), False),
    (
        "beside",
        re.compile(rf"{_WHO} (?:runs?|(?:is|are) in a \S+ that runs) .*which (?:it|this) must be beside"),
        False,
    ),
    ("spread", re.compile(rf"{_WHO} ha(?:s its|ve their) share of an even spread"), False),
    ("port", re.compile(rf"port .+ is taken on {_WHO}"), True),
]


@dataclass
class World:
    """A cluster with one waiting pod. `group` and `template` are the autoscaler's for the pod's pool."""

    pod: Raw
    nodes: list[Raw]
    pods: list[Raw]
    objects: list[Raw] = field(default_factory=list)
    group: NodeGroup | None = None
    template: Raw | None = None

    @property
    def pool(self) -> str:
        return str(self.pod["spec"]["nodeSelector"][NODE_POOL])

    @property
    def volumes(self) -> list[Raw]:
        return [item for item in self.objects if item["kind"] == "PersistentVolume"]

    def reasons(self) -> list[set[str]]:
        return [reasons(self.pod, each_node, self.nodes, self.pods, self.volumes) for each_node in self.nodes]

    def of_template(self) -> set[str] | None:
        """Return what keeps the pod off a new node, on which the agent will run if it runs on each node of the pool; None when that is not
        known. A node of the pool that would take it while empty shows that a new one may."""
        if self.template is None:
            return None
        of_pool = [
            why
            for each_node, why in zip(self.nodes, self.reasons(), strict=True)
            if each_node["metadata"]["labels"][NODE_POOL] == self.pool
        ]
        if any(why <= {"unready", "broken", "cordon", "full", "port", "apart"} for why in of_pool):
            return set()
        agents = [
            [its_pod for its_pod in on(each, self.pods) if its_pod["metadata"].get("ownerReferences")]
            for each in self.nodes if each["metadata"]["labels"][NODE_POOL] == self.pool
        ]  # fmt: skip
        each = [
            alone(self.pod, self.template, own, self.volumes) for own in (agents if agents and all(agents) else [[]])
        ]
        common = set.intersection(*each)  # the agent has a port on some nodes only: it may lack it on a new one
        certain = common - {"volume", "label", "affinity"}  # a new node may come in another zone
        return None if common and not certain else certain

    def explain(self) -> Diagnosis:
        scheduling = surroundings(
            self.nodes, self.pods, self.objects,
            groups={self.group.name: self.group} if self.group else None,
            templates={self.pool: decode(self.template, Node)} if self.template else {},
        )  # fmt: skip
        return explain_pod(decode(self.pod, Pod), (), now=MOMENT + timedelta(minutes=5), scheduling=scheduling)


def a_pod(name: str, chance: random.Random, *, most: int, **more: Any) -> Raw:
    requests = {"cpu": str(chance.randint(1, most)), "memory": f"{chance.randint(1, 2 * most)}Gi"}
    if chance.random() < 0.2:
        requests["nvidia.com/gpu"] = str(chance.randint(1, 4))
    return pod(name, requests=requests, **more)


def a_node(name: str, chance: random.Random, pool: str) -> Raw:
    return node(
        name, pool=pool, cpu=str(chance.choice([2, 4, 8])), memory=f"{chance.choice([4, 8, 16])}Gi",
        pods=chance.choice([2, 5, 110]), ready=chance.random() < 0.85, unschedulable=chance.random() < 0.15,
        taints=chance.sample(TAINTS, 1) if chance.random() < 0.3 else None,
        labels={
            "zone": chance.choice(["a", "b"]), "disk": chance.choice(["ssd", "hdd"]), "host": name,
            **({"rack": chance.choice(["1", "2", "3"])} if chance.random() < 0.8 else {}),
        },
        extended={"nvidia.com/gpu": "2"} if chance.random() < 0.3 else None,
    )  # fmt: skip


def break_devices(nodes: list[Raw], chance: random.Random) -> None:
    """Let some nodes have more GPUs than they offer, or none that their device plugin still counts."""
    for each_node in nodes:
        status, name = each_node["status"], "nvidia.com/gpu"
        if name in status["allocatable"] and chance.random() < 0.4:
            status["capacity"] = {**status["capacity"], name: chance.choice(["4", "0"])}
            status["allocatable"] = {**status["allocatable"], name: "0"}
            if status["capacity"][name] == "4":
                status["allocatable"][name] = chance.choice(["0", "1"])
            else:
                each_node["metadata"]["labels"]["nvidia.com/gpu.count"] = "2"


def cordon(nodes: list[Raw], chance: random.Random) -> None:
    """Taint cordoned nodes, as Kubernetes does a moment later; a spread of pods counts them by the taint."""
    for each_node in nodes:
        if each_node["spec"].get("unschedulable") and chance.random() < 0.7:
            each_node["spec"].setdefault("taints", []).append({"key": CORDON, "effect": "NoSchedule"})


def make_world(seed: int) -> World:
    chance = random.Random(seed)
    pools = ["p", "p", "p", "q"]
    nodes = [a_node(f"n{number}", chance, chance.choice(pools)) for number in range(chance.randint(0, 7))]
    if chance.random() < 0.1:
        nodes = [each_node for each_node in nodes if each_node["metadata"]["labels"][NODE_POOL] != "p"]
    pods: list[Raw] = []
    for each_node in nodes:
        at = each_node["metadata"]["name"]
        for number in range(chance.randint(0, 3)):
            phase = chance.choice(["Running", "Running", "Succeeded"])
            pods.append(a_pod(f"{at}-{number}", chance, most=3, node=at, phase=phase))
        if chance.random() < 0.5:
            own = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "uid": "agent"}}
            pods.append(pod(f"agent-{at}", node=at, phase="Running", requests={"cpu": "1", "memory": "1Gi"}, owner=own))
    spec: Raw = {"nodeSelector": {NODE_POOL: "p"}, "tolerations": chance.sample(TOLERATIONS, chance.randint(0, 2))}
    if chance.random() < 0.2:
        spec["nodeSelector"]["disk"] = chance.choice(["ssd", "hdd", "tape"])
    objects: list[Raw] = []
    if chance.random() < 0.3:
        zone = {"key": "zone", "operator": "In", "values": [chance.choice(["a", "b", "c"])]}
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
        objects = [
            {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"nodeAffinity": affinity}},
            {
                "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": NAMESPACE},
                "spec": {"volumeName": "v"}, "status": {"phase": "Bound"},
            },
        ]  # fmt: skip
        spec["volumes"] = [{"name": "project", "persistentVolumeClaim": {"claimName": "c"}}]
    group = template = None
    if chance.random() < 0.4:
        group, template = a_group(nodes, chance)
    condition_said = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 of many reasons.")
    waiting = a_pod("waiting", chance, most=chance.choice([3, 9]), spec=None, conditions=[condition_said])
    waiting["spec"].update(spec)
    if chance.random() < 0.25:
        give_ports(waiting, pods, chance)
    cordon(nodes, chance)
    break_devices(nodes, chance)
    if chance.random() < 0.4:
        relate(waiting, pods, chance)
    if chance.random() < 0.3:
        choose_nodes(waiting, chance)
    return World(waiting, nodes, pods, objects, group, template)


def a_group(nodes: list[Raw], chance: random.Random) -> tuple[NodeGroup, Raw | None]:
    target = sum(each_node["metadata"]["labels"][NODE_POOL] == "p" for each_node in nodes) + chance.choice([0, 0, 0, 1])
    group = NodeGroup("p", 0, target + chance.choice([0, 0, 3]), target, is_backed_off=chance.random() < 0.3)
    template = None
    if chance.random() < 0.5:
        template = node(
            "new", pool="p", cpu=str(chance.choice([2, 8])), labels={"zone": "a", "disk": "ssd", "rack": "1"}
        )
    return group, template


def choose_nodes(waiting: Raw, chance: random.Random) -> None:
    terms = [
        {"matchExpressions": chance.sample(EXPRESSIONS, chance.choice([1, 1, 2]))}
        for _ in range(chance.choice([1, 1, 2]))
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    waiting["spec"].setdefault("affinity", {})["nodeAffinity"] = required


def give_ports(waiting: Raw, pods: list[Raw], chance: random.Random) -> None:
    for each_pod in (waiting, *pods):
        if each_pod is waiting or chance.random() < 0.5:
            port = chance.choice([80, 443])
            each_pod["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]


def relate(waiting: Raw, pods: list[Raw], chance: random.Random) -> None:
    """Give some of the pods rules about each other."""
    for each_pod in (waiting, *pods):
        each_pod["metadata"]["labels"] = {"app": chance.choice("ab")}
        if each_pod is not waiting and chance.random() < 0.2:
            each_pod["metadata"]["namespace"] = "other"
        if each_pod is not waiting and chance.random() < 0.1:
            each_pod["metadata"]["deletionTimestamp"] = stamp(MOMENT)
    kinds = {"podAntiAffinity": [each_pod for each_pod in pods if chance.random() < 0.1], "podAffinity": []}
    kinds[chance.choice([*kinds])].append(waiting)
    for kind, having in kinds.items():
        for each_pod in having:
            rules = [a_term(chance) for _ in range(chance.choice([1, 1, 2]))]
            each_pod["spec"]["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": rules}}
    if chance.random() < 0.5:
        if chance.random() < 0.7:
            waiting["spec"].pop("affinity", None)
        waiting["spec"]["topologySpreadConstraints"] = [
            {
                "topologyKey": chance.choice(TOPOLOGY), "maxSkew": chance.choice([1, 1, 2]),
                "whenUnsatisfiable": chance.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
                "labelSelector": {"matchLabels": {"app": chance.choice("ab")}},
                "minDomains": chance.choice([1, 1, 3]),
                "nodeTaintsPolicy": chance.choice(["Ignore", "Honor"]),
                "nodeAffinityPolicy": chance.choice(["Ignore", "Honor"]),
            }
            for _ in range(chance.choice([1, 2]))
        ]  # fmt: skip


def a_term(chance: random.Random) -> Raw:
    selector = {"matchLabels": {"app": chance.choice("ab")}}
    namespaces = {"namespaces": ["other"]} if chance.random() < 0.2 else {}
    return {"topologyKey": chance.choice(TOPOLOGY), "labelSelector": selector, **namespaces}


def contradiction(world: World) -> str:
    """Return the first claim of the diagnosis that the second opinion denies; "" when there is none."""
    diagnosis, each = world.explain(), world.reasons()
    usable = [kinds for kinds in each if not kinds & FOREIGN]
    open_ones = [kinds for kinds in usable if not kinds & {"cordon", "taint", "unready"}]
    waiting = [kinds for kinds in open_ones if kinds and kinds <= {"full", *BETWEEN}]
    template = world.of_template()
    in_pool = [kinds for kinds in each if "pool" not in kinds]
    starting = world.group is not None and world.group.target > len(
        [each_node for each_node in world.nodes if each_node["metadata"]["labels"][NODE_POOL] == world.pool]
    )
    at_maximum = world.group is not None and world.group.target >= world.group.maximum
    may_start = world.group is not None and not at_maximum and not template
    is_backed_off = world.group is not None and bool(world.group.is_backed_off)
    claims = {
        "has room": ("has room" in diagnosis.sentence or "have room" in diagnosis.sentence, any(not kinds for kinds in usable)),
        "busy": (diagnosis.code in ("busy", "pool_full", "conflict"), bool(waiting)),
        "conflict": (diagnosis.code == "conflict", any(bool(waiting) and all(kind in kinds for kinds in waiting) for kind in BETWEEN)),
        "too large": (
            diagnosis.code == "too_large",
            all("small" in kinds for kinds in usable) and bool(open_ones or template),
        ),
        "broken": (
            diagnosis.code == "broken_devices",
            any("broken" in kinds and "small" not in kinds for kinds in open_ones) and not waiting,
        ),
        "absent": ("No node has" in diagnosis.sentence, not any(devices(each_node, "nvidia.com/gpu") for each_node in world.nodes)),
        "too large, the template": (diagnosis.code == "too_large" and template is not None, bool(template)),
        "no such node": (diagnosis.code == "no_such_node", not usable and not [kinds for kinds in in_pool if "control_plane" not in kinds]),
        "not selected": (diagnosis.code == "not_selected", bool(in_pool) and not usable),
        "cordoned": (diagnosis.code == "cordoned", any("cordon" in kinds for kinds in usable) and not waiting),
        "tainted": (diagnosis.code == "tainted", any("taint" in kinds for kinds in usable) and not waiting),
        "not ready": (diagnosis.code == "not_ready", any("unready" in kinds for kinds in usable) and not waiting),
        "volume": (diagnosis.code == "volume", any("volume" in kinds for kinds in open_ones) and not waiting),
        "only one large enough": ("only one large enough" in diagnosis.sentence, sum("small" not in kinds for kinds in usable) == 1),
        "starting": (diagnosis.code == "scale_up", starting and not template),
        "at its maximum": (diagnosis.code == "pool_full", at_maximum),
        "may start": ("autoscaler may start" in diagnosis.sentence, may_start and not is_backed_off),
        "out of stock": (diagnosis.code == "no_stock", may_start and is_backed_off),
        "all nodes are counted": (bool(diagnosis.table) or bool(each), sum(row.nodes for row in diagnosis.table) == len(each)),
    }  # fmt: skip
    return next((claim for claim, (claimed, holds) in claims.items() if claimed and not holds), "")


def row_contradiction(world: World) -> str:
    """Compare the table with the second opinion, node by node where the table names the nodes."""
    words = {
        "cordon": "cordoned", "unready": ("not ready", "short of disk"), "taint": "taint ", "small": "too small", "broken": "do not work",
        "full": "full: ", "volume": "cannot reach", "port": "is taken",
        "apart": "apart", "beside": "which this must be beside", "spread": "an even spread",
    }  # fmt: skip
    each = dict(zip((each_node["metadata"]["name"] for each_node in world.nodes), world.reasons(), strict=True))
    for row in world.explain().table:
        for name in row.names:
            if each[name] & FOREIGN:
                continue
            for reason, texts in words.items():
                is_named = any(text in row.what for text in ([texts] if isinstance(texts, str) else texts))
                hidden = reason == "full" and "small" in each[name]  # what never fits is not also called full
                if is_named != (reason in each[name]) and not hidden:
                    return f"{name}: {reason} is {'not ' if is_named else ''}so, but the row is “{row.what}”"
    return ""


def count_contradiction(world: World) -> str:
    """Compare how many nodes have what, and how many pods a domain has, with the second opinion."""
    sentence = world.explain().sentence
    waiting = [kinds for kinds in world.reasons() if kinds and kinds <= {"full", *BETWEEN}]
    clauses = sentence.partition(" for it: ")[2].rstrip(".").split("; ")
    for clause in clauses:
        for kind, expression, is_whole in CLAUSES:
            if (match := expression.fullmatch(clause)) is None:
                continue
            who, number = match[1], sum(kind in kinds for kinds in waiting)
            claimed = ALL_OF.get(who) or int(who.removeprefix("the other "))
            claimed = len(waiting) if claimed == EVERY else claimed
            if claimed > number or (is_whole and claimed != number):
                return f"{number} of {len(waiting)} nodes have {kind}: “{clause}”"
    for area, names, number in re.findall(r"([a-z]\w*) (\w+(?: and \w+)?) ha(?:s|ve) (\d+)", "; ".join(clauses)):
        known = [
            in_domains(rule, world.pod, world.nodes, world.pods)
            for rule in spread(world.pod)
            if rule["topologyKey"].endswith(area.replace("nodes", "name").replace("node", "name"))
        ]
        if not any(all(counts.get(name) == int(number) for name in names.split(" and ")) for counts in known):
            return f"{area} {names} does not have {number}: {known}"
    return ""


def check(seed: int) -> None:
    world = make_world(seed)
    wrong = contradiction(world) or row_contradiction(world) or count_contradiction(world)
    assert not wrong, f"{wrong}\n{as_read(world.explain())}\n{world.reasons()} {world.group} {bool(world.template)}"


def test_no_sentence_contradicts_the_objects() -> None:
    for seed in range(300):
        check(seed)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_sentence_of_many_more_clusters_contradicts_the_objects() -> None:
    for seed in range(300, int(os.environ.get("GRID_WORLDS", "6000"))):
        check(seed)


def test_the_clusters_differ_enough() -> None:
    codes = {make_world(seed).explain().code for seed in range(300)}
    assert {"unschedulable", "busy", "pool_full", "too_large", "no_such_node", "not_selected", "cordoned", "tainted", "not_ready",
            "volume", "scale_up", "no_stock", "conflict"} <= codes  # fmt: skip
    met = {reason for seed in range(300) for each in make_world(seed).reasons() for reason in each}
    assert met >= {"label", "affinity", *BETWEEN, "small", "broken", "full"}
