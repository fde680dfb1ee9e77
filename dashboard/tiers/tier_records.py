"""Reads hardware tiers as what the tier doctor compares, with its words about them; synchronous but for `known_shapes`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Count, Min, Q

from dashboard.tiers.viewmodels.tierchecks import MOST_NAMED, Outgrown, TierCheck, tier_check
from grid.configuration import WARM_PLACES, value_of
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.nodeshapes import PoolShapes
from grid.diagnosis.resources import resource_amount
from grid.executions.preview import requests_of, tolerations_of
from grid.executions.spec import tier_spec
from grid.models import Execution, HardwareTier, State
from grid.models.dataplane import LOCAL
from grid.models.execution import object_name_of
from grid.runtime import Runtime
from grid.runtime.caches import pool_shapes
from grid.tiers.placeholders import warm_hours
from grid.tiers.tierdoctor import ComparedTier, TierRequest, examine, overlap
from grid.tiers.tierrequests import Sidecars, sidecars, tier_request


async def known_shapes(runtime: Runtime, *, only: str | None = None) -> dict[str, PoolShapes] | None:
    """Return the shapes of the pools' nodes; None until the nodes and the pods are read."""
    now = runtime.monotonic()
    if not runtime.nodes.freshness(now).synced or not runtime.pods.freshness(now).synced:
        return None
    return await pool_shapes(runtime.data_planes[LOCAL], only=only)


def warm_hours_words(tier: HardwareTier, now: datetime) -> str:
    if not tier.warm_places:
        return ""
    places = plural(tier.warm_places, "warm place", "warm places")
    if not value_of(WARM_PLACES):
        return _("{places}, turned off by the central configuration", places=places)
    hours = warm_hours(tier)
    if hours is None:
        return ""
    if until := hours.until_words(now):
        return _("{places} until {until}", places=places, until=until)
    times = {"days": hours.days_in_words(), "begin": tier.warm_from, "end": tier.warm_until, "zone": hours.zone.key}
    return _("{places} {days} {begin} to {end} ({zone})", places=places, **times)


def tier_checks(tiers: Iterable[HardwareTier], pools: Mapping[str, PoolShapes]) -> dict[str, TierCheck]:
    """Return the doctor's words about each tier that is not archived, by its id."""
    compared = {tier.pk: (tier, compared_tier(tier)) for tier in tiers if not tier.is_archived}
    rivals, known_sidecars = [size for _, size in compared.values()], sidecars()
    return {id: check(tier, size, rivals, pools, known_sidecars) for id, (tier, size) in compared.items()}


def outgrown(
    tiers: Iterable[HardwareTier], checks: Mapping[str, TierCheck], pools: Mapping[str, PoolShapes]
) -> list[Outgrown]:
    """Return of each tier, also of archived ones, the running executions that would no longer fit, as launched or on the tier as it is now.
    One query counts what was launched alike; of what does not fit, one more query a tier reads the first."""
    known = {tier.pk: tier for tier in tiers}
    fits = _Fits(known, pools)
    misfits = defaultdict[str, list[dict[str, Any]]](list)
    running = Execution.objects.unsettled().filter(state=State.RUNNING)
    alike = running.values(*_SHAPE, *_HEAD_SHAPE).annotate(number=Count("pk"), first=Min("requested_at"))
    for group in alike.order_by("first"):
        for id in {group["tier_id"], group["head_tier_id"]} & known.keys():
            checked = checks.get(id)
            if (checked is not None and checked.severity == "problem") or not fits.as_launched(id, group):
                misfits[id].append(group)
    return [_outgrown(known[id], misfits[id]) for id in known if id in misfits]


_SHAPE = ("tier_id", "node_pool", "millicores", "memory_bytes", "gpus", "gpu_resource")
_HEAD_SHAPE = tuple(f"head_{name}" for name in _SHAPE)


def _outgrown(tier: HardwareTier, groups: Sequence[Mapping[str, Any]]) -> Outgrown:
    """Name the oldest. As the groups are in the order of their oldest, those are among as many groups."""
    alike = Q()
    for group in groups[:MOST_NAMED]:
        alike |= Q(**{name: group[name] for name in (*_SHAPE, *_HEAD_SHAPE) if group[name] is not None})
    oldest = Execution.objects.unsettled().filter(alike, state=State.RUNNING).order_by("requested_at", "pk")
    named = oldest.values_list("pk", "title", "kind")[:MOST_NAMED]
    names = {id: title or object_name_of(kind, id) for id, title, kind in named}
    return Outgrown(tier.pk, tier.name, names, sum(group["number"] for group in groups), is_archived=tier.is_archived)


class _Fits:
    """Whether some node of its pool takes what was launched, even if only when it is empty; what is equal is judged once. Tolerations and
    disk are those of the tier now: they are no columns of an execution, and reading its JSON takes ten times as long."""

    def __init__(self, tiers: Mapping[str, HardwareTier], pools: Mapping[str, PoolShapes]) -> None:
        self._tiers = {id: tier_spec(tier) for id, tier in tiers.items()}
        self._pools = pools
        self._known: dict[tuple[Any, ...], bool] = {}

    def as_launched(self, tier_id: str, group: Mapping[str, Any]) -> bool:
        """Return whether each part of the group that is of the tier finds a place."""
        shapes = [tuple(group[name] for name in names) for names in (_SHAPE, _HEAD_SHAPE)]
        return all(self._fits(shape) for shape in shapes if shape[0] == tier_id)

    def _fits(self, shape: tuple[Any, ...]) -> bool:
        if shape not in self._known:  # `functools.cache` of a method would keep this alive in a cycle
            self._known[shape] = self._judge(*shape)
        return self._known[shape]

    def _judge(self, tier_id: str, pool: str, cores: int, memory: int, gpus: int, resource: str) -> bool:
        tier, sizes = self._tiers[tier_id], {"cores": f"{cores}m", "memory": str(memory)}
        spec = msgspec.structs.replace(tier, node_pool=pool, gpus=gpus, gpu_resource=resource, **sizes)
        request = TierRequest(pool, requests_of(spec), tolerations_of(spec))
        problem = examine(request, self._pools.get(pool, PoolShapes(pool))).problem
        return problem is None or problem.severity != "problem"


def check(
    tier: HardwareTier,
    compared: ComparedTier,
    rivals: Iterable[ComparedTier],
    pools: Mapping[str, PoolShapes],
    known_sidecars: Sidecars,
) -> TierCheck:
    pool = pools.get(tier.node_pool, PoolShapes(tier.node_pool))
    fit = examine(tier_request(tier, known_sidecars), pool)
    return tier_check(fit, overlap(compared, rivals), maximum_nodes=pool.maximum)


def compared_tier(tier: HardwareTier, groups: Iterable[Any] | None = None) -> ComparedTier:
    """Return the tier as it is compared with others; `groups` are those typed, for a tier that is being edited."""
    allowed = tier.groups.all() if groups is None else groups
    audience = (
        tier.node_pool,
        frozenset(group.pk for group in allowed),
        frozenset(tier.kinds),
        tier.is_visible,
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
