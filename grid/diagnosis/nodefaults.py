"""Why a node cannot run what it was given, in the words of its kubelet, container runtime, network plugins and device plugins; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from grid.core.translation import gettext as _
from grid.diagnosis.diagnosis import Who
from grid.diagnosis.rules import RuleTable

# In the words of the kubelet, containerd, cri-o and the network plugins; {name} is what the pattern found.
NODE_FAULTS = RuleTable(
    ("runtime-handler", r'no runtime for "([^"]+)" is configured|failed to find runtime handler (\S+)|binary not installed "([^"]+)"',
     _("it has no runtime for the RuntimeClass of this")),
    ("user-namespaces", r"does not support user namespaces", _("its runtime for this has no user namespaces (hostUsers: false)")),
    ("no-address", (r"(?i)\b(?:no|not enough) (?:more )?(?:(?:free|available) (?:IP|address)|(?:IPs?|(?:IP )?address(?:es)?) available)|"
     r"failed to assign an IP|InsufficientFreeAddresses|SubnetFull|range is full"), _("it has no free address for another pod")),
    ("no-such-network", r"cannot find a network-attachment-definition \(([^)]+)\)",
     _("the network {name} that this asks for does not exist in its namespace")),
    ("network", r"cni plugin not initialized|network plugin is not ready|failed to find plugin", _("its network is not ready")),
    ("pause-image", r'failed to get sandbox image "([^"/]+)', _("it cannot pull its own pause image, having no access to {name}")),
    ("cgroups", r"/sys/fs/cgroup\S*: (?:no space left on device|cannot allocate memory)",
     _("its kernel has no cgroups left (its disk is not full)")),
    ("cgroup-driver", r"expected cgroupsPath to be|cgroup ?driver",
     _("it is set up wrongly (its kubelet and its container runtime have different cgroup drivers)")),
    ("memory-limit", r"container init was OOM-killed|memory limit too low", _("the memory limit of this is too small even to start it")),
    ("cgroup-unit", r"unable to (?:apply cgroup configuration|start unit)", _("its systemd or kernel makes no cgroup for this")),
    ("unknown-device", r"unresolvable CDI devices? ([^\s:,]+)", _("it does not know the device {name} that was given to this (CDI)")),
    ("no-processes", r"(?:fork|clone|thread)\b.*resource temporarily unavailable", _("it has no room for more processes")),
    ("no-files", r"too many open files|inotify.*no space left", _("it has no open files or inotify instances left")),
    ("no-disk", r"\b(?:mkdir|write|open) \S+: no space left on device", _("its disk is full")),
    ("broken-disk", r"\b(?:mkdir|write|open) /var/lib/[^\s:]+: (?:read-only file system|input/output error)", _("its own disk fails")),
    ("runtime-down", r"(?:containerd|crio|docker)\.sock|runtime is down|PLEG is not healthy", _("its container runtime does not answer")),
    ("service-down", r"dial unix \S*?([^/\s]+?)(?:\.sock\w*)?: connect: ", _("its service {name} does not answer")),
)  # fmt: skip
LOOK_AT_NODE = _("Ask an operator to look at the node; launched again, this may get another one.")
NO_NAMESPACES = _("Ask an operator to turn user namespaces off for this, or for a runtime and volumes that have them.")
MORE_MEMORY = _("Choose a tier with more memory.")
_OF_NODE: tuple[Who, str] = "operator", LOOK_AT_NODE
_STEPS: Mapping[str, tuple[Who, str]] = {
    "no-address": ("operator", _(
        "Ask an operator whether its subnet or address range is used up; if not, this may get another node when launched again.")),
    "user-namespaces": ("operator", NO_NAMESPACES),
    "no-such-network": ("admin", _("Ask your admin to correct the network's name or to create it (NetworkAttachmentDefinition).")),
    "memory-limit": ("you", MORE_MEMORY),
    "cgroups": ("operator", _("Ask an operator to drain and reboot the node; launched again, this may get another one.")),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeFault:
    """Why a node cannot do something, for after "the node cannot ...: ", who can repair that, and how."""

    key: str
    words: str
    who: Who
    next_step: str


def fault_of(message: str) -> NodeFault | None:
    """Return the fault of a node that the message tells of; None when no rule knows it."""
    if (rule := NODE_FAULTS.find(message)) is None:
        return None
    key, words, match = rule
    who, step = _STEPS.get(key, _OF_NODE)
    return NodeFault(key, words.format(name=next(filter(None, match.groups()), "")), who, step)
