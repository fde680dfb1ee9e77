"""Reads hardware tiers as what the tier doctor compares: requests, tolerations, alternatives; synchronous but for `known_shapes`."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.conf import settings

from dashboard.viewmodels.tierchecks import Outgrown, TierCheck, tier_check
from grid.diagnosis.nodeshapes import PoolShapes
from grid.diagnosis.resources import resource_amount, resource_amounts
from grid.diagnosis.tierdoctor import TierRequest, examine
from grid.diagnosis.tieroverlap import ComparedTier, overlap
from grid.launch.preview import requests_of, tolerations_of
from grid.launch.runpod import executor_requests
from grid.launch.spec import FilesSpec, TierSpec, tier_spec
from grid.models import Execution, HardwareTier, Project, State
from grid.models.dataplane import LOCAL
from grid.models.execution import object_name_of
from grid.runtime import Runtime
from grid.runtime.poolshapes import pool_shapes


async def known_shapes(runtime: Runtime, *, only: str | None = None) -> dict[str, PoolShapes] | None:
    """Return the shapes of the pools' nodes; None until the nodes and the pods are read."""
    now = runtime.monotonic()
    if not runtime.nodes.freshness(now).synced or not runtime.pods.freshness(now).synced:
        return None
    return await pool_shapes(runtime.data_planes[LOCAL], only=only)


def files_in_git() -> FilesSpec | None:
    """Return the executor that stands beside programs of a project whose files are in Git; None when no project's are."""
    if not Project.objects.filter(files=Project.Files.GIT, is_archived=False).exists():
        return None
    cores, memory = settings.EXECUTOR_CORES, settings.EXECUTOR_MEMORY
    return FilesSpec(claim="", repository="", image="", cores=cores, memory=memory)


def tier_request(tier: HardwareTier, files: FilesSpec | None) -> TierRequest:
    """Return what an execution launched on the tier now would ask of its node, with the executor beside it for the project's `files`; a
    quantity that cannot be read counts as 0."""
    spec = tier_spec(tier)
    asked = executor_requests(files, with_disk=bool(spec.ephemeral_storage)) if files else {}
    return TierRequest(tier.node_pool, requests_of(spec), tolerations_of(spec), resource_amounts(asked))


def tier_checks(tiers: Iterable[HardwareTier], pools: Mapping[str, PoolShapes]) -> dict[str, TierCheck]:
    """Return the doctor's words about each tier that is not archived, by its id."""
    compared = {tier.pk: (tier, compared_tier(tier)) for tier in tiers if not tier.is_archived}
    rivals, files = [one for _, one in compared.values()], files_in_git()
    return {id: check(tier, one, rivals, pools, files) for id, (tier, one) in compared.items()}


def outgrown(
    tiers: Iterable[HardwareTier], checks: Mapping[str, TierCheck], pools: Mapping[str, PoolShapes]
) -> list[Outgrown]:
    """Return of each checked tier the running executions that would no longer fit: as they were launched, because their pool's nodes have
    changed, or on the tier as it is now. One query of the unsettled executions."""
    running = Execution.objects.unsettled().filter(state=State.RUNNING).order_by("requested_at", "pk")
    columns = ("pk", "title", "kind", "tier_id", "spec__tier", "head_tier_id", "spec__cluster__head_tier")
    fits = _Fits(pools)
    found: dict[str, dict[str, str]] = {}
    for id, title, kind, *parts in running.values_list(*columns):
        for tier_id, launched in (parts[:2], parts[2:]):
            known = checks.get(tier_id)
            if known is not None and (known.severity == "problem" or not fits.as_launched(launched)):
                found.setdefault(tier_id, {})[id] = title or object_name_of(kind, id)
    return [Outgrown(one.pk, one.name, found[one.pk]) for one in tiers if one.pk in found]


class _Fits:
    """Whether some node of its pool takes what was launched, even if only when it is empty; what is equal is judged once."""

    def __init__(self, pools: Mapping[str, PoolShapes]) -> None:
        self._pools = pools
        self._known: dict[bytes, bool] = {}

    def as_launched(self, stored: object) -> bool:
        """Return True also for a tier that cannot be read."""
        key = msgspec.json.encode(stored)
        if key not in self._known:
            self._known[key] = self._fits(stored)
        return self._known[key]

    def _fits(self, stored: object) -> bool:
        try:
            spec = msgspec.convert(stored, TierSpec)
        except msgspec.ValidationError:
            return True
        pool = self._pools.get(spec.node_pool, PoolShapes(spec.node_pool))
        problem = examine(TierRequest(spec.node_pool, requests_of(spec), tolerations_of(spec)), pool).problem
        return problem is None or problem.severity != "problem"


def check(
    tier: HardwareTier,
    compared: ComparedTier,
    rivals: Iterable[ComparedTier],
    pools: Mapping[str, PoolShapes],
    files: FilesSpec | None,
) -> TierCheck:
    pool = pools.get(tier.node_pool, PoolShapes(tier.node_pool))
    found = examine(tier_request(tier, files), pool)
    return tier_check(found, overlap(compared, rivals), maximum_nodes=pool.maximum)


def compared_tier(tier: HardwareTier, groups: Iterable[Any] | None = None) -> ComparedTier:
    """Return the tier as it is compared with others; `groups` are those typed, for a tier that is being edited."""
    allowed = tier.groups.all() if groups is None else groups
    audience = (
        tier.node_pool,
        frozenset(group.pk for group in allowed),
        frozenset(tier.kinds),
        tier.is_visible,
        tier.spot_allowed,
        tier.maximum_simultaneous,
        msgspec.json.encode([tier.tolerations, tier.extra_labels, tier.extra_annotations], order="deterministic"),
    )
    size = {
        "cpu": resource_amount("cpu", tier.cores),
        "cpu limit": resource_amount("cpu", tier.effective_cores_limit),
        "memory": resource_amount("memory", tier.memory),
        "memory limit": resource_amount("memory", tier.effective_memory_limit),
        "disk": resource_amount("ephemeral-storage", tier.ephemeral_storage),
        "shared memory": resource_amount("memory", tier.shared_memory),
        **({tier.gpu_resource: tier.gpus} if tier.gpus else {}),
    }
    return ComparedTier(tier.pk, tier.name, size, tier.cost_per_hour, audience)
