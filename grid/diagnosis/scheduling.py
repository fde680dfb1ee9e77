"""Explains in one sentence why a pod has no node yet, from the messages of the scheduler and the node autoscaler.

This is what is said while the nodes themselves are not known (`grid.diagnosis.placement` knows better). The scheduler counts each node
by its first complaint, over all pools: a closed node may be large enough, so no message with one in it makes a tier too large. The
messages are those recorded from Kubernetes 1.36 and autoscaler 1.30.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from grid.diagnosis.claims import claims_in_words
from grid.diagnosis.diagnosis import Diagnosis, latest, quoted, since
from grid.diagnosis.held import explain_held, explain_silence, is_settled, scheduler_message
from grid.diagnosis.selectors import in_words
from grid.kube.objects import Event, Pod
from grid.labels import NODE_POOL
from grid.wording import duration, listed, plural

# The autoscaler's own limit for a node to register.
_NODE_SHOULD_BE_THERE = timedelta(minutes=15)

_COUNTED = re.compile(r"(\d+) (.+?)(?=, \d+ |$)")
_AVAILABLE = re.compile(
    r"nodes are available: (.*?)(?:\. (?:no new claims|preemption:)|\.? not found$|\.?$)", re.DOTALL
)
_SCALE_UP = re.compile(r"\{(\S+) (\d+)->(\d+) \(max: (\d+)\)\}")
_SHORT = re.compile(r"Insufficient (\S+)")
_WORDS = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "disk space", "pods": "room for another pod"}
_TAINT = "untolerated taint"
_MISMATCH = ("affinity/selector", "plugin(s) [NodeAffinity]")
_CORDONED = "were unschedulable"
_TOO_MANY_PODS = "Too many pods"
_VOLUME = ("persistentvolumeclaim", "PersistentVolume", "persistent volumes", "ephemeral volume")
_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)"')
_FULL = ("max node group size reached", "max limit reached", "max cluster cpu", "max cluster memory", "max total nodes")
_BACKOFF = "in backoff after failed scale-up"


def counted_reasons(message: str) -> dict[str, int]:
    """Return the number of nodes (or node groups) for each reason in a message of the scheduler or the autoscaler."""
    found = _AVAILABLE.search(message)
    text = found[1] if found else message
    counted = {reason: int(count) for count, reason in _COUNTED.findall(text)}
    return counted or ({text: 0} if text else {})


def promised_size(events: Sequence[Event]) -> int:
    """Return the size to which the autoscaler last scaled up a pool for this pod, in nodes; 0 when it did not."""
    scaling = latest(events, "TriggeredScaleUp", "NotTriggerScaleUp")
    if scaling is None or scaling.reason != "TriggeredScaleUp":
        return 0
    return max((int(size) for _, _, size, _ in _SCALE_UP.findall(scaling.message)), default=0)


def explain_unscheduled(pod: Pod, events: Sequence[Event], *, now: datetime) -> Diagnosis:
    """Explain a pod without a node; `events` are its own, oldest first."""
    held = explain_held(pod, events, now=now)
    if held is not None:
        return held
    said = scheduler_message(pod, events)
    scaling = latest(events, "TriggeredScaleUp", "NotTriggerScaleUp")
    evidence = quoted(said, scaling.message if scaling else "")
    if scaling is not None and scaling.reason == "TriggeredScaleUp":
        return explain_scale_up(scaling, evidence, now)
    settled = is_settled(pod, now)
    reasons = counted_reasons(said)
    about_volumes = said or (scaling.message if scaling is not None else "")
    volume = explain_volume_message(pod, about_volumes, settled=settled)
    if volume is not None:
        return replace(volume, evidence=evidence)
    demands = _Demands.of(pod)
    if scaling is not None:
        return _not_scaling_up(counted_reasons(scaling.message), reasons, said, demands, evidence)
    if said:
        return _without_autoscaler(reasons, said, demands, evidence, settled=settled)
    return explain_silence(pod, now=now)


@dataclass(frozen=True, slots=True)
class _Demands:
    """Which nodes a pod asks for: those of a pool, "" for any, and what else they must be, in words."""

    pool: str
    others: tuple[str, ...]

    @classmethod
    def of(cls, pod: Pod) -> Self:
        spec = pod.spec
        others = [f"{key}={value}" for key, value in spec.node_selector.items() if key != NODE_POOL]
        affinity = spec.affinity.node_affinity if spec.affinity else None
        if affinity is not None and affinity.required is not None:
            others.append(in_words(affinity.required))
        return cls(spec.node_selector.get(NODE_POOL, ""), tuple(others))


def explain_scale_up(event: Event, evidence: tuple[str, ...], now: datetime) -> Diagnosis:
    """Explain a pod for which the autoscaler started a node."""
    waited = since(event.last_seen, now)
    found = _SCALE_UP.search(event.message)
    where = f" in the pool {found[1]} (from {found[2]} to {found[3]} of at most {found[4]})" if found else ""
    if waited > _NODE_SHOULD_BE_THERE:
        sentence = f"A new node{where} was requested {duration(waited)} ago and has not come."
        step = "Ask an operator to look at the node autoscaler."
        return Diagnosis("scale_up_slow", sentence, "problem", "operator", step, evidence)
    sentence = f"A new node is being started for you{where}; this usually takes a few minutes."
    return Diagnosis("scale_up", sentence, "wait", "", "Nothing to do: it starts by itself.", evidence, is_normal=True)


def _not_scaling_up(
    groups: Mapping[str, int], nodes: Mapping[str, int], said: str, demands: _Demands, evidence: tuple[str, ...]
) -> Diagnosis:
    """Explain a pod that the autoscaler does not scale up for; the autoscaler reconsiders every few seconds."""
    pool = demands.pool
    others = [reason for reason in groups if _BACKOFF not in reason]
    if len(others) < len(groups) and not all(map(_is_mismatch, others)):
        return _by_groups_alone(groups, evidence)
    if len(others) < len(groups):
        sentence = f"The cloud could not deliver a new node{_of(pool)}; it is tried again after a while."
        return Diagnosis(
            "no_stock", sentence, "wait", "operator", "Choose a tier on another node pool, or wait.", evidence
        )
    at_maximum = any(map(_is_full, groups))
    if at_maximum and not nodes:
        return _by_groups_alone(groups, evidence)
    if at_maximum and _short_of(nodes) and not _never_fits(said):
        sentence = (
            f"All nodes{_of(pool)} are busy, and the pool has as many nodes as it may have. "
            "This starts when another execution ends."
        )
        step = "Wait, choose another tier, or ask your admin for a larger pool."
        return Diagnosis("pool_full", sentence, "wait", "admin", step, evidence)
    short = _resources_short(groups)
    if short and not at_maximum and (_never_fits(said) or not _short_of(nodes)):
        return _too_small(short, nodes, pool, evidence)
    if not nodes:  # the counts below would be of node groups
        nodes = {reason: 0 for reason in groups if _is_mismatch(reason)}
    return _without_autoscaler(nodes, said, demands, evidence, settled=True)


def _by_groups_alone(groups: Mapping[str, int], evidence: tuple[str, ...]) -> Diagnosis:
    """Explain a pod that the autoscaler has not tried on some node groups: they are at their maximum, or the cloud delivered no node for
    them. Nobody knows whether one of their nodes would take it. The other groups were tried, some with several complaints."""
    full = sum(count for reason, count in groups.items() if _is_full(reason))
    failed = sum(count for reason, count in groups.items() if _BACKOFF in reason)
    parts = [f"{plural(full, 'node group')} {'has' if full == 1 else 'have'} as many nodes as allowed"] if full else []
    if failed:
        parts.append(
            f"the cloud could not deliver a node of {plural(failed, 'node group')}, and is asked again after a while"
        )
    untried = len(parts)
    small, others = _resources_short(groups), []
    if small:
        others.append(f"be too small ({listed(small)})")
    if any(map(_is_mismatch, groups)):
        others.append("not match what this asks for")
    rest = [f"{count} {reason}" for reason, count in groups.items()
            if not (_is_full(reason) or _BACKOFF in reason or _is_mismatch(reason) or _SHORT.match(reason))]  # fmt: skip
    parts += [*([f"a new node of another would {' and '.join(others)}"] if others else []), *rest]
    sentence = f"The autoscaler starts no node for this: {'; '.join(parts)}."
    if len(parts) == untried and failed:
        return Diagnosis("no_stock", sentence, "wait", "operator", "Choose another tier, or wait.", evidence)
    if len(parts) == untried:
        step = "Wait, choose another tier, or ask your admin for a larger pool."
        return Diagnosis("pool_full", sentence, "wait", "admin", step, evidence)
    step = "Choose another tier, or show an operator the messages below."
    return Diagnosis("unschedulable", sentence, "problem", "operator", step, evidence)


def _without_autoscaler(
    reasons: Mapping[str, int], said: str, demands: _Demands, evidence: tuple[str, ...], *, settled: bool
) -> Diagnosis:
    short, pool = _short_of(reasons), demands.pool
    if short and _never_fits(said) and settled:
        return _too_small(short, reasons, pool, evidence)
    if short:
        sentence = (
            f"The nodes{_of(pool)} have too little left: {listed(short)}. "
            "This starts when something ends there or a node is added."
        )
        step = "Wait, stop something that you do not need, or choose a smaller tier."
        return Diagnosis("busy", sentence, "wait", "you", step, evidence)
    if not settled:
        return Diagnosis("scheduling", f"No node{_of(pool)} is free yet; looking.", "wait", "", "", evidence)
    return _no_node(reasons, said, demands, evidence)


def _no_node(reasons: Mapping[str, int], said: str, demands: _Demands, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain a pod that no node takes for reasons other than resources, so waiting alone will not help."""
    pool = demands.pool
    cordoned = sum(count for reason, count in reasons.items() if _CORDONED in reason)
    tainted = sum(count for reason, count in reasons.items() if _TAINT in reason)
    foreign = sum(count for reason, count in reasons.items() if _is_mismatch(reason))
    if pool and foreign and cordoned + tainted:
        # The scheduler says the first complaint of each node, so the closed ones may be of any pool.
        sentence = (
            f"No open node{_of(pool)}: of the whole cluster, {plural(cordoned + tainted, 'node')} "
            f"{'is' if cordoned + tainted == 1 else 'are'} cordoned, tainted or not ready, and {foreign:,} of other pools."
        )
        step = "Choose another tier, or ask an operator about the pool's nodes."
        return Diagnosis("no_such_node", sentence, "problem", "operator", step, evidence)
    if cordoned:
        sentence = f"{plural(cordoned, 'node')} of the cluster may not take new work now."
        step = "Ask an operator whether the nodes are being repaired."
        return Diagnosis("cordoned", sentence, "problem", "operator", step, evidence)
    if tainted:
        sentence = f"{plural(tainted, 'node')} cannot take this: kept for other work, or not healthy."
        step = "Ask an operator about the nodes' taints, or choose another tier."
        return Diagnosis("tainted", sentence, "problem", "operator", step, evidence)
    if foreign and (demands.others or not pool):
        what = (
            f"has what this asks for: {listed(demands.others)}"
            if demands.others
            else "matches the labels that this asks for"
        )
        sentence = f"No node{_of(pool)} {what}."
        step = "Choose another tier; tell your admin that no node takes this one."
        return Diagnosis("not_selected", sentence, "problem", "admin", step, evidence)
    if any(map(_is_mismatch, reasons)) or "no nodes available" in said:
        sentence = f"There is no node{_of(pool)}, and none is being started."
        step = "Choose another tier; tell your admin that this one's node pool is empty."
        return Diagnosis("no_such_node", sentence, "problem", "admin", step, evidence)
    step = "Show an operator the messages below."
    return Diagnosis("unschedulable", "No node can take this now.", "problem", "operator", step, evidence)


def explain_volume_message(pod: Pod, said: str, *, settled: bool) -> Diagnosis | None:
    """Explain a pod by the scheduler's words on its volumes; None when they say nothing of them."""
    reasons = counted_reasons(said)
    if not any(word in reason for reason in reasons for word in _VOLUME):
        return None
    words = listed(
        claims_in_words(pod, said)
        or [f"the volume claim {one}" for one in _CLAIM.findall(said)]
        or ["one of its claims"]
    )
    if any("node affinity" in reason for reason in reasons):
        sentence = f"No free node of this tier can reach {words}."
    elif "ephemeral volume controller" in said:
        sentence = f"Not made yet: {words}."
    elif any("not found" in reason or "available persistent volumes" in reason for reason in reasons):
        sentence = f"There is no volume for {words}."
    else:
        sentence = f"The volume for {words} is not ready yet."
        if not settled:
            return Diagnosis("volume", sentence, "wait", "", "Nothing to do: it is being made.")
    return Diagnosis("volume", sentence, "problem", "admin", "Ask your admin to look at the volume.", link="project")


def _too_small(short: Sequence[str], nodes: Mapping[str, int], pool: str, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain a pod that is larger than each node of which the scheduler says a size: it says none of a closed node's."""
    closed = sum(count for reason, count in nodes.items() if _TAINT in reason or _CORDONED in reason)
    if closed:
        be = "is" if closed == 1 else "are"
        sentence = (
            f"No node{_of(pool)} that is open to this is large enough: {listed(short)}. "
            f"Of the whole cluster, {plural(closed, 'node')} {be} cordoned, tainted or not ready."
        )
        step = "Choose a smaller tier, or ask an operator about the nodes that are closed."
        return Diagnosis("small_nodes", sentence, "problem", "operator", step, evidence)
    sentence = f"No node{_of(pool)} is large enough for this tier, not even an empty one: {listed(short)}."
    step = "Choose a smaller tier; tell your admin that this one fits no node."
    return Diagnosis("too_large", sentence, "problem", "admin", step, evidence)


def _is_full(reason: str) -> bool:
    return any(words in reason for words in _FULL)


def _is_mismatch(reason: str) -> bool:
    return any(words in reason for words in _MISMATCH)


def _short_of(reasons: Mapping[str, int]) -> list[str]:
    """Return "CPU on 2 nodes" for each resource that is short."""
    short = []
    for reason, count in reasons.items():
        found = _SHORT.match(reason)
        if found or reason == _TOO_MANY_PODS:
            what = _resource(found[1] if found else "pods")
            short.append(f"{what} on {plural(count, 'node')}")
    return short


def _resources_short(groups: Mapping[str, int]) -> list[str]:
    """Return the resources that new nodes would lack, without the counts, which are of node groups."""
    return [_resource(found[1]) for found in map(_SHORT.match, groups) if found]


def _resource(name: str) -> str:
    return "GPUs" if name.endswith("/gpu") else _WORDS.get(name, name)


def _never_fits(said: str) -> bool:
    """Return True when the scheduler found that even preempting other pods would not make room."""
    return "Preemption is not helpful" in said and "No preemption victims" not in said


def _of(pool: str) -> str:
    return f" of the pool {pool}" if pool else ""
