"""What Karpenter says of a pod without a node, in its events; pure.

It writes "FailedScheduling" too, as the scheduler does, so its own are known by who reported them. The messages are those of Karpenter's
pkg/controllers/provisioning/scheduling (events.go, scheduler.go, nodeclaim.go).
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _
from grid.core.wording import duration, folded, listed
from grid.diagnosis.diagnosis import Diagnosis, quoted, since
from grid.kube.objects import Event

# Karpenter itself, and the one that EKS runs in its Auto Mode.
_REPORTERS = frozenset({"karpenter", "eks-auto-mode/compute"})
_FAILED = "Failed to schedule pod, "
_CLAIM, _NODE = Expression(r"nodeclaim/([^\s,]+)"), Expression(r"\bnode/([^\s,]+)")
_CHOICE = Expression(r"node(?:claim)?/([^\s,]+)")  # a NodeClaim is named before its node
# `nodepool "default"` before version 1.6, `(NodePool=default)` or `NodePool=default,` since.
_POOL = RepeatedExpression(r'(?:nodepool:? "|NodePool=)([^",;\s)]+)')
# Karpenter deletes a NodeClaim that has not registered for 15 minutes.
NODE_SHOULD_BE_THERE = timedelta(minutes=15)
# The more exact rule stands first: what is not offered has "no instance type satisfied" in it, too.
_WHY = (
    (("exceed limits", "limits have been exhausted"), _("a new node would exceed its limits")),
    (("required offering",), _("none of its instance types is offered as this asks")),
    (("no instance type",), _("none of its instance types fits what this asks for")),
    (("did not tolerate",), _("its nodes have a taint that keeps this off")),
    (("incompatible requirements", "not have known values"), _("its nodes do not match the labels that this asks for")),
)


def is_of_karpenter(event: Event) -> bool:
    return event.reporter in _REPORTERS or event.message.startswith(_FAILED)


def karpenters_word(events: Sequence[Event]) -> Event | None:
    """Return Karpenter's newest event on a pod's node; `events` are oldest first."""
    reasons = ("Nominated", "FailedScheduling")
    return next((each for each in reversed(events) if each.reason in reasons and is_of_karpenter(each)), None)


def explain_nominated(events: Sequence[Event], evidence: tuple[str, ...], now: datetime) -> Diagnosis | None:
    """Explain a pod for which Karpenter has chosen a node, or starts one; None when its last word is another. Its first choice counts: it
    repeats its choice while it waits, and makes another when the cloud delivers no node."""
    event = karpenters_word(events)
    if event is None or event.reason != "Nominated":
        return None
    claim, node = _CLAIM.search(event.message), _NODE.search(event.message)
    choices = [each for each in events if each.reason == "Nominated" and is_of_karpenter(each)]
    times = len({match[1] for each in choices if (match := _CHOICE.search(each.message))})
    waited = max(since(each.first_timestamp or each.last_seen, now) for each in choices)
    name = _("the NodeClaim {claim}", claim=claim[1]) if claim else _("the node {node}", node=node[1]) if node else ""
    evidence = quoted(*evidence, event.message)
    if (is_late := waited > NODE_SHOULD_BE_THERE) or times > 1:
        sentence = _("Karpenter chose {name} for this {waited} ago, and it is not there yet.")
        if times > 1:
            sentence = _("Karpenter has chosen {times} nodes for this in {waited} (last {name}), and none took it.")
        sentence = sentence.format(name=name or _("a node"), waited=duration(waited), times=times)
        step = _("Ask an operator to look at Karpenter and its NodeClaims.")
        return Diagnosis("scale_up_slow", sentence, "problem" if is_late else "wait", "operator", step, evidence)
    sentence = _("Karpenter has chosen {name} for this.", name=name or _("a node"))
    if claim and not node:
        sentence = _("Karpenter is starting a node for this ({name}); this usually takes a few minutes.", name=name)
    step = _("Nothing to do: it starts by itself.")
    return Diagnosis("scale_up", sentence, "wait", "", step, evidence, is_normal=True)


def with_refusal(diagnosis: Diagnosis, event: Event | None) -> Diagnosis:
    """Return the diagnosis with Karpenter's reasons to start no node, by NodePool, when that is its last word."""
    if event is None or event.reason != "FailedScheduling":
        return diagnosis
    refusals = [_refusal(part) for part in event.message.removeprefix(_FAILED).split("; ") if part.strip()]
    why = "; ".join(dict.fromkeys(refusals))
    sentence = _("Karpenter starts no node for this: {why}.", why=why.rstrip(". "))
    evidence = quoted(*diagnosis.evidence, event.message)
    return replace(diagnosis, sentence=f"{diagnosis.sentence} {sentence}", evidence=evidence)


def _refusal(part: str) -> str:
    pools = list(dict.fromkeys(_POOL.findall(part)))
    why = next((words for keys, words in _WHY if any(key in part for key in keys)), folded(part))
    return _("NodePool {pools}: {why}", pools=listed(pools), why=why) if pools else why
