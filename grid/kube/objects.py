"""Slim typed views of Kubernetes objects: the fields that pages and rules read, decoded by msgspec straight from bytes.

Field names are Kubernetes' own in snake case. A missing field is empty here, never None, unless absence means something (a time that has
not come, an exit code). Quantities stay text (`grid.core.quantity`). A caller that needs a whole object fetches it; see `KubeApi.get`.
"""

import sys
from datetime import datetime
from typing import Any, Literal

import msgspec

from grid.kube.slim import (
    Address,
    Affinity,
    ContainerPort,
    ContainerProbe,
    EventSeries,
    EventSource,
    NodeImage,
    NodeInfo,
    NodeTerms,
    PodVolume,
    ResourceClaimUse,
    SchedulingGate,
    Slim,
    SpreadConstraint,
    shared,
)

DEFAULT_SCHEDULER = "default-scheduler"
_RESIZING = frozenset(
    {"PodResizePending", "PodResizeInProgress"}
)  # conditions of a pod whose resources are changed in place


class OwnerReference(Slim, frozen=True, kw_only=True):
    kind: str
    name: str
    uid: str = ""
    controller: bool = False


class Metadata(Slim, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The object's `namespace/name`, or `name` when it has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(Slim, frozen=True, kw_only=True):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Taint(Slim, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class Toleration(Slim, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ResourceRequirements(Slim, frozen=True, kw_only=True):
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class ContainerSpec(Slim, frozen=True, kw_only=True):
    name: str
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    readiness_probe: ContainerProbe | None = None
    startup_probe: ContainerProbe | None = None
    ports: tuple[ContainerPort, ...] = ()

    def __post_init__(self) -> None:
        """Keep the host ports alone: every pod is in memory, and nothing reads the others."""
        if self.ports:
            msgspec.structs.force_setattr(self, "ports", tuple([port for port in self.ports if port.host_port]))


class Waiting(Slim, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class Running(Slim, frozen=True, kw_only=True):
    started_at: datetime | None = None


class Terminated(Slim, frozen=True, kw_only=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Slim, frozen=True, kw_only=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Slim, frozen=True, kw_only=True):
    name: str
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    allocated_resources: dict[str, str] | None = None
    resources: ResourceRequirements | None = None

    def __post_init__(self) -> None:
        """Keep each image's id once: every pod is in memory, and they run few images."""
        if self.image_id:
            msgspec.structs.force_setattr(self, "image_id", sys.intern(self.image_id))


class PodSpec(Slim, frozen=True, kw_only=True):
    containers: tuple[ContainerSpec, ...] = ()
    init_containers: tuple[ContainerSpec, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    overhead: dict[str, str] = {}
    node_name: str = ""
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    priority: int = 0
    restart_policy: str = "Always"
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduler_name: str = DEFAULT_SCHEDULER
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    resource_claims: tuple[ResourceClaimUse, ...] = ()
    volumes: tuple[PodVolume, ...] = ()

    def __post_init__(self) -> None:
        """Keep the volumes with a claim alone, and one name of the scheduler: every pod is in memory and mounts its account's token."""
        if self.volumes:
            claims = tuple([volume for volume in self.volumes if volume.persistent_volume_claim or volume.ephemeral])
            msgspec.structs.force_setattr(self, "volumes", claims)
        if self.scheduler_name == DEFAULT_SCHEDULER:
            msgspec.structs.force_setattr(self, "scheduler_name", DEFAULT_SCHEDULER)


class PodStatus(Slim, frozen=True, kw_only=True):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: datetime | None = None
    nominated_node_name: str = ""

    def __post_init__(self) -> None:
        """Keep what the containers have of their node only during a resize: otherwise it is what the spec requests."""
        resizable = [
            status
            for status in (*self.container_statuses, *self.init_container_statuses)
            if status.resources is not None or status.allocated_resources is not None
        ]
        if resizable and _RESIZING.isdisjoint([condition.type for condition in self.conditions]):
            for status in resizable:
                msgspec.structs.force_setattr(status, "resources", None)
                msgspec.structs.force_setattr(status, "allocated_resources", None)


class Pod(Slim, frozen=True, kw_only=True):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeSpec(Slim, frozen=True, kw_only=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Slim, frozen=True, kw_only=True):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[Address, ...] = ()
    node_info: NodeInfo = NodeInfo()
    images: tuple[NodeImage, ...] = ()

    def __post_init__(self) -> None:
        """Keep one object for each image, however many nodes have it."""
        if self.images:
            msgspec.structs.force_setattr(self, "images", shared(self.images))


class Node(Slim, frozen=True, kw_only=True):
    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def true_condition(thing: "Pod | Node", kind: str) -> Condition | None:
    return next((each for each in thing.status.conditions if each.type == kind and each.status == "True"), None)


def is_refused(pod: Pod) -> bool:
    """Return whether the scheduler has looked for a node for the pod and found none."""
    return any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)


def is_ready(thing: "Pod | Node") -> bool:
    return true_condition(thing, "Ready") is not None


class ObjectReference(Slim, frozen=True, kw_only=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class Event(Slim, frozen=True, kw_only=True):
    metadata: Metadata
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    type: str = "Normal"
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: EventSeries | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
    action: str = ""

    @property
    def last_seen(self) -> datetime | None:
        """When the event happened last, in whichever of the four fields the reporter wrote it."""
        series = self.series.last_observed_time if self.series else None
        return series or self.last_timestamp or self.event_time or self.metadata.creation_timestamp

    @property
    def times(self) -> int:
        return max(self.count, self.series.count if self.series else 0, 1)

    @property
    def reporter(self) -> str:
        return self.reporting_component or self.source.component


class VolumeClaimSpec(Slim, frozen=True, kw_only=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    resources: ResourceRequirements = ResourceRequirements()


class VolumeClaimStatus(Slim, frozen=True, kw_only=True):
    phase: str = "Pending"


class VolumeClaim(Slim, frozen=True, kw_only=True):
    """A PersistentVolumeClaim."""

    metadata: Metadata
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumeClaimStatus = VolumeClaimStatus()


class VolumeNodeAffinity(Slim, frozen=True, kw_only=True):
    required: NodeTerms | None = None


class VolumeSpec(Slim, frozen=True, kw_only=True):
    storage_class_name: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    capacity: dict[str, str] = {}
    claim_ref: ObjectReference | None = None


class Volume(Slim, frozen=True, kw_only=True):
    """A PersistentVolume."""

    metadata: Metadata
    spec: VolumeSpec = VolumeSpec()


class StorageClass(Slim, frozen=True, kw_only=True):
    metadata: Metadata

    @property
    def is_default(self) -> bool:
        """Return whether claims that name no class are given this one."""
        return self.metadata.annotations.get("storageclass.kubernetes.io/is-default-class") == "true"


class ConfigMap(Slim, frozen=True, kw_only=True):
    metadata: Metadata
    data: dict[str, str] = {}


class MetricValue(Slim, frozen=True, kw_only=True):
    type: str = ""
    average_utilization: int | None = None
    average_value: str = ""
    value: str = ""


class ResourceMetric(Slim, frozen=True, kw_only=True):
    name: str = ""
    target: MetricValue = MetricValue()
    current: MetricValue = MetricValue()


class MetricName(Slim, frozen=True, kw_only=True):
    name: str = ""


class ExternalMetric(Slim, frozen=True, kw_only=True):
    metric: MetricName = MetricName()
    target: MetricValue = MetricValue()
    current: MetricValue = MetricValue()


class Metric(Slim, frozen=True, kw_only=True):
    """One metric of an autoscaler: with its target in the spec, with its current value in the status."""

    type: str = ""
    resource: ResourceMetric | None = None
    external: ExternalMetric | None = None


class AutoscalerSpec(Slim, frozen=True, kw_only=True):
    min_replicas: int = 1
    max_replicas: int = 1
    metrics: tuple[Metric, ...] = ()


class AutoscalerStatus(Slim, frozen=True, kw_only=True):
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: tuple[Metric, ...] | None = None
    conditions: tuple[Condition, ...] | None = None


class Autoscaler(Slim, frozen=True, kw_only=True):
    """A HorizontalPodAutoscaler, autoscaling/v2."""

    metadata: Metadata
    spec: AutoscalerSpec = AutoscalerSpec()
    status: AutoscalerStatus = AutoscalerStatus()


RawObject = dict[str, Any]
"""A whole Kubernetes object as JSON gives it; stays inside grid.kube, manifests and describe."""
