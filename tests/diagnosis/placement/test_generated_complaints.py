"""Random clusters whose scheduler says more than the objects do: attach limits, claims, nominations; with taints of all kinds, and groups
that a cloud has named.

Each node that takes the pod by its objects has a complaint that only the scheduler knows, so nothing may say that there is room.
"""

import os
import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Node, Pod
from grid.kube.pools import PoolName, groups_by_pool
from tests.diagnosis.placement.oracle import CLOSING, STARTING
from tests.diagnosis.placement.test_generated import World, contradiction, make_world
from tests.diagnosis.placement.worlds import as_read, surroundings
from tests.support.builders import MOMENT, condition, decode

# What the scheduler says where the objects say nothing, and a word that a person then reads.
HIDDEN = {
    "node(s) exceed max volume count": "volumes attached",
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode": "ReadWriteOncePod",
    "cannot allocate all claims": "claim asks for",
    "node(s) did not pass Lab's own plugin": "Lab's own plugin",
    "node(s) did not have enough free storage": "too little left",
}
SAYS = {
    "cordon": "node(s) were unschedulable",
    "unready": "node(s) had untolerated taint(s)",
    "taint": "node(s) had untolerated taint(s)",
    "control_plane": "node(s) had untolerated taint(s)",
    "volume": "node(s) had volume node affinity conflict",
    "port": "node(s) didn't have free ports for the requested pod ports",
    "apart": "node(s) didn't match pod anti-affinity rules",
    "beside": "node(s) didn't match pod affinity rules",
    "spread": "node(s) didn't match pod topology spread constraints",
    "label": "node(s) didn't match pod topology spread constraints (missing required label)",
    "small": "Insufficient cpu",
    "broken": "Insufficient nvidia.com/gpu",
    "full": "Insufficient cpu",
}
TAINTED = (*STARTING, *CLOSING[1:], "node.kubernetes.io/out-of-service", "lab/reserved-by-ada")
CLOUD = "eks.amazonaws.com/nodegroup"


class Troubled(World):
    """A world whose scheduler answers truly, by the second opinion, with complaints of its own for the nodes that take the pod."""

    hidden: Counter[str]

    def explain(self, minutes: float = 5) -> Diagnosis:
        names = [PoolName("p", node["metadata"]["labels"].get(CLOUD, ""), has_nodes=True) for node in self.nodes]
        of_cloud = f"eks-workers-{'0' * 8}-{'0' * 4}-{'0' * 4}-{'0' * 4}-{'0' * 12}"
        groups = groups_by_pool({of_cloud: replace(self.group, name=of_cloud)}, names) if self.group else {}
        templates = {self.pool: decode(self.template, Node)} if self.template else {}
        scheduling = surroundings(self.nodes, self.pods, self.objects, groups=groups, templates=templates)
        return explain_pod(decode(self.pod, Pod), (), now=MOMENT + timedelta(minutes=minutes), scheduling=scheduling)


def make_troubled(seed: int) -> Troubled:
    chance, plain = random.Random(-seed - 1), make_world(seed)
    world = Troubled(plain.pod, plain.nodes, plain.pods, plain.objects, plain.group, plain.template)
    for node in world.nodes:
        if node["metadata"]["labels"].get(CLOUD) is None and chance.random() < 0.9:
            node["metadata"]["labels"][CLOUD] = "workers"
        if chance.random() < 0.25:
            taint = {"key": chance.choice(TAINTED), "effect": "NoSchedule"}
            node["spec"].setdefault("taints", []).append(taint)
    world.hidden, refusals = Counter(), Counter[str]()
    for kinds in world.reasons():
        if not kinds:
            world.hidden[chance.choice([*HIDDEN])] += 1
        else:
            known = [SAYS[kind] for kind in SAYS if kind in kinds]
            refusals[known[0] if known else "node(s) didn't match Pod's node affinity/selector"] += 1
    parts = ", ".join(f"{number} {text}" for text, number in (refusals + world.hidden).items())
    refusal = f"0/{len(world.nodes)} nodes are available: {parts or 'no nodes'}."
    is_nominated, is_refused = bool(world.nodes) and chance.random() < 0.15, chance.random() < 0.8
    conditions = [condition("PodScheduled", "False", "Unschedulable", refusal)]
    if is_nominated:
        world.pod["status"]["nominatedNodeName"] = chance.choice(world.nodes)["metadata"]["name"]
        conditions = conditions if is_refused else []
    world.pod["status"]["conditions"] = conditions
    return world


def overruled(world: Troubled) -> str:
    """Return what the diagnosis says against the scheduler; "" when there is nothing."""
    diagnosis = world.explain()
    everything = " ".join([diagnosis.sentence, diagnosis.next_step, *[row.what for row in diagnosis.table]])
    nominated, message = world.pod["status"].get("nominatedNodeName"), world.pod["status"]["conditions"]
    taints = [taint["key"] for node in world.nodes for taint in node["spec"].get("taints", [])]
    if nominated and not message:
        return "no pod is in its way, and some end" if "priority end" in everything else ""
    if nominated:
        return ""
    if "other work" in everything and not {"dedicated", "spot"} & set(taints):
        return "no taint is known to keep a node for other work"
    if not world.hidden:
        return ""
    if "has room" in everything or "have room" in everything:
        return "there is room, although the scheduler complains of each node"
    if diagnosis.is_normal or "Nothing to do" in diagnosis.next_step:
        return "this is normal, although the scheduler complains"
    unsaid = [word for text, word in HIDDEN.items() if world.hidden[text] and word not in diagnosis.sentence]
    return f"{unsaid} is not refusals" if unsaid else ""


def check(seed: int) -> None:
    world = make_troubled(seed)
    wrong = overruled(world) or (
        "" if world.hidden or world.pod["status"].get("nominatedNodeName") else contradiction(world)
    )
    assert not wrong, f"{seed}: {wrong}\n{as_read(world.explain())}\n{world.reasons()} {dict(world.hidden)}"


def test_scheduler_that_knows_more_is_never_overruled() -> None:
    for seed in range(200):
        check(seed)


def test_only_node_that_would_fit_is_starting_for_too_long() -> None:
    blamed = 0
    for seed in range(400):
        world = make_troubled(seed)
        diagnosis, reasons = world.explain(minutes=40), world.reasons()
        if "startup taint" in diagnosis.sentence:
            blamed += 1
            names = [node["metadata"]["name"] for node in world.nodes]
            assert reasons[names.index(diagnosis.link.removeprefix("node:"))] == {"unready"}, seed
            assert all(reasons), seed  # else there is room
    assert blamed


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_more_schedulers_are_never_overruled() -> None:
    for seed in range(200, int(os.environ.get("GRID_WORLDS", "4000"))):
        check(seed)
