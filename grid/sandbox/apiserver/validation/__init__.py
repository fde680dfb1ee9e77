"""Validation: every problem of an object at once, as a 422 with Kubernetes' words.

Each family of kinds has a module of pure functions from an object to a list of causes.
"""

from collections.abc import Callable, Mapping

from grid.sandbox.apiserver.deletion import new_finalizers_problem
from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.status import StatusCause, invalid
from grid.sandbox.apiserver.validation import batch, classes, limits, others, pod, storage, workload
from grid.sandbox.apiserver.validation.metadata import check_metadata
from grid.sandbox.storage import CLASSES_RESOURCE

Check = Callable[[Object], list[StatusCause]]
UpdateCheck = Callable[[Object, Object], list[StatusCause]]
_NEW: Mapping[str, Check] = {
    "pods": pod.check_pod,
    "deployments.apps": workload.check_deployment,
    "replicasets.apps": workload.check_replica_set,
    "horizontalpodautoscalers.autoscaling": workload.check_autoscaler,
    "poddisruptionbudgets.policy": workload.check_budget,
    "jobs.batch": batch.check_job,
    "configmaps": others.check_data,
    "secrets": others.check_secret,
    "services": others.check_service,
    "persistentvolumeclaims": others.check_claim,
    "persistentvolumes": storage.check_volume,
    CLASSES_RESOURCE: storage.check_storage_class,
    "resourcequotas": others.check_quota,
    "limitranges": limits.check_limit_range,
    "leases.coordination.k8s.io": others.check_lease,
    "endpointslices.discovery.k8s.io": others.check_endpoint_slice,
    "apiservices.apiregistration.k8s.io": others.check_api_service,
    "priorityclasses.scheduling.k8s.io": classes.check_priority_class,
    "events": others.check_event,
}
_UPDATES: Mapping[str, UpdateCheck] = {
    "pods": pod.check_pod_update,
    "deployments.apps": workload.check_deployment_update,
    "replicasets.apps": workload.check_deployment_update,
    "configmaps": others.check_data_update,
    "secrets": others.check_data_update,
    "services": others.check_service_update,
    "endpointslices.discovery.k8s.io": others.check_endpoint_slice_update,
    "persistentvolumeclaims": others.check_claim_update,
    "persistentvolumes": storage.check_volume_update,
    CLASSES_RESOURCE: storage.check_storage_class_update,
    "priorityclasses.scheduling.k8s.io": classes.check_priority_class_update,
}


def check_new(kind: ServedKind, obj: Object) -> None:
    causes = check_metadata(kind, obj)
    if kind.resource in _NEW:
        causes += _NEW[kind.resource](obj)
    _raise(kind, obj, causes)


def check_update(kind: ServedKind, new: Object, old: Object, subresource: str) -> None:
    """Raise a 422 `Failure` for an invalid update. A subresource sets its other fields itself, so only its metadata is checked."""
    causes = [*new_finalizers_problem(new, old), *check_metadata(kind, new)]
    if not subresource:
        causes += _UPDATES[kind.resource](new, old) if kind.resource in _UPDATES else []
        if not causes:
            causes += _NEW[kind.resource](new) if kind.resource in _NEW else []
    _raise(kind, new, causes)


def _raise(kind: ServedKind, obj: Object, causes: list[StatusCause]) -> None:
    if causes:
        raise invalid(kind.kind, kind.group, obj["metadata"].get("name") or "", causes)
