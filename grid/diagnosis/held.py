"""Explains a pod that no scheduler looks at, or that is about to start: what holds it back is written on the pod itself. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from grid.core.regexes import Expression
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import duration, folded, listed
from grid.diagnosis.diagnosis import Diagnosis, Severity, Who, latest, quoted, since
from grid.diagnosis.karpenter import is_of_karpenter
from grid.diagnosis.refusals import explain_refusal
from grid.kube.objects import DEFAULT_SCHEDULER, Event, Pod

# Messages of the scheduler and the autoscaler are final only after some rounds.
SETTLING = timedelta(seconds=60)
# How each scheduler made of Kubernetes' framework begins its account of the nodes, and Volcano.
_COUNTS_NODES = Expression(r"nodes are (?:un)?available")
# The scheduler has tried preemption and found no node for it, so a nomination is of before, or somebody else's.
_NO_PREEMPTION = ("Preemption is not helpful", "No preemption victims")
# While a claim is missing that a controller makes for the pod.
_AWAITS_CLAIM = Expression(r"^$|controller to create|not created yet")
_PROVISIONING = Expression(r"consuming ProvisioningRequest (\S+)(?: that is in (\w+) state)?")
_KUEUE = "kueue.x-k8s.io/"
_TOPOLOGY = f"{_KUEUE}topology"


def is_unplaced(pod: Pod) -> bool:
    return not pod.spec.node_name and pod.status.phase == "Pending" and pod.metadata.deletion_timestamp is None


def scheduler_message(pod: Pod, events: Sequence[Event]) -> str:
    """Return the scheduler's last words on the pod; "" when it has said nothing."""
    condition = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
    failed = latest([event for event in events if not is_of_karpenter(event)], "FailedScheduling")
    refusal = condition.message if condition and condition.status == "False" else ""
    return refusal or (failed.message if failed else "")


def is_settled(pod: Pod, now: datetime) -> bool:
    """Return True once the scheduler and the autoscaler have had time for their final answer."""
    return since(pod.metadata.creation_timestamp, now) >= SETTLING


def explain_held(pod: Pod, events: Sequence[Event], *, now: datetime) -> Diagnosis | None:
    """Explain a pod by its gates, scheduler, resource claims or nomination; None without, or when the scheduler says more."""
    message, settled = scheduler_message(pod, events), is_settled(pod, now)
    reasons = [(condition.type, condition.reason) for condition in pod.status.conditions]
    if pod.spec.scheduling_gates or ("PodScheduled", "SchedulingGated") in reasons:
        return _gated(pod, events, message)
    if (refused := _refused(events, message)) is not None:
        return refused
    # Only a pod that the scheduler refused before is nominated for what it preempts; see `explain_chosen`.
    preempts = _COUNTS_NODES.search(message) and not any(words in message for words in _NO_PREEMPTION)
    if (node := pod.status.nominated_node_name) and preempts:
        sentence = _("About to start: node {node} is being cleared for it, pods of lower priority end there.")
        sentence = sentence.format(node=node)
        step, link = _("Nothing to do: it starts by itself."), f"node:{node}"
        return Diagnosis("about_to_start", sentence, "wait", "", step, quoted(message), link=link, is_normal=True)
    scheduler, claims = pod.spec.scheduler_name, pod.spec.resource_claims
    if scheduler != DEFAULT_SCHEDULER and not _COUNTS_NODES.search(message) and not node:
        code, sentence = "other_scheduler", _("Waits for the scheduler {scheduler} to choose a node.")
        step = _("Ask an operator whether the scheduler {scheduler} runs.", scheduler=scheduler)
        if message:  # it runs, and speaks of something else than of nodes
            sentence = _("The scheduler {scheduler} has not chosen a node: {said}.")
            step = _("Choose another tier, or show an operator the messages below.")
        sentence = sentence.format(scheduler=scheduler, said=" ".join(message.split()).rstrip(". "))
    elif claims and (not message or "resourceclaim" in message.lower() or "allocate all claims" in message):
        names = [claim.resource_claim_name or claim.name for claim in claims]
        code, words = "resource_claim", listed(names)
        if "allocate all claims" in message:
            sentence = _("No node that has room for this has free devices for the resource claim {names}.", names=words)
            step = _("Wait until devices become free; if it lasts, ask an operator whether a node has such devices.")
            return Diagnosis(code, sentence, "wait", "operator", step, quoted(message))
        if "in use" in message:
            singular, several = _("{names} is in use by others."), _("{names} are in use by others.")
            sentence = _(
                "Waits for devices: the resource claim {used}",
                used=ngettext(singular, several, len(names), names=words),
            )
            step = _("Stop what uses the claim, or wait until it ends.")
            return Diagnosis(code, sentence, "wait", "you", step, quoted(message))
        sentence = ngettext(
            "Waits for the resource claim {names}.", "Waits for the resource claims {names}.", len(names), names=words
        )
        step = _("Ask an operator whether the claim exists and a driver can allocate it.")
    else:
        return None
    severity: Severity = "problem" if settled else "wait"
    return Diagnosis(code, sentence, severity, "operator", step if settled else "", quoted(message))


def _refused(events: Sequence[Event], message: str) -> Diagnosis | None:
    """Explain a pod that the API server kept from its node, or from a claim that is made for it; None when no such refusal is known."""
    says, sentence = message, _("A node was found, but the API server did not bind this to it. {why}")
    if "Bind plugin" not in message:
        failed = latest(events, "FailedResourceClaimCreation", "FailedBinding")
        says = failed.message if failed is not None and _AWAITS_CLAIM.search(message) else ""
        is_scratch = says.startswith("ephemeral volume ")
        sentence = _("The scratch volume {name} cannot be created. {why}") if is_scratch else "{why}"
    known = explain_refusal(says) if says else None
    if known is None:
        return None
    who: Who = "operator" if known.code == "webhook_down" else "admin"
    words = sentence.format(name=says.partition(":")[0].rpartition(" ")[2], why=known.sentence)
    return Diagnosis(known.code, words, "problem", who, known.next_step, quoted(message, says), is_normal=False)


def explain_chosen(pod: Pod, message: str, *, now: datetime) -> Diagnosis | None:
    """Explain a pod for which the scheduler has chosen a node that it has not got yet; None without one. Since Kubernetes 1.35 a pod is
    nominated while its volumes and devices are made ready, and nothing ends for it."""
    node = pod.status.nominated_node_name
    if not node or _COUNTS_NODES.search(message):
        return None
    sentence = _("About to start: node {node} is chosen, and what this needs there is being prepared.", node=node)
    if not is_settled(pod, now):
        step = _("Nothing to do: it starts by itself.")
        return Diagnosis("about_to_start", sentence, "wait", "", step, link=f"node:{node}", is_normal=True)
    step = _("If it lasts, ask an operator about the volumes and devices that this asks for.")
    return Diagnosis("about_to_start", sentence, "wait", "operator", step, link=f"node:{node}")


def explain_provisioning(events: Sequence[Event], evidence: tuple[str, ...]) -> Diagnosis | None:
    """Explain a pod that the autoscaler leaves to a ProvisioningRequest, by which several nodes are asked of the cloud at once."""
    matches = ((event.message, _PROVISIONING.search(event.message)) for event in reversed(events))
    message, match = next(((message, match) for message, match in matches if match), ("", None))
    if match is None:
        return None
    evidence, name = quoted(*evidence, message), match[1].rstrip(".")
    if "does not exist" in message:
        sentence = _("No node is started for this: there is no ProvisioningRequest {name}, which it names.", name=name)
        step = _("Ask an operator what makes the ProvisioningRequest.")
        return Diagnosis("no_provisioning", sentence, "problem", "operator", step, evidence, is_normal=False)
    state = _(", which is in state {state}", state=match[2]) if match[2] else ""
    sentence = _("Its nodes are started by the ProvisioningRequest {name}{state}.", name=name, state=state)
    step = _("Wait until the cloud has all of its nodes; if it lasts, ask an operator.")
    return Diagnosis("provisioning", sentence, "wait", "operator", step, evidence)


def explain_silence(pod: Pod, *, now: datetime) -> Diagnosis:
    """Explain a pod of which no scheduler has said anything."""
    if not is_settled(pod, now):
        return Diagnosis("scheduling", _("Looking for a node."), "wait", "", is_normal=True)
    waited = duration(since(pod.metadata.creation_timestamp, now))
    sentence = _("The cluster's scheduler has not looked at this for {waited}.", waited=waited)
    step = _("Ask an operator to look at the scheduler.")
    return Diagnosis("scheduler_silent", sentence, "problem", "operator", step, is_normal=False)


def _gated(pod: Pod, events: Sequence[Event], message: str) -> Diagnosis:
    of_kueue = [event.message for event in events if "kueue" in event.reporter and event.reason != "CreatedWorkload"]
    evidence, says = quoted(message, *of_kueue[-1:]), f": {folded(of_kueue[-1])}" if of_kueue else ""
    names = [gate.name for gate in pod.spec.scheduling_gates]
    if names and all(name.startswith(_KUEUE) for name in names):
        queue = pod.metadata.labels.get(f"{_KUEUE}queue-name", "")
        sentence = _("Waits until Kueue admits it from its queue{queue}{says}.")
        sentence = sentence.format(queue=f" {queue}" if queue else "", says=says)
        if names == [_TOPOLOGY]:  # the gate for the quota is gone
            sentence = _("Kueue has admitted it, and has not assigned it a node of its topology yet{says}.", says=says)
            step = _("Wait: it starts by itself. If it lasts, ask an operator to look at Kueue.")
            return Diagnosis("gated", sentence, "wait", "operator", step, evidence)
        step = _("Wait: it starts by itself. If it lasts, ask your admin about the queue and its quota.")
        return Diagnosis("gated", sentence, "wait", "admin", step, evidence)
    sentence = _("Something in the cluster holds this back on purpose.")
    if names:
        singular = _("Held back on purpose by the scheduling gate {names}.")
        several = _("Held back on purpose by the scheduling gates {names}.")
        sentence = ngettext(singular, several, len(names), names=listed(names))
    step = ngettext("Ask an operator what removes the gate.", "Ask an operator what removes the gates.", len(names))
    return Diagnosis("gated", sentence, "wait", "operator", step, evidence)
