"""A launch before it happens: the objects that would be created, and the pods that need room. Nothing here is stored and nothing is asked
of Kubernetes. The objects are built from the same rows by the same code as those of a launch; only what Kubernetes itself assigns is
missing, such as the address of a cluster's head."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from grid.core.decoding import prepared
from grid.diagnosis.launchfit import PodPlan
from grid.diagnosis.resources import PODS, ResourceAmounts, resource_amounts
from grid.diagnosis.shortages import PodNeeds
from grid.executions import manifests
from grid.executions.kinds import NO_VARIABLES, kind_of
from grid.executions.manifests import Manifest
from grid.executions.runpod import executor_requests, front_requests, sidecar_needs
from grid.executions.spec import ExecutionSpec, TierSpec, parse_spec
from grid.executions.storage import Storage
from grid.kube.objects import Toleration
from grid.models import Execution


@dataclass(frozen=True, slots=True)
class Preview:
    """The specs of a unit: of one execution, or of a workspace or job and its cluster."""

    specs: tuple[ExecutionSpec, ...]

    @classmethod
    def of(cls, unit: Sequence[Execution]) -> "Preview":
        """Return the preview of rows as `grid.executions.request.draft` returns them."""
        return cls(tuple(parse_spec(row) for row in unit))

    def objects(self, *, namespace: str, storage: Storage, token: str) -> list[Manifest]:
        """Return the objects in the order of creation; without owner references, because the owner does not exist yet."""
        first, *others = self.specs
        variables = kind_of(others[0].kind).planned_variables(others[0]) if others else NO_VARIABLES
        made: list[Manifest] = []
        for spec in self.specs:
            own, kind = variables if spec is first else NO_VARIABLES, kind_of(spec.kind)
            made += kind.objects(spec, namespace=namespace, storage=storage, token=token, client_variables=own)
        # A workspace and its cluster share the claim of the project's files.
        return list({(manifest.resource, manifest.name): manifest for manifest in made}.values())

    def pods(self) -> list[PodPlan]:
        """Return the pods that it starts with, as the scheduler sees them."""
        plans = [pod_plan(tier, count) for tier, count in self._tiers()]
        return [with_sidecars(plans[0], self.specs[0]), *plans[1:]]

    def needs(self) -> list[PodNeeds]:
        """Return the pods that it starts with, as quotas and limit ranges see them."""
        first, *others = (pod_needs(tier, count) for tier, count in self._tiers())
        return [replace(first, sidecars=sidecar_needs(self.specs[0])), *others]

    def sidecars(self) -> ResourceAmounts:
        """Return what stands beside the program of its first pod: no tier has it."""
        needs = sidecar_needs(self.specs[0])
        return sum((Counter(resource_amounts(sidecar.requests)) for sidecar in needs), Counter[str]())

    def _tiers(self) -> Iterator[tuple[TierSpec, int]]:
        for spec in self.specs:
            if spec.cluster is None:
                yield spec.tier, 1
            else:
                yield spec.cluster.head_tier, 1
                yield spec.tier, spec.cluster.workers_minimum


def pod_plan(tier: TierSpec, count: int = 1) -> PodPlan:
    """Return `count` pods of the tier."""
    return PodPlan(tier.name, tier.node_pool, requests_of(tier), tolerations_of(tier), count)


def with_sidecars(plan: PodPlan, spec: ExecutionSpec) -> PodPlan:
    """Return the plan with what the executor and the front take beside each program of the spec, whatever its tier."""
    total, with_disk = Counter(plan.requests), "ephemeral-storage" in plan.requests
    if spec.files:
        total += Counter(resource_amounts(executor_requests(spec.files, with_disk=with_disk)))
    if spec.front:
        total += Counter(resource_amounts(front_requests(spec.front)))
    return replace(plan, requests=dict(total))


def requests_of(tier: TierSpec) -> dict[str, int]:
    """Return what a pod of the tier takes of its node, by resource; a quantity that cannot be read counts as 0."""
    return {**resource_amounts(manifests.requests_and_limits(tier)["requests"]), PODS: 1}


def tolerations_of(tier: TierSpec) -> tuple[Toleration, ...]:
    return msgspec.convert(manifests.tolerations_of(tier), prepared(tuple[Toleration, ...]))


def pod_needs(tier: TierSpec, count: int = 1) -> PodNeeds:
    """Return `count` pods of the tier, as quotas and limit ranges see them."""
    asked = manifests.requests_and_limits(tier)
    return PodNeeds(tier.name, asked["requests"], asked["limits"], count)
