"""The kinds that the embedded API server serves: one table, from which routing, discovery, storage and error
messages follow.

Behaviour that differs between kinds (defaults, validation, columns) lives in modules that are keyed by
`ServedKind.resource`. A new kind is one row here, and an entry in each table that should treat it in its own way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
SUBRESOURCE_VERBS = ("get", "patch", "update")
_COMMON_FIELDS = {"metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace"}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A path below an object, e.g. `pods/log`; `kind` (with its group and version) is the type of its body."""

    name: str
    kind: str = ""
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = SUBRESOURCE_VERBS


STATUS = Subresource("status")
SCALE = Subresource("scale", "Scale", "autoscaling", "v1")


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One served kind. `fields` maps the field selectors it knows to the paths they read."""

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    fields: Mapping[str, str] = field(default_factory=dict)
    counts_generations: bool = False
    returns_deleted: bool = False  # DELETE answers with the object instead of a Status

    @property
    def resource(self) -> str:
        """The name in error messages and in the store: "pods", "deployments.apps"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def has_status(self) -> bool:
        return STATUS in self.subresources

    def subresource(self, name: str) -> Subresource | None:
        return next((sub for sub in self.subresources if sub.name == name), None)

    def selectable(self) -> Mapping[str, str]:
        return {**_COMMON_FIELDS, **self.fields}


def _same(*paths: str) -> dict[str, str]:
    return {path: path for path in paths}


_POD_SUBRESOURCES = (
    Subresource("binding", "Binding", verbs=("create",)),
    Subresource("eviction", "Eviction", "policy", "v1", ("create",)),
    Subresource("exec", "PodExecOptions", verbs=("create", "get")),
    Subresource("log", verbs=("get",)),
    STATUS,
)
_POD_FIELDS = {
    **_same("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
    **_same("status.phase", "status.podIP", "status.nominatedNodeName"),
}
_EVENT_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = {
    **{f"involvedObject.{part}": f"involvedObject.{part}" for part in _EVENT_REFERENCE},
    **_same("reason", "type"),
    "reportingComponent": "reportingComponent",
    "source": "source.component",
}

_READ_ONLY = ("get", "list")

KINDS: tuple[ServedKind, ...] = (
    ServedKind("ConfigMap", "configmaps", short=("cm",)),
    ServedKind("Endpoints", "endpoints", short=("ep",)),
    ServedKind("Event", "events", short=("ev",), fields=_EVENT_FIELDS),
    ServedKind("LimitRange", "limitranges", short=("limits",)),
    ServedKind(
        "Namespace",
        "namespaces",
        namespaced=False,
        short=("ns",),
        subresources=(STATUS,),
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        fields=_same("status.phase"),
        returns_deleted=True,
    ),
    ServedKind(
        "Node", "nodes", namespaced=False, short=("no",), subresources=(STATUS,), fields=_same("spec.unschedulable")
    ),
    ServedKind(
        "PersistentVolume",
        "persistentvolumes",
        namespaced=False,
        short=("pv",),
        subresources=(STATUS,),
        returns_deleted=True,
    ),
    ServedKind(
        "PersistentVolumeClaim", "persistentvolumeclaims", short=("pvc",), subresources=(STATUS,), returns_deleted=True
    ),
    ServedKind(
        "Pod",
        "pods",
        short=("po",),
        categories=("all",),
        subresources=_POD_SUBRESOURCES,
        fields=_POD_FIELDS,
        counts_generations=True,
        returns_deleted=True,
    ),
    ServedKind("ResourceQuota", "resourcequotas", short=("quota",), subresources=(STATUS,), returns_deleted=True),
    ServedKind("Secret", "secrets", fields=_same("type")),
    ServedKind(
        "ServiceAccount",
        "serviceaccounts",
        short=("sa",),
        subresources=(Subresource("token", "TokenRequest", "authentication.k8s.io", "v1", ("create",)),),
        returns_deleted=True,
    ),
    ServedKind(
        "Service",
        "services",
        short=("svc",),
        categories=("all",),
        subresources=(STATUS,),
        fields=_same("spec.clusterIP", "spec.type"),
        returns_deleted=True,
    ),
    ServedKind("APIService", "apiservices", "apiregistration.k8s.io", namespaced=False, subresources=(STATUS,)),
    ServedKind(
        "Deployment",
        "deployments",
        "apps",
        short=("deploy",),
        categories=("all",),
        subresources=(SCALE, STATUS),
        counts_generations=True,
    ),
    ServedKind(
        "ReplicaSet",
        "replicasets",
        "apps",
        short=("rs",),
        categories=("all",),
        subresources=(SCALE, STATUS),
        fields=_same("status.replicas"),
        counts_generations=True,
    ),
    ServedKind(
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "autoscaling",
        "v2",
        short=("hpa",),
        categories=("all",),
        subresources=(STATUS,),
    ),
    ServedKind("Job", "jobs", "batch", categories=("all",), subresources=(STATUS,), counts_generations=True),
    ServedKind("Lease", "leases", "coordination.k8s.io"),
    ServedKind("EndpointSlice", "endpointslices", "discovery.k8s.io", counts_generations=True),
    ServedKind(
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "policy",
        short=("pdb",),
        subresources=(STATUS,),
        counts_generations=True,
    ),
    ServedKind(
        "Ingress", "ingresses", "networking.k8s.io", short=("ing",), subresources=(STATUS,), counts_generations=True
    ),
    ServedKind("NetworkPolicy", "networkpolicies", "networking.k8s.io", short=("netpol",), counts_generations=True),
    ServedKind(
        "PriorityClass",
        "priorityclasses",
        "scheduling.k8s.io",
        namespaced=False,
        short=("pc",),
        counts_generations=True,
    ),
    ServedKind(
        "StorageClass", "storageclasses", "storage.k8s.io", namespaced=False, short=("sc",), returns_deleted=True
    ),
    ServedKind("NodeMetrics", "nodes", "metrics.k8s.io", "v1beta1", namespaced=False, verbs=_READ_ONLY),
    ServedKind("PodMetrics", "pods", "metrics.k8s.io", "v1beta1", verbs=_READ_ONLY),
    ServedKind(
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "authorization.k8s.io",
        namespaced=False,
        verbs=("create",),
    ),
    ServedKind(
        "SelfSubjectRulesReview", "selfsubjectrulesreviews", "authorization.k8s.io", namespaced=False, verbs=("create",)
    ),
    ServedKind("SelfSubjectReview", "selfsubjectreviews", "authentication.k8s.io", namespaced=False, verbs=("create",)),
)

_BY_PATH = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
_STORED = {kind.resource: kind for kind in KINDS if "watch" in kind.verbs}


def find_kind(group: str, version: str, plural: str) -> ServedKind | None:
    return _BY_PATH.get((group, version, plural))


def stored_kinds() -> Mapping[str, ServedKind]:
    """Return the kinds that have objects of their own, by resource."""
    return _STORED


def has_group(group: str, version: str = "") -> bool:
    return any(kind.group == group and version in ("", kind.version) for kind in KINDS)


NAMESPACES = _STORED["namespaces"]
PODS = _STORED["pods"]


def dig(obj: Object, path: str) -> Any:
    """Return the value at a dotted path, or None where anything on the way is missing."""
    value: Any = obj
    for part in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value
