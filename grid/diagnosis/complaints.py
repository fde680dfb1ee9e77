"""What the scheduler complains of that is not computed here: limits of attached volumes, claims of devices, plugins of others; pure.

The objects are read for resources, taints, labels, ports, spread and the places of volumes. A message with a complaint of another kind
knows more than they do, so "has room" is never said beside it: the scheduler is right, and its reason stands in the sentence. The texts
are those of the plugins of Kubernetes 1.36 (kubernetes/kubernetes, pkg/scheduler/framework/plugins).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from grid.core.regexes import Expression
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import folded, listed, plural
from grid.diagnosis.diagnosis import Diagnosis, Severity, Who
from grid.diagnosis.rules import RuleTable

# What is computed from the objects; such a complaint may be of before something ended.
_OF_NODES = (
    r"Insufficient |Too many pods|untolerated taint|were unschedulable|affinity/selector|plugin\(s\) \[NodeAffinity\]|"
    r"node affinity conflict|PersistentVolume's node affinity|unbound immediate|persistentvolumeclaim \"|"
    r"available persistent volumes|ephemeral volume controller|were not ready|No preemption victims|Preemption is not helpful"
)
_COMPUTED_OF_NODES = Expression(_OF_NODES)
_COMPUTED = Expression(rf"affinity rules|topology spread|free ports|{_OF_NODES}")


@dataclass(frozen=True, slots=True)
class Complaint:
    """A kind of complaint: what is so of several nodes, who can act, and how. It ends by itself when `ends`; `singular` is what is so of
    one node where that is said otherwise."""

    sentence: str
    who: Who
    next_step: str
    ends: bool = False
    singular: str = ""


ASK_ABOUT_VOLUME = _("Ask your admin to look at the volume claim and its storage class.")
COMPLAINTS = RuleTable(
    ("volume-limit", r"exceed max volume count", Complaint(_("{nodes} have as many volumes attached as they may"), "you",
     _("Wait until something that uses volumes ends there, stop something that you do not need, or choose another tier."), ends=True,
     singular=_("{nodes} has as many volumes attached as it may"))),
    ("one-pod", r"ReadWriteOncePod", Complaint(_("another pod uses its volume, which one pod may use at a time (ReadWriteOncePod)"), "you",
     _("Stop what uses the volume, or wait until it ends."), ends=True)),
    ("storage-room", r"did not have enough free storage", Complaint(
        _("the storage that {nodes} can reach has too little left for its volume"), "admin", ASK_ABOUT_VOLUME)),
    ("storage-driver", r"CSI driver|csinode", Complaint(_("{nodes} lack the storage driver of its volume"), "operator",
     _("Ask an operator whether the storage driver runs on the nodes."), singular=_("{nodes} lacks the storage driver of its volume"))),
    ("lost-node", r"bound to non-existent node", Complaint(
        _("its volume belongs to a node that no longer exists"), "admin", ASK_ABOUT_VOLUME)),
    ("device-class", r"(?i)device ?class", Complaint(_("the class of devices that its claim names does not exist"), "operator",
     _("Ask an operator about the device class, or choose another tier."))),
    ("device-claim", r"(?i)cannot allocate all claims|resource ?claim", Complaint(
        _("{nodes} cannot give it the devices that its claim asks for"), "operator",
        _("Wait until devices become free, or ask an operator about the resource claim."))),
    ("port", r"free ports", Complaint(_("the port that it needs is taken on {nodes}"), "you",
     _("Wait until what uses the port ends, or choose another port."), ends=True)),
    ("no-topology", r"missing required label", Complaint(_("{nodes} lack the label by which its pods are to be spread"), "operator",
     _("Ask an operator to label the nodes, or choose another tier."),
     singular=_("{nodes} lacks the label by which its pods are to be spread"))),
    ("other-pods", r"affinity rules|topology spread", Complaint(_("its rules about other pods keep it off {nodes}"), "operator",
     _("Wait until other pods end or start; if it lasts, show an operator the messages below."))),
    ("gang", r"(?i)sibling pods|from a gang|pod ?group|optimistic rejection", Complaint(
        _("it starts only together with the other pods of its group, which are not all there or find no place"), "you",
        _("See why the others of its group are missing, or ask for a smaller group."), ends=True)),
    ("node-feature", r"declared features", Complaint(_("{nodes} lack a feature of Kubernetes that it needs"), "operator",
     _("Ask an operator to update the nodes, or choose another tier."),
     singular=_("{nodes} lacks a feature of Kubernetes that it needs"))),
)  # fmt: skip
_UNKNOWN = "unschedulable", Complaint("", "operator", _("Show an operator the messages below."))


def not_computed(reasons: Mapping[str, int], *, are_pods_known: bool = True) -> dict[str, int]:
    """Return those of the scheduler's reasons, with their numbers of nodes, that the objects say nothing of, as far as they are known."""
    known = _COMPUTED if are_pods_known else _COMPUTED_OF_NODES
    return {reason: count for reason, count in reasons.items() if not known.search(reason)}


def explain_complaints(reasons: Mapping[str, int], *, settled: bool, are_beside: bool = False) -> Diagnosis:
    """Explain a pod by complaints that are not computed here; there is at least one. `are_beside`: another cause is said before them."""
    parts, known = list[str](), list[tuple[str, Complaint]]()
    for reason, count in reasons.items():
        nodes = plural(count, "node", "nodes")
        rule = COMPLAINTS.find(reason)
        if rule is None:
            parts.append(_("{nodes}: {reason}", nodes=nodes, reason=folded(reason)) if count else folded(reason))
            continue
        known.append(rule[:2])
        several = rule[1].sentence
        parts.append(ngettext(rule[1].singular or several, several, count, nodes=nodes))
    sentence = _("Also, {reasons}.") if are_beside else _("The scheduler finds no place for it: {reasons}.")
    if any("Bind plugin" in reason for reason in reasons):
        sentence = _("A node was found, but the scheduler could not give it to this: {reasons}.")
    sentence = sentence.format(reasons=listed(dict.fromkeys(parts)))
    key, complaint = known[0] if known else _UNKNOWN
    severity: Severity = "wait" if complaint.ends or not settled else "problem"
    return Diagnosis(key.replace("-", "_"), sentence, severity, complaint.who, complaint.next_step)
