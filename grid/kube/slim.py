"""The base of the slim typed views in `grid.kube.objects`, and views of small parts: what kubelets report of their nodes, the reporters of
events, probes, and what a pod demands of its node beyond resources: affinity, spread, host ports, volumes, gates and resource claims.

Of demands only what is required; almost no pod has any, and a web process keeps every pod, so each default is one shared empty value.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Literal

import msgspec


class Slim(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """The base of all views: immutable, camelCase on the wire, unknown fields skipped."""


class EventSource(Slim, frozen=True, kw_only=True):
    component: str = ""
    host: str = ""


class EventSeries(Slim, frozen=True, kw_only=True):
    count: int = 0
    last_observed_time: datetime | None = None


class NodeInfo(Slim, frozen=True, kw_only=True):
    kubelet_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""


class NodeImage(Slim, frozen=True, kw_only=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


def shared(images: Iterable[NodeImage]) -> tuple[NodeImage, ...]:
    """Return the images, each as one object however many nodes have it."""
    return tuple([_one(image) for image in images])


@lru_cache(maxsize=8192)
def _one(image: NodeImage) -> NodeImage:
    return image


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class SelectorRequirement(Slim, frozen=True, kw_only=True):
    """One expression of a label selector or a node selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(Slim, frozen=True, kw_only=True):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[SelectorRequirement, ...] | None = None


class NodeSelectorTerm(Slim, frozen=True, kw_only=True):
    match_expressions: tuple[SelectorRequirement, ...] | None = None
    match_fields: tuple[SelectorRequirement, ...] | None = None


class NodeTerms(Slim, frozen=True, kw_only=True):
    """Alternatives: a node must match one of them."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class NodeAffinity(Slim, frozen=True, kw_only=True):
    required: NodeTerms | None = msgspec.field(default=None, name=_REQUIRED)


class PodAffinityTerm(Slim, frozen=True, kw_only=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class PodAffinity(Slim, frozen=True, kw_only=True):
    """Affinity or anti-affinity between pods: every term must hold."""

    required: tuple[PodAffinityTerm, ...] | None = msgspec.field(default=None, name=_REQUIRED)


class Address(Slim, frozen=True, kw_only=True):
    type: str
    address: str


class Affinity(Slim, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(Slim, frozen=True, kw_only=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    match_label_keys: tuple[str, ...] | None = None


class SchedulingGate(Slim, frozen=True, kw_only=True):
    name: str


class ResourceClaimUse(Slim, frozen=True, kw_only=True):
    """A claim of dynamic resource allocation that the pod uses."""

    name: str
    resource_claim_name: str = ""


class ClaimSource(Slim, frozen=True, kw_only=True):
    claim_name: str = ""


class EphemeralSource(Slim, frozen=True, kw_only=True):
    """A claim that is made for the pod and removed with it."""


class PodVolume(Slim, frozen=True, kw_only=True):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None

    def claim_of(self, pod_name: str) -> str:
        """Return the name of the volume's claim; "" for a volume that has none."""
        if self.persistent_volume_claim is not None:
            return self.persistent_volume_claim.claim_name
        return f"{pod_name}-{self.name}" if self.ephemeral is not None else ""


class ContainerPort(Slim, frozen=True, kw_only=True):
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class ProbedPort(Slim, frozen=True, kw_only=True):
    port: int | str = 0


class ContainerProbe(Slim, frozen=True, kw_only=True):
    tcp_socket: ProbedPort | None = None
    http_get: ProbedPort | None = None
    grpc: ProbedPort | None = None

    @property
    def port(self) -> int | str:
        """The port that must answer, by number or name; 0 for a probe that runs a command."""
        asked = self.tcp_socket or self.http_get or self.grpc
        return asked.port if asked else 0
