"""Explains a pod that Kubernetes ended or never let run: preempted, evicted, or rejected by its node. Pure.

The condition DisruptionTarget says who did it; the kubelet's own evictions and rejections are told by the pod's reason and message. The
messages are those of Kubernetes 1.36. A message that is not known is shown as it is.
"""

from datetime import datetime, timedelta

from grid.core.quantity import format_bytes, is_gpu, whole
from grid.core.regexes import Expression, Match, RepeatedExpression
from grid.core.translation import gettext as _
from grid.core.wording import folded
from grid.diagnosis.beside import PROGRAM
from grid.diagnosis.diagnosis import Diagnosis, Who
from grid.diagnosis.nodefaults import fault_of
from grid.diagnosis.resources import core_words
from grid.diagnosis.rules import RuleTable
from grid.kube.objects import Condition, Event, Pod, Terminated, true_condition

# By the condition's reason, as the end of "Kubernetes ended this because ...".
CAUSES = {
    "PreemptionByScheduler": _("the scheduler preempted it for a pod of higher priority"),
    "DeletionByTaintManager": _("its node has a taint that it does not tolerate"),
    "EvictionByEvictionAPI": _("it was evicted through the Eviction API, as when its node is drained"),
    "DeletionByPodGC": _("its node no longer exists"),
    "DeletionByDeviceTaintManager": _(
        "a device that it used, such as a GPU, was declared faulty or taken out of service"
    ),
}
_LAUNCH_AGAIN = _("Launch it again; ask an operator if it happens often.")
_STEPS: dict[str, tuple[Who, str]] = {
    "PreemptionByScheduler": ("admin", _("Launch it again; ask your admin about its priority if it happens often.")),
    "DeletionByTaintManager": ("operator", _("Launch it again; ask an operator about the node's taints.")),
    "SysctlForbidden": ("admin", _("Ask your admin to drop it, or an operator to allow it (allowedUnsafeSysctls).")),
}
# Karpenter's event "Evicted" and the cluster autoscaler's "ScaleDown", for after "because".
EVICTED = RuleTable(
    ("spot", r"^Evicted pod: (?i:spot_?interrupt)", _("the cloud took its node, a spot machine, back")),
    ("removed", r"^Evicted pod: (\w+)", _("Karpenter removed its node ({reason})")),
    ("scaled-down", r"^deleting pod for node scale down", _("the node autoscaler removed its little used node")),
)
_SYSCTL = Expression(r'forbidden sysctl: "([^"]+)"')
_CLOCKS_DIFFER = timedelta(seconds=5)
# Of the kubelet's own evictions, by the pod's reason and both messages.
KUBELET_CAUSES = RuleTable(
    ("shutdown", r"^Terminated |shutdown", _("its node shuts down")),
    ("critical-pod", r"critical pod", _("its node makes room for a critical pod")),
    ("low", r"low on resource: ([\w./-]*\w)", _("its node is short of {resource}")),
)
_SHARED_MEMORY = "shared-memory"  # the volumes of our own pods, see `grid.executions.storage`
_SCRATCH = frozenset({"home", "runtime", "local"})
_USED = RepeatedExpression(r"Container (\S+) was using ([^\s,]+), request is ([^\s,]+)")
# In bytes beyond the request: less is no fault of the program, and no larger tier helps.
_WORTH_A_TIER = {"ephemeral-storage": 2**30, "memory": 2**28}
_LARGER_TIER: tuple[Who, str] = "you", _("Launch it again on a tier that requests as much as it uses.")
_FEWER_FILES: tuple[Who, str] = (
    "you",
    _("Launch it again with fewer files on its node's disk, or with them in the project's folder."),
)
_NO_FAULT: tuple[Who, str] = "operator", _("Launch it again: it was not at fault. Ask an operator what fills the node.")
_SHORTAGES = {
    **dict.fromkeys(("ephemeral-storage", "Disk"), _("disk")),
    "inodes": _("inodes (too many files)"),
    **dict.fromkeys(("pids", "PID"), _("process ids")),
    "Memory": _("memory"),
}
REJECTIONS = {
    "NodeAffinity": _("Node {node} rejected this: its labels do not match what this asks for."),
    "Preempting": _("Node {node} ended this to make room for a critical pod."),
    **dict.fromkeys(("Shutdown", "Terminated"), _("Node {node} shut down and ended this.")),
    "NodeShutdown": _("Node {node} was shutting down and did not take this."),
    "TopologyAffinityError": _("Node {node} had no cores and devices for this that lie together (NUMA)."),
    "SMTAlignmentError": _("Node {node} gives whole cores only, and this asks for a part of one."),
    "AppArmor": _("Node {node} cannot enforce the AppArmor profile that this asks for."),
    "SysctlForbidden": _("Node {node} forbids a kernel setting (sysctl) that this asks for."),
}
# Of an `UnexpectedAdmissionError`: a device plugin has devices that do not work, or is gone.
_UNHEALTHY = Expression(
    r"(?:no healthy devices present; cannot allocate unhealthy|allocate unregistered) devices? (\S+)|no healthy devices present|"
    r"device plugin .*(?:not|gone|stopped|rpc failed)"
)
_REJECTIONS = ("OutOf", "UnexpectedAdmissionError", *REJECTIONS)
_AMOUNTS = Expression(r"requested: (\d+), used: (\d+), capacity: (\d+)")
_REJECTED = "Pod was rejected: "


def disruption_of(pod: Pod) -> Condition | None:
    """Return the condition that says that Kubernetes ends the pod, or None."""
    return true_condition(pod, "DisruptionTarget")


def disruption_cause(pod: Pod, disruption: Condition) -> str:
    """Return why, for after "because"; "" when the reason is not known."""
    if disruption.reason != "TerminationByKubelet":
        return CAUSES.get(disruption.reason, "")
    rule = KUBELET_CAUSES.find(f"{pod.status.reason} {pod.status.message} {disruption.message}")
    resource = "".join(_SHORTAGES.get(name, name) for name in rule[2].groups()) if rule else ""
    return rule[1].format(resource=resource) if rule else ""


def end_requested_by(pod: Pod, ended: Terminated) -> str:
    """Return what asked the program to end, for after "because"; "" when the pod does not say, or when it was asked later."""
    disruption = disruption_of(pod)
    if disruption is not None and is_before(disruption.last_transition_time, ended):
        return disruption_cause(pod, disruption)
    meta = pod.metadata
    if meta.deletion_timestamp is None:
        return ""
    # The timestamp lies at the end of the grace period; once the node has confirmed the end, the object's own period is 0.
    grace = max(meta.deletion_grace_period_seconds or 0, pod.spec.termination_grace_period_seconds or 0)
    return _("its pod was deleted") if is_before(meta.deletion_timestamp - timedelta(seconds=grace), ended) else ""


def explain_disrupted(pod: Pod, disruption: Condition, evidence: tuple[str, ...], evicted: Event | None) -> Diagnosis:
    cause, says = disruption_cause(pod, disruption), folded(disruption.message) or disruption.reason
    who, step = _STEPS.get(disruption.reason, ("operator", _LAUNCH_AGAIN))
    if evicted is not None and (rule := EVICTED.find(evicted.message)):
        cause = rule[1].format(reason=next(iter(rule[2].groups()), ""))
        who, step = "you", _("Launch it again, and let it save its state in between: this was no fault of the program.")
    sentence = _("Kubernetes ended this: {says}.") if says else _("Kubernetes ended this, and does not say why.")
    if cause:
        sentence = _("Kubernetes ended this because {cause}.")
    return Diagnosis("disrupted", sentence.format(cause=cause, says=says), "problem", who, step, evidence)


def is_rejected(pod: Pod) -> bool:
    """Return whether the pod's node did not take it, or ended it for itself."""
    return pod.status.reason.startswith(_REJECTIONS)


def explain_rejected(pod: Pod, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain a pod that its node did not take, although the scheduler or its maker chose the node."""
    node, reason, message = pod.spec.node_name, pod.status.reason, pod.status.message.removeprefix(_REJECTED)
    if reason.startswith("OutOf") and (amounts := _AMOUNTS.search(message)) and amounts[3] == "0":
        resource = reason.removeprefix("OutOf")
        what = _("GPU") if is_gpu(resource) else resource
        sentence = _(
            "Node {node} had no {what} to give just then, as while its device plugin starts.", node=node, what=what
        )
        step = _("Launch it again; ask an operator to look at the node's device plugin if it happens often.")
        return Diagnosis("refused_by_node", sentence, "problem", "operator", step, evidence)
    if reason.startswith("OutOf"):
        step = _("Launch it again: the scheduler looks for a node with room.")
        sentence = _("Node {node} had {reason}.", node=node, reason=_no_room(reason.removeprefix("OutOf"), message))
        return Diagnosis("refused_by_node", sentence, "problem", "you", step, evidence)
    if "maximum request size for shared resources" in message:
        sentence = _("Node {node} shares its GPUs, and gives no pod more than one share of them.", node=node)
        return Diagnosis("refused_by_node", sentence, "problem", "you", _("Choose a tier with one GPU."), evidence)
    if (broken := _UNHEALTHY.search(message)) is not None:
        says = f" ({broken[1].rstrip(',.')})" if broken[1] else f": {folded(message.rpartition('desc = ')[2])}"
        sentence = _("Devices of node {node} do not work{says}.", node=node, says=says)
        step = _("Launch it again; ask an operator to look at the devices of the node.")
        return Diagnosis("refused_by_node", sentence, "problem", "operator", step, evidence)
    fault = fault_of(message)
    says = fault.words if fault else folded(message)
    unknown = _("Node {node} rejected this: {says}.") if says else _("Node {node} rejected this ({reason}).")
    sentence = REJECTIONS.get(reason, unknown).format(node=node, says=says, reason=reason)
    if known := _SYSCTL.search(message):
        sentence = _("Node {node} forbids the sysctl {name} that this asks for.", node=node, name=known[1])
    who, step = (fault.who, fault.next_step) if fault else _STEPS.get(reason, ("operator", _LAUNCH_AGAIN))
    return Diagnosis("refused_by_node", sentence, "problem", who, step, evidence)


def explain_evicted(pod: Pod, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain an eviction by the kubelet: for the pod's own limit, or because the node was short of something."""
    rule = EVICTIONS.find(pod.status.message)
    if rule is not None:
        return rule[1](pod, rule[2], evidence)
    says = folded(pod.status.message)
    sentence = _("The node evicted this: {says}.") if says else _("The node evicted this, and does not say why.")
    return Diagnosis("evicted", sentence.format(says=says), "problem", "operator", _LAUNCH_AGAIN, evidence)


def _full_volume(pod: Pod, match: Match, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain an emptyDir over its limit. The message does not say whether it is on disk or in memory: the name does."""
    name, limit = match[1], _bytes(match[2])
    if name == _SHARED_MEMORY:
        sentence = _("It used more shared memory (/dev/shm) than the {limit} that its tier allows, and was evicted.")
        step = _("Use fewer worker processes or smaller batches, or choose a tier with more shared memory.")
    elif name.endswith("shm"):  # as examples of PyTorch, Ray and vLLM name it
        sentence = _("It used more shared memory (/dev/shm) than the {limit} of its volume {name}, and was evicted.")
        step = _("Use fewer worker processes or smaller batches, or ask your admin to raise the volume's limit.")
    elif name in _SCRATCH:
        sentence = _("It wrote more than {limit} to the volume {name} on its node's disk, and was evicted.")
        step = _("Write large files to the project's folder, or choose a tier with more ephemeral storage.")
    else:
        sentence = _("It wrote more than {limit} to the emptyDir volume {name}, which is its limit, and was evicted.")
        step = _("Write large files to another volume, or ask your admin to raise the limit.")
    return Diagnosis("storage_limit", sentence.format(limit=limit, name=name), "problem", "you", step, evidence)


def _full_disk(pod: Pod, match: Match, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain a pod that exceeded its own limit on the node's disk, rather than the node being short."""
    name = match[1]
    if name and name != PROGRAM and any(container.name == PROGRAM for container in pod.spec.containers):
        sentence = _("Container {name}, not the program, wrote more than {limit} to the node's disk, which ended both.")
        step = _("Launch it again; ask your admin to raise the limit of container {name}, or to let it write less.")
        sentence, step = sentence.format(name=name, limit=_bytes(match[2])), step.format(name=name)
        return Diagnosis("storage_limit", sentence, "problem", "admin", step, evidence)
    sentence = _("It wrote more to its node's disk than its tier allows, and was evicted.")
    step = _("Write large files to the project's folder, or choose a tier with more ephemeral storage.")
    return Diagnosis("storage_limit", sentence, "problem", "you", step, evidence)


def _under_pressure(pod: Pod, match: Match, evidence: tuple[str, ...]) -> Diagnosis:
    sentence = _("The node was short of {shortage} and did not take this.", shortage=_SHORTAGES[match[1]])
    return Diagnosis("evicted", sentence, "problem", "operator", _LAUNCH_AGAIN, evidence)


def _short_of(pod: Pod, match: Match, evidence: tuple[str, ...]) -> Diagnosis:
    sentence = _("The node ran short of {shortage} and evicted this", shortage=_SHORTAGES.get(match[1], match[1]))
    if not (used := _used(pod, match[1])):
        return Diagnosis("evicted", f"{sentence}.", "problem", "operator", _LAUNCH_AGAIN, evidence)
    sentence, uses = f"{sentence}: {used}", _USED.findall(pod.status.message)
    then = _FEWER_FILES if match[1] == "inodes" else _LARGER_TIER
    try:  # of each container that uses more than it requests, however little that is
        excess, largest = max((whole(used) - whole(requested), name) for name, used, requested in uses)
    except ValueError:
        excess, largest = 2**63, PROGRAM
    if excess < _WORTH_A_TIER.get(match[1], 0):
        sentence, then = _("{sentence}, which hardly explains it", sentence=sentence), _NO_FAULT
    elif largest != PROGRAM and PROGRAM in [container.name for container in pod.spec.containers]:
        then = "admin", _("Launch it again; ask your admin about container {name}, not the program's.", name=largest)
    return Diagnosis("evicted", f"{sentence}.", "problem", *then, evidence)


EVICTIONS = RuleTable(
    ("volume-limit", r'Usage of EmptyDir volume "([^"]+)" exceeds the limit "([^"]+)"', _full_volume),
    (
        "disk-limit",
        r'Container (\S+) exceeded its local ephemeral storage limit "([^"]+)"|ephemeral local storage',
        _full_disk,
    ),
    ("pressure", r"node had condition: \[(Memory|Disk|PID)Pressure", _under_pressure),
    ("low", r"low on resource: ([\w./-]*\w)", _short_of),
)


def _used(pod: Pod, resource: str) -> str:
    """Return "it used 2.3 GiB and requests none", with each container that the kubelet names if the pod has several."""
    several = len(pod.spec.containers) + len(pod.spec.init_containers) > 1
    parts, uses = [], _USED.findall(pod.status.message)
    for name, used, requested in uses:
        if resource in ("memory", "ephemeral-storage"):
            used, requested = _bytes(used), _bytes(requested)
        asked = _("none") if requested in ("0", "0 B") else requested
        words = _("it used {used} and requests {asked}")
        if several or len(uses) > 1:
            words = _("container {name} used {used} and requests {asked}")
        parts.append(words.format(name=name, used=used, asked=asked))
    return "; ".join(parts)


def _no_room(resource: str, message: str) -> str:
    """Return "too little CPU left for this: it requests 6 cores, and 2 cores of 8 cores were free"."""
    amounts = _AMOUNTS.search(message)
    requested, used, capacity = (int(amount) for amount in amounts.groups()) if amounts else (0, 0, 0)
    if resource == "pods":
        words = _("no room for another pod")
        if amounts:
            words = _("no room for another pod: it ran {used:,} of at most {capacity:,}")
        return words.format(used=used, capacity=capacity)
    name = {"cpu": "CPU", "ephemeral-storage": _("disk"), "memory": _("memory")}.get(resource, resource)
    left = _("too little {resource} left for this", resource=name)
    if is_gpu(resource):
        left = _("too few GPUs left for this")
    if amounts is None:
        return left
    asked, free, all_of_it = (_amount(resource, amount) for amount in (requested, max(0, capacity - used), capacity))
    words = _("{left}: it requests {asked}, and {free} of {capacity} were free")
    return words.format(left=left, asked=asked, free=free, capacity=all_of_it)


def _amount(resource: str, amount: int) -> str:
    """Return an amount as the kubelet counts it: CPU in thousandths of a core, memory and disk in bytes."""
    if resource == "cpu":
        return core_words(amount)
    return format_bytes(amount) if resource in ("memory", "ephemeral-storage") else f"{amount:,}"


def _bytes(text: str) -> str:
    try:
        return format_bytes(whole(text))
    except ValueError:
        return text


def is_before(moment: datetime | None, ended: Terminated) -> bool:
    """Return whether the program ended after `moment`; True when it is not known."""
    return moment is None or ended.finished_at is None or moment <= ended.finished_at + _CLOCKS_DIFFER
