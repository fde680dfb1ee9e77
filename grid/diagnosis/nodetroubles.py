"""Puts the conditions of a node that tell of trouble into words, those of its kubelet and those of other agents on it; pure."""

from collections.abc import Sequence

from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import folded
from grid.kube.objects import Condition, Node

_PROBLEMS = {
    "MemoryPressure": _("low on memory"), "DiskPressure": _("low on disk"), "PIDPressure": _("too many processes"),
    "NetworkUnavailable": _("network not set up"), "ReadonlyFilesystem": _("a file system is read-only"),
    "KernelDeadlock": _("the kernel hangs"), "CorruptDockerOverlay2": _("images are damaged on disk"),
    "FrequentKubeletRestart": _("its kubelet restarts again and again"),
    "FrequentContainerdRestart": _("its container runtime restarts again and again"),
    "KubeletUnhealthy": _("its kubelet is not healthy"), "ContainerRuntimeUnhealthy": _("its container runtime is not healthy"),
}  # fmt: skip
_ORDER = {name: place for place, name in enumerate(_PROBLEMS)}
# By such a name, or such a reason, an unknown condition tells of trouble and not that all is well.
_TROUBLE_BY_NAME = Expression(r"(?i)error|fail|fault|xid|unhealthy|problem|deadlock|corrupt|degraded|read-?only")
_HARMLESS = frozenset({"EtcdIsVoter"})  # k3s and RKE2 say by it that all is well


def node_troubles(node: Node) -> Sequence[tuple[Condition, str]]:
    """Return each condition but "Ready" that tells of trouble, with what it says is wrong; the known ones first."""
    known_first = sorted(node.status.conditions, key=lambda condition: _ORDER.get(condition.type, len(_ORDER)))
    return [(condition, words) for condition in known_first if (words := _trouble(condition))]


def is_certain(condition: Condition) -> bool:
    """Return whether what the condition tells of is trouble for sure: an unknown one that is "True" may say that all is well."""
    is_named_so = _TROUBLE_BY_NAME.search(f"{condition.type} {condition.reason}") is not None
    return condition.type in _PROBLEMS or condition.type.endswith("Ready") or is_named_so


def _trouble(condition: Condition) -> str:
    """Return what a condition says is wrong, "" for nothing. Beside the kubelet's own there are those of other agents.
    node-problem-detector's are named for the problem, and "True" then; those of EKS's monitoring agent end in "Ready" as the kubelet's own
    does, and "False" is the problem."""
    name = condition.type
    if name == "Ready" or name in _HARMLESS or condition.status != ("False" if name.endswith("Ready") else "True"):
        return ""
    if words := _PROBLEMS.get(name):
        return words
    says = folded(condition.message) or condition.reason
    return _("{name}: {message}", name=name, message=says) if says else name
