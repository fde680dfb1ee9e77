"""The amounts of a ResourceQuota in words, by the quota's own names of resources: computing, storage, and counts of objects; pure.

The names are those of Kubernetes' evaluators: pkg/quota/v1/evaluator/core (pods, services, persistent_volume_claims, resource_claims)
and its generic one, which counts any object as `count/<resource>.<group>`.
"""

from grid.core.quantity import format_bytes, is_gpu, millicores, whole
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.diagnosis.resources import core_words

COUNTED_PODS = ("pods", "count/pods")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_OF_DEVICES = ".deviceclass.resource.k8s.io/devices"
# The older names, without `count/`, are those of these few.
_OBJECTS = {
    "configmaps": ("ConfigMap", "ConfigMaps"), "secrets": ("Secret", "Secrets"), "services": ("Service", "Services"),
    "services.loadbalancers": (_("Service of type LoadBalancer"), _("Services of type LoadBalancer")),
    "services.nodeports": (_("Service of type NodePort"), _("Services of type NodePort")),
    "persistentvolumeclaims": (_("volume claim"), _("volume claims")),
    "replicationcontrollers": ("ReplicationController", "ReplicationControllers"), "resourcequotas": ("ResourceQuota", "ResourceQuotas"),
    "serviceaccounts": ("ServiceAccount", "ServiceAccounts"), "deployments.apps": ("Deployment", "Deployments"),
    "replicasets.apps": ("ReplicaSet", "ReplicaSets"), "statefulsets.apps": ("StatefulSet", "StatefulSets"), "jobs.batch": ("Job", "Jobs"),
    "ingresses.networking.k8s.io": ("Ingress", "Ingresses"), "networkpolicies.networking.k8s.io": ("NetworkPolicy", "NetworkPolicies"),
    "horizontalpodautoscalers.autoscaling": ("HorizontalPodAutoscaler", "HorizontalPodAutoscalers"),
    "resourceclaims.resource.k8s.io": ("ResourceClaim", "ResourceClaims"),
}  # fmt: skip


def spent(name: str, hard: str, used: str, asked: str) -> str:
    """Return how much of one resource of a quota is used, as "10 of 10 pods are in use and this takes 1 pod"."""
    limit, taken, more = quota_amount(name, hard), quota_amount(name, used), quota_amount(name, asked)
    if counted_objects(name) or name.endswith(_OF_DEVICES):
        number = f"{taken:,}"
    elif is_storage(name):
        number = format_bytes(taken)
    else:
        number = quota_words(name, taken).removesuffix(f" ({name})")
    words = _("{used} of {limit} are in use and this takes {asked}")
    return words.format(used=number, limit=quota_words(name, limit), asked=quota_words(name, more))


def is_more(name: str, asked: str, hard: str) -> bool:
    """Return whether one object asks for more of a quota's resource than there is in all."""
    return quota_amount(name, asked) > quota_amount(name, hard)


def is_storage(name: str) -> bool:
    """Return whether the resource is storage of volume claims, or their number: it is freed by deleting claims, not by ending pods."""
    return name == "requests.storage" or _OF_CLASS in name or _object_of(name) == "persistentvolumeclaims"


def counted_objects(name: str) -> tuple[str, str] | None:
    """Return what is counted, one and many, such as "pod" and "pods"; None for amounts of computing and storage."""
    counted = _object_of(name)
    if counted == "pods":
        return "pod", "pods"
    if counted in _OBJECTS:
        return _OBJECTS[counted]
    return (counted, counted) if name.startswith("count/") else None


def quota_amount(name: str, text: str) -> int:
    """Read a quota's quantity: CPU in thousandths of a core; 0 when it cannot be read."""
    try:
        return millicores(text) if name in ("cpu", "requests.cpu", "limits.cpu") else whole(text)
    except ValueError:
        return 0


def quota_words(name: str, amount: int) -> str:
    """Return an amount with the unit and the quota's own name of the resource."""
    counted, (storage_class, _dot, of_class) = counted_objects(name), name.partition(_OF_CLASS)
    if counted:
        words = plural(amount, *counted)
        return _("{words} of the storage class {name}", words=words, name=storage_class) if of_class else words
    if of_class:
        return _("{amount} of the storage class {name}", amount=format_bytes(amount), name=storage_class)
    if name.endswith(_OF_DEVICES):
        devices = ngettext("{count:,} device", "{count:,} devices", amount)
        return _("{devices} of the class {name}", devices=devices, name=name.removesuffix(_OF_DEVICES))
    kind = name.rpartition(".")[2] if not name.startswith(("requests.", "limits.")) else name.partition(".")[2]
    if kind == "cpu":
        words = core_words(amount)
    elif kind in ("memory", "ephemeral-storage", "storage") or kind.startswith("hugepages-"):
        words = format_bytes(amount)
    elif is_gpu(kind):
        words = plural(amount, "GPU", "GPUs")
    else:
        words = f"{amount:,}"
    if name == "cpu":
        return words
    if kind == "storage":
        return _("{amount} of storage", amount=words)
    return _("{amount} of memory", amount=words) if name == "memory" else f"{words} ({name})"


def _object_of(name: str) -> str:
    """Return "pods" of count/pods and of pods, also of a storage class's count of claims."""
    return name.partition(_OF_CLASS)[2] or name.removeprefix("count/")
