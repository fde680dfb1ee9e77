"""Names that Compute Grid reads and writes on Kubernetes objects.

They are in one place, so that a selector and its label cannot drift apart. The prefix and the node-pool key are chosen once for an
installation (environment variables `GRID_LABEL_PREFIX`, `GRID_NODE_POOL_LABEL`), for all its processes.
"""

import hashlib
import os
import string
from dataclasses import dataclass
from functools import cache

PREFIX = os.environ.get("GRID_LABEL_PREFIX", "dominodatalab.com")
NODE_POOL = os.environ.get("GRID_NODE_POOL_LABEL", f"{PREFIX}/node-pool")
PLATFORM_NODE = f"{PREFIX}/platform-node"
PLATFORM_POOL = "platform"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"

APP_NAME = "app.kubernetes.io/name"
APP_INSTANCE = "app.kubernetes.io/instance"
APP_COMPONENT = "app.kubernetes.io/component"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "compute-grid"
SIMULATED = f"{PREFIX}/simulated"  # on objects that the embedded cluster only simulates
POD_SECURITY = "pod-security.kubernetes.io/enforce"  # on a namespace
HEAD = "head"  # values of APP_COMPONENT on the pods of a cluster
WORKER = "worker"
PROGRAM_ENDED = f"{PREFIX}/program-ended"  # annotation of a run's pod: tells its executor that the program has ended
PLACEHOLDER = "placeholder"
WARM_UNTIL = f"{PREFIX}/warm-until"  # annotation of a placeholder: when its tier's warm-up hours end, in words
RUSH_PLAN = f"{PREFIX}/rush-plan"  # annotation of a placeholder that a rush plan asks for: the plan's id
PLACEHOLDER_CLASS = "compute-grid-placeholder"  # the PriorityClass of placeholders
# On what checks of the API make: which run's it is; on a namespace: which installation's.
API_CHECK = f"{PREFIX}/api-check"

CORDONED_BY = f"{PREFIX}/cordoned-by"  # annotations of a cordoned node: who, when (RFC 3339) and why
CORDONED_AT = f"{PREFIX}/cordoned-at"
CORDON_REASON = f"{PREFIX}/cordon-reason"

SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
DELETION_CANDIDATE_TAINT = "DeletionCandidateOfClusterAutoscaler"
TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler"
# Karpenter taints a node that it removes; the second is what it wrote before version 1.
KARPENTER_DISRUPTED_TAINTS = ("karpenter.sh/disrupted", "karpenter.sh/disruption")
KARPENTER_POOL = "karpenter.sh/nodepool"
# What a cloud, or its tool, writes on a node: its own name of the nodes that grow together.
NODE_GROUP_LABELS = (
    *("eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name"),
    *("cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", KARPENTER_POOL),
)

_ALLOWED = frozenset(f"{string.ascii_letters}{string.digits}_.-")
_MAX_VALUE = 63


@dataclass(frozen=True, slots=True)
class Keys:
    """The label keys under a prefix; `worker_report` annotates a cluster's worker pods, `demand` its autoscaler."""

    workload_type: str
    tier: str
    project: str
    user: str
    execution: str
    worker_report: str
    demand: str

    @classmethod
    @cache  # each pod's change asks
    def under(cls, prefix: str = PREFIX) -> "Keys":
        return cls(
            workload_type=f"{prefix}/workload-type",
            tier=f"{prefix}/hardware-tier-id",
            project=f"{prefix}/project-id",
            user=f"{prefix}/starting-user-username",
            execution=f"{prefix}/execution-id",
            worker_report=f"{prefix}/worker-report",
            demand=f"{prefix}/demand",
        )


KEYS = Keys.under()


def label_value(text: str) -> str:
    """Return a valid label value that stays readable: at most 63 characters of `[A-Za-z0-9_.-]`, alphanumeric at both ends. A text that had
    to be changed gets a short hash of the original, so two texts never share one value."""
    parts = "".join(character if character in _ALLOWED else " " for character in text).split()
    cleaned = "-".join(parts).strip("-_.")[:_MAX_VALUE].strip("-_.")
    if cleaned == text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{cleaned[: _MAX_VALUE - 9].rstrip('-_.')}-{digest}" if cleaned else digest
