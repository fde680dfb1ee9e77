"""Explains in one sentence why a pod has no node yet, from the messages of the scheduler and the node autoscaler.

This is what is said while the nodes themselves are not known (`grid.diagnosis.placement` knows better). The scheduler counts each node
by its first complaint, over all pools: a closed node may be large enough, so no message with one in it makes a tier too large. The
messages are those recorded from Kubernetes 1.36 and autoscaler 1.30.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from grid.core.labels import NODE_POOL
from grid.core.quantity import is_gpu
from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import capitalised, duration, folded, listed, plural
from grid.diagnosis.complaints import explain_complaints, not_computed
from grid.diagnosis.diagnosis import SCALING, Diagnosis, Severity, Who, latest, quoted, since, together
from grid.diagnosis.held import (
    explain_chosen,
    explain_held,
    explain_provisioning,
    explain_silence,
    is_settled,
    scheduler_message,
)
from grid.diagnosis.karpenter import NODE_SHOULD_BE_THERE, explain_nominated, karpenters_word, with_refusal
from grid.diagnosis.mounts import claims_in_words
from grid.diagnosis.rules import RuleTable
from grid.diagnosis.selectors import in_words
from grid.kube.objects import Event, Pod

_COUNT, _COUNTS = Expression(r"\d{1,9} "), RepeatedExpression(r"(?:^|, )(\d{1,9}) ")
# What stands around the account of the nodes is of a scheduler of gangs: why the group is held back, or rejected.
_AVAILABLE = Expression(
    r"(?s)^(.*?)(?:Origin reason is \S+ )?\d+/\d+ nodes are (?:un)?available: "
    r"(.*?)(?:\. (?:(?:no new claims|preemption:).*|([A-Z].*))|\.? not found|\.?)$"
)
_SCALE_UP = RepeatedExpression(r"\{(\S+) (\d+)->(\d+) \(max: (\d+)\)\}")
_SHORT = Expression(r"Insufficient (\S+)")
_WORDS = {"cpu": "CPU", "memory": _("memory"), "ephemeral-storage": _("disk space"), "pods": _("room for another pod")}
_TAINT = "untolerated taint"
_MISMATCH = Expression(r"affinity/selector|plugin\(s\) \[NodeAffinity\]")
_CORDONED = "were unschedulable"
_TOO_MANY_PODS = "Too many pods"
_VOLUME = Expression(r"ersistent ?[vV]olume|volume node affinity|ephemeral volume|binding volumes")
_CLAIM = RepeatedExpression(r'persistentvolumeclaim "([^"]+)"')
_FULL = Expression(r"max (?:node group size|limit) reached|max cluster (?:cpu|memory)|max total nodes")
BACKOFF = "in backoff after failed scale-up"
# Why the cloud delivered no node, by the errors of AWS, Azure and Google; {what} is the first group, or all that is said.
CLOUD_REFUSALS = RuleTable(
    ("quota-limit", r"(vCPU limit of \d+|Quota '\w+')", _("the cloud account's quota is used up ({what})")),
    ("quota", r"(?i)quota|(?:Limit|Count)(?:Exceeded|Reached)", _("the cloud account's quota is used up")),
    ("addresses", r"(?i)IP.?space|free.?(?:IP.?)?address|subnet\w*full", _("the cluster's network has no free addresses for another node")),
    ("zone", r"zones ([\w, -]+) assoc.*out of resources|you requested \(([\w-]+)\)", _("the cloud has no such machine in {what} now")),
    ("stock", r"(?i)out.of.resources|stockout|pool_exhausted|sufficient\W?\w*capacity|SkuNot|AllocationFailed",
     _("the cloud has no such machine now")),
    ("refused", r"(?i)service account|permission|denied|forbidden|authori[sz]ed|violate|invalid|not ?found|not ?exist",
     _("the cloud refuses it: {what}")),
)  # fmt: skip
_REPAIRS = {
    "quota": _("Ask an operator to have the quota raised or to end other nodes"), "refused": _("Ask an operator to repair that"),
    "addresses": _("Ask an operator to give the network more addresses or to end other nodes"),
}  # fmt: skip
_OF_GKE = Expression(r"associated with this pod failed: (.+?)\. Pod is at risk")


def counted_reasons(message: str) -> dict[str, int]:
    """Return the number of nodes (or node groups) for each reason in a message of the scheduler or the autoscaler."""
    match = _AVAILABLE.search(message)
    before, text, after = match.groups() if match else ("", message, "")
    of_groups = {words.strip(" .;"): 0 for words in (before, after) if words}
    return (_counted(text) or ({text: 0} if text else {})) | of_groups


def _counted(text: str) -> dict[str, int]:
    """Return {"Insufficient cpu": 3, "node(s) were unschedulable": 1} of "3 Insufficient cpu, 1 node(s) were unschedulable"."""
    first = _COUNT.search(text)
    counted = text[first.start() :] if first else ""
    places = list(_COUNTS.finditer(counted))
    ends = [*(place.start() for place in places), len(counted)][1:]
    reasons = ((counted[place.end() : end], int(place[1])) for place, end in zip(places, ends, strict=True))
    return {reason: count for reason, count in reasons if reason}


def promised_size(events: Sequence[Event]) -> int:
    """Return the size to which the autoscaler last scaled up a pool for this pod, in nodes; 0 when it did not."""
    scaling = latest(events, *SCALING)
    message = scaling.message if scaling is not None and scaling.reason == "TriggeredScaleUp" else ""
    return max((int(size) for _, _, size, _ in _SCALE_UP.findall(message)), default=0)


def explain_unscheduled(pod: Pod, events: Sequence[Event], *, now: datetime) -> Diagnosis:
    """Explain a pod without a node; `events` are its own, oldest first."""
    held = explain_held(pod, events, now=now)
    if held is not None:
        return held
    message = scheduler_message(pod, events)
    scaling = latest(events, *SCALING)
    evidence = quoted(message, scaling.message if scaling else "")
    if scaling is not None and scaling.reason == "TriggeredScaleUp":
        return explain_scale_up(scaling, evidence, now, pool=pod.spec.node_selector.get(NODE_POOL, ""))
    settled = is_settled(pod, now)
    reasons = counted_reasons(message)
    about_volumes = message or (scaling.message if scaling is not None else "")
    volume = explain_volume_message(pod, about_volumes, settled=settled)
    if volume is not None:
        return replace(volume, evidence=evidence)
    if (chosen := explain_chosen(pod, message, now=now)) is not None:
        return chosen
    demands, word = _demands_of(pod), karpenters_word(events)
    if (coming := explain_nominated(events, evidence, now) or explain_provisioning(events, evidence)) is not None:
        return coming
    if errors := scale_up_failures(events):
        return _undelivered(errors, demands.pool, quoted(*evidence, *errors))
    if scaling is not None:
        return _not_scaling_up(counted_reasons(scaling.message), reasons, message, demands, evidence)
    if message:
        return with_refusal(_without_autoscaler(reasons, message, demands, evidence, settled=settled), word)
    return with_refusal(explain_silence(pod, now=now), word)


def scale_up_failures(events: Sequence[Event]) -> tuple[str, ...]:
    """Return why new nodes for the pod failed, oldest first, as zones fail for different reasons; () when a later attempt goes on."""
    attempt = latest(events, "TriggeredScaleUp", "FailedScaleUp")
    failed = [event.message for event in events if event.reason == "FailedScaleUp"]
    return tuple(dict.fromkeys(failed)) if attempt is not None and attempt.reason == "FailedScaleUp" else ()


def cloud_words(errors: Sequence[str], node: str) -> tuple[str, Severity, Who, str]:
    """Return why the cloud delivered no node as a clause, how grave that is, who can act, and the step. An unknown error is quoted."""
    clauses, repairs = [], []
    unknown = _("the cloud could not deliver {node}{says} and is asked again after a while")
    for error in errors or ("",):
        of_gke = _OF_GKE.search(error)
        says = folded(of_gke[1] if of_gke else error)
        key, clause, match = CLOUD_REFUSALS.find(error) or ("", unknown, None)
        what = next(filter(None, match.groups()), says) if match else ""
        clauses.append(clause.format(node=node, what=what, says=f" ({says})" if says else ""))
        repairs += [repair for beginning, repair in _REPAIRS.items() if key.startswith(beginning)]
    clause = "; ".join(dict.fromkeys(clauses))
    if not repairs:
        return clause, "wait", "you", _("Choose a tier on another node pool, or wait; if it lasts, ask an operator.")
    others = _(", or choose another tier.") if len(repairs) < len(errors) else _("; waiting alone does not help.")
    return clause, "problem", "operator", repairs[0] + others


class _Demands(NamedTuple):
    """Which nodes a pod asks for: those of a pool, "" for any, and what else they must be, in words."""

    pool: str
    others: Sequence[str]


def _demands_of(pod: Pod) -> _Demands:
    others = [f"{key}={value}" for key, value in pod.spec.node_selector.items() if key != NODE_POOL]
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is not None and affinity.required is not None:
        others.append(in_words(affinity.required))
    return _Demands(pod.spec.node_selector.get(NODE_POOL, ""), others)


def pool_growth(size: str, target: str, maximum: str) -> str:
    return _("from {size} to {target} of at most {maximum}", size=size, target=target, maximum=maximum)


def explain_scale_up(event: Event, evidence: tuple[str, ...], now: datetime, *, pool: str = "") -> Diagnosis:
    """Explain a pod for which the autoscaler started a node; it names a node group, which need not have the name of the `pool`."""
    waited = since(event.last_seen, now)
    growth = _SCALE_UP.search(event.message)
    where = ""
    if growth:
        group = _(", its node group {group}", group=growth[1]) if pool and pool != growth[1] else ""
        sizes = pool_growth(*growth.groups()[1:])
        where = _(" in the pool {pool}{group} ({growth})", pool=pool or growth[1], group=group, growth=sizes)
    if waited > NODE_SHOULD_BE_THERE:
        time = duration(waited)
        sentence = _("A new node{where} was requested {waited} ago and has not come.", where=where, waited=time)
        step = _("Ask an operator to look at the node autoscaler.")
        return Diagnosis("scale_up_slow", sentence, "problem", "operator", step, evidence)
    sentence = _("A new node is being started for you{where}; this usually takes a few minutes.", where=where)
    step = _("Nothing to do: it starts by itself.")
    return Diagnosis("scale_up", sentence, "wait", "", step, evidence, is_normal=True)


def _not_scaling_up(
    groups: Mapping[str, int], nodes: Mapping[str, int], message: str, demands: _Demands, evidence: tuple[str, ...]
) -> Diagnosis:
    """Explain a pod that the autoscaler does not scale up for; the autoscaler reconsiders every few seconds."""
    others, at_maximum = [reason for reason in groups if BACKOFF not in reason], any(map(_FULL.search, groups))
    if len(others) < len(groups) and all(map(_MISMATCH.search, others)):
        return _undelivered((), demands.pool, evidence)
    if len(others) < len(groups) or (at_maximum and not nodes):
        return _by_groups_alone(groups, evidence)
    if at_maximum and _short_of(nodes) and not _never_fits(message):
        sentence = _(
            "All nodes{of_pool} are busy, and the pool has as many nodes as it may have. "
            "This starts when another execution ends.",
            of_pool=_of(demands.pool),
        )
        step = _("Wait, choose another tier, or ask your admin for a larger pool.")
        return Diagnosis("pool_full", sentence, "wait", "admin", step, evidence)
    short = _resources_short(groups)
    if short and not at_maximum and (_never_fits(message) or not _short_of(nodes)):
        return _too_small(short, nodes, demands.pool, evidence)
    if not nodes:  # the counts below would be of node groups
        nodes = {reason: 0 for reason in groups if _MISMATCH.search(reason)}
    return _without_autoscaler(nodes, message, demands, evidence, settled=True)


def _undelivered(errors: Sequence[str], pool: str, evidence: tuple[str, ...]) -> Diagnosis:
    clause, severity, who, step = cloud_words(errors, _("a new node{of_pool}", of_pool=_of(pool)))
    return Diagnosis("no_stock", f"{capitalised(clause)}.", severity, who, step, evidence)


def _by_groups_alone(groups: Mapping[str, int], evidence: tuple[str, ...]) -> Diagnosis:
    """Explain a pod that the autoscaler has not tried on some node groups: they are at their maximum, or the cloud delivered no node for
    them. Nobody knows whether one of their nodes would take it. The other groups were tried, some with several complaints."""
    full = sum(count for reason, count in groups.items() if _FULL.search(reason))
    failed = sum(count for reason, count in groups.items() if BACKOFF in reason)
    are_full = ngettext(
        "{count:,} node group has as many nodes as allowed", "{count:,} node groups have as many nodes as allowed", full
    )
    have_failed = _("the cloud could not deliver a node of {groups}, and is asked again after a while")
    have_failed = have_failed.format(groups=plural(failed, "node group", "node groups"))
    parts = [words for number, words in ((full, are_full), (failed, have_failed)) if number]
    untried = len(parts)
    small = _resources_short(groups)
    others = [_("be too small ({small})", small=listed(small))] if small else []
    if any(map(_MISMATCH.search, groups)):
        others.append(_("not match what this asks for"))
    if any(_TAINT in reason for reason in groups):
        others.append(_("be closed to this by a taint"))
    rest = [
        f"{count} {reason}"
        for reason, count in groups.items()
        if not (_FULL.search(reason) or _MISMATCH.search(reason) or _SHORT.match(reason))
        if BACKOFF not in reason and _TAINT not in reason
    ]
    parts += [*([_("a new node of another would {others}", others=_(" and ").join(others))] if others else []), *rest]
    sentence = _("The autoscaler starts no node for this: {parts}.", parts="; ".join(parts))
    if len(parts) == untried and failed:
        return Diagnosis("no_stock", sentence, "wait", "you", _("Choose another tier, or wait."), evidence)
    if len(parts) == untried:
        step = _("Wait, choose another tier, or ask your admin for a larger pool.")
        return Diagnosis("pool_full", sentence, "wait", "admin", step, evidence)
    step = _("Choose another tier, or show an operator the messages below.")
    return Diagnosis("unschedulable", sentence, "problem", "operator", step, evidence)


def with_untried_groups(busy: Diagnosis, refused: str) -> Diagnosis:
    """Return why a pod waits for room on the nodes, with the node groups on which the autoscaler did not try it, if there are such."""
    groups = counted_reasons(refused)
    if not any(_FULL.search(reason) or BACKOFF in reason for reason in groups):
        return busy
    step = _("Wait until something ends, or ask an operator for another node.")
    sentence = f"{busy.sentence} {_by_groups_alone(groups, ()).sentence}"
    return replace(busy, sentence=sentence, who="operator", next_step=step, is_normal=BACKOFF not in refused)


def _without_autoscaler(
    reasons: Mapping[str, int], message: str, demands: _Demands, evidence: tuple[str, ...], *, settled: bool
) -> Diagnosis:
    short, pool = _short_of(reasons), demands.pool
    if short and _never_fits(message) and settled:
        return _too_small(short, reasons, pool, evidence)
    if short:
        sentence = _(
            "The nodes{of_pool} have too little left: {short}. This starts when something ends there or a node is added."
        )
        sentence = sentence.format(of_pool=_of(pool), short=listed(short))
        step = _("Wait, stop something that you do not need, or choose a smaller tier.")
        busy = Diagnosis("busy", sentence, "wait", "you", step, evidence)
        return replace(together(busy, _others(reasons)), next_step=step)
    if not settled:
        sentence = _("No node{of_pool} is free yet; looking.", of_pool=_of(pool))
        return Diagnosis("scheduling", sentence, "wait", "", "", evidence)
    return _no_node(reasons, message, demands, evidence)


def _no_node(reasons: Mapping[str, int], message: str, demands: _Demands, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain a pod that no node takes for reasons other than resources, so waiting alone will not help."""
    pool = demands.pool
    cordoned = sum(count for reason, count in reasons.items() if _CORDONED in reason)
    tainted = sum(count for reason, count in reasons.items() if _TAINT in reason)
    foreign = sum(count for reason, count in reasons.items() if _MISMATCH.search(reason))
    if pool and foreign and cordoned + tainted:
        # The scheduler says the first complaint of each node, so the closed ones may be of any pool.
        sentence = _("No open node{of_pool}: of the whole cluster, {closed}, and {foreign:,} of other pools.")
        sentence = sentence.format(of_pool=_of(pool), closed=_closed_words(cordoned + tainted), foreign=foreign)
        step = _("Choose another tier, or ask an operator about the pool's nodes.")
        return Diagnosis("no_such_node", sentence, "problem", "operator", step, evidence)
    if cordoned:
        sentence = _("{nodes} of the cluster may not take new work now.", nodes=plural(cordoned, "node", "nodes"))
        step = _("Ask an operator whether the nodes are being repaired.")
        return together(Diagnosis("cordoned", sentence, "problem", "operator", step, evidence), _others(reasons))
    if tainted:
        nodes = plural(tainted, "node", "nodes")
        sentence = _("{nodes} cannot take this: closed by taints (not ready, or kept for other work).", nodes=nodes)
        step = _("Ask an operator about the nodes' taints, or choose another tier.")
        return together(Diagnosis("tainted", sentence, "problem", "operator", step, evidence), _others(reasons))
    if foreign and (demands.others or not pool):
        sentence = _("No node{of_pool} matches the labels that this asks for.")
        if demands.others:
            sentence = _("No node{of_pool} has what this asks for: {others}.")
        sentence = sentence.format(of_pool=_of(pool), others=listed(demands.others or [""]))
        step = _("Choose another tier; tell your admin that no node takes this one.")
        return Diagnosis("not_selected", sentence, "problem", "admin", step, evidence)
    if (others := _others(reasons, are_beside=False)) is not None and "no nodes available" not in message:
        return replace(others, evidence=evidence)
    if any(map(_MISMATCH.search, reasons)) or "no nodes available" in message:
        sentence = _("There is no node{of_pool}, and none is being started.", of_pool=_of(pool))
        step = _("Choose another tier; tell your admin that this one's node pool is empty.")
        return Diagnosis("no_such_node", sentence, "problem", "admin", step, evidence)
    step = _("Show an operator the messages below.")
    return Diagnosis("unschedulable", _("No node can take this now."), "problem", "operator", step, evidence)


def _others(reasons: Mapping[str, int], *, are_beside: bool = True) -> Diagnosis | None:
    unknown = not_computed(reasons, are_pods_known=False)
    return explain_complaints(unknown, settled=True, are_beside=are_beside) if unknown else None


def explain_volume_message(pod: Pod, message: str, *, settled: bool) -> Diagnosis | None:
    """Explain a pod by the scheduler's words on its volumes; None when they say nothing of them."""
    reasons = {reason: count for reason, count in counted_reasons(message).items() if "ReadWriteOncePod" not in reason}
    if not any(map(_VOLUME.search, reasons)):
        return None
    named = [_("the volume claim {name}", name=name) for name in _CLAIM.findall(message)]
    claims = listed(claims_in_words(pod, message) or named or [_("one of its claims")])
    if any("node affinity" in reason for reason in reasons):
        sentence = _("No free node of this tier can reach {claims}.", claims=claims)
        if short := _short_of(reasons):
            sentence = _("{sentence} The others have too little left: {short}.", sentence=sentence, short=listed(short))
    elif any("is being deleted" in reason for reason in reasons):
        sentence = _("{claims} cannot be used, because their claim is being deleted.", claims=capitalised(claims))
    elif "ephemeral volume controller" in message:
        sentence = _("Not made yet: {claims}.", claims=claims)
    elif any("not found" in reason or "available persistent volumes" in reason for reason in reasons):
        sentence = _("There is no volume for {claims}.", claims=claims)
    else:
        sentence = _("The volume for {claims} is not ready yet.", claims=claims)
        if not settled:
            return Diagnosis("volume", sentence, "wait", "", _("Nothing to do: it is being made."))
    return Diagnosis("volume", sentence, "problem", "admin", _("Ask your admin to look at the volume."), link="project")


def _too_small(short: Sequence[str], nodes: Mapping[str, int], pool: str, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain a pod that is larger than each node of which the scheduler says a size: it says none of a closed node's."""
    closed = sum(count for reason, count in nodes.items() if _TAINT in reason or _CORDONED in reason)
    if closed:
        sentence = _("No node{of_pool} that is open to this is large enough: {short}. Of the whole cluster, {closed}.")
        sentence = sentence.format(of_pool=_of(pool), short=listed(short), closed=_closed_words(closed))
        step = _("Choose a smaller tier, or ask an operator about the nodes that are closed.")
        return Diagnosis("small_nodes", sentence, "problem", "operator", step, evidence)
    sentence = _("No node{of_pool} is large enough for this tier, not even an empty one: {short}.")
    sentence = sentence.format(of_pool=_of(pool), short=listed(short))
    step = _("Choose a smaller tier; tell your admin that this one fits no node.")
    return Diagnosis("too_large", sentence, "problem", "admin", step, evidence)


def _closed_words(number: int) -> str:
    singular = _("{count:,} node is cordoned, tainted or not ready")
    return ngettext(singular, _("{count:,} nodes are cordoned, tainted or not ready"), number)


def _short_of(reasons: Mapping[str, int]) -> list[str]:
    """Return "CPU on 2 nodes" for each resource that is short."""
    short = []
    for reason, count in reasons.items():
        short_match = _SHORT.match(reason)
        if short_match or reason == _TOO_MANY_PODS:
            what = _resource(short_match[1] if short_match else "pods")
            short.append(_("{what} on {nodes}", what=what, nodes=plural(count, "node", "nodes")))
    return short


def _resources_short(groups: Mapping[str, int]) -> list[str]:
    """Return the resources that new nodes would lack, without the counts, which are of node groups."""
    return [_resource(match[1]) for match in map(_SHORT.match, groups) if match]


def _resource(name: str) -> str:
    return _("GPUs") if is_gpu(name) else _WORDS.get(name, name)


def _never_fits(message: str) -> bool:
    """Return True when the scheduler found that even preempting other pods would not make room."""
    return "Preemption is not helpful" in message and "No preemption victims" not in message


def _of(pool: str) -> str:
    return _(" of the pool {pool}", pool=pool) if pool else ""
