"""Reads what a person's last runs used, and chooses tiers by it; synchronous. The cost does not grow with the history."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from dashboard.usage.viewmodels.sizehints import SizeFacts, SizeHint, launch_hint
from grid.core.translation import gettext as _
from grid.diagnosis.resources import resource_amount
from grid.executions.launch_choices import tiers_for
from grid.models import Execution, HardwareTier, PeakUse, User
from grid.models.environment import Kind
from grid.tiers.rightsize import LEAST_SAMPLES, MOST_RUNS, PastRun, SizedTier, larger_tier, smaller_tier

LOOKED_AT = 200  # of a person's latest runs
OUT_OF_MEMORY = "out_of_memory"


def hint_of(
    user: User, like: Execution, *, chosen: str, tiers: Iterable[HardwareTier], unfit: Collection[str]
) -> SizeHint | None:
    """Return the hint for a launch like an unsaved one: of its kind, environment, project and title. `chosen` is the tier that is chosen,
    and `unfit` those that cannot be had."""
    offered = {one.pk: sized(one) for one in tiers}
    current = offered.get(chosen)
    if current is None:
        return None
    possible = [one for id, one in offered.items() if id not in unfit]
    found = smaller_tier(last_runs(user.pk, like), current, possible)
    if found is None:
        return None
    named = (
        _("of “{title}”", title=like.title)
        if like.title
        else _("with {environment} in {project}", environment=like.environment.name, project=like.project.name)
    )
    return launch_hint(found, current, runs=named)


def size_facts(execution: Execution) -> SizeFacts | None:
    """Return what is known of the size of an execution that has ended; None for clusters, and while it runs."""
    if execution.kind == Kind.CLUSTER or execution.ended_at is None:
        return None
    peak = PeakUse.objects.filter(pk=execution.pk).first()
    is_short = execution.reason == OUT_OF_MEMORY
    if peak is None and not is_short:
        return None
    limits = _limits(execution)
    facts = SizeFacts(
        memory_peak=peak.memory_peak_bytes if peak else 0,
        cpu_peak=peak.cpu_peak_millicores if peak else 0,
        cpu_mean=peak.cpu_mean_millicores if peak else 0,
        memory_limit=limits[1],
        cpu_limit=limits[0],
        ran_out_of_memory=is_short,
    )
    return _with_tiers(execution, facts)


def last_runs(owner_id: int, like: Execution) -> list[PastRun]:
    """Return the person's last ended runs of one kind, environment, project and title that were measured, newest first."""
    ended = Execution.objects.filter(owner=owner_id, ended_at__isnull=False).order_by("-ended_at", "-pk")
    rows = ended.values_list("pk", "peak__samples", "kind", "environment_id", "project_id", "title")[:LOOKED_AT]
    asked = [like.kind, like.environment_id, like.project_id, like.title]
    ids = [id for id, samples, *launched in rows if (samples or 0) >= LEAST_SAMPLES and launched == asked]
    peaks = PeakUse.objects.filter(pk__in=ids[:MOST_RUNS]).select_related("execution")
    return [_past_run(one) for one in peaks.order_by("-execution__ended_at", "-pk")]


def sized(tier: HardwareTier) -> SizedTier:
    return SizedTier(
        id=tier.pk,
        name=tier.name,
        cpu=resource_amount("cpu", tier.cores),
        memory=resource_amount("memory", tier.memory),
        memory_limit=resource_amount("memory", tier.effective_memory_limit),
        gpus=tier.gpus,
        gpu_resource=tier.gpu_resource if tier.gpus else "",
        price=tier.cost_per_hour,
    )


def _with_tiers(execution: Execution, facts: SizeFacts) -> SizeFacts:
    offered = [sized(one) for one in tiers_for(execution.owner, execution.kind)]
    larger = smaller = None
    current = _current(execution)
    if facts.ran_out_of_memory:
        gpus = (execution.gpus, execution.gpu_resource)
        larger = larger_tier(execution.millicores, facts.memory_limit, gpus, offered)
    else:
        smaller = smaller_tier(last_runs(execution.owner_id, execution), current, offered)
    return replace(facts, current=current, smaller=smaller, larger=larger)


def _current(execution: Execution) -> SizedTier:
    """Return the tier as it was at launch."""
    return SizedTier(
        id=execution.tier_id,
        name="",
        cpu=execution.millicores,
        memory=execution.memory_bytes,
        memory_limit=_limits(execution)[1],
        gpus=execution.gpus,
        gpu_resource=execution.gpu_resource,
        price=_price(execution),
    )


def _past_run(peak: PeakUse) -> PastRun:
    return PastRun(
        cpu_limit=_limits(peak.execution)[0],
        memory_peak=peak.memory_peak_bytes,
        cpu_peak=peak.cpu_peak_millicores,
        ran_out_of_memory=peak.execution.reason == OUT_OF_MEMORY,
    )


def _price(execution: Execution) -> Decimal:
    """Return the price of its tier at launch, which other tiers' prices are compared with; the whole price where the tier names none."""
    try:
        return Decimal(str(_launched_tier(execution)["cost_per_hour"]))
    except (LookupError, InvalidOperation):
        return execution.price_per_hour


def _launched_tier(execution: Execution) -> dict[str, Any]:
    tier = (execution.spec or {}).get("tier")
    return tier if isinstance(tier, dict) else {}


def _limits(execution: Execution) -> tuple[int, int]:
    """Return the limits of CPU and memory at launch; the requests where the stored tier names none."""
    found = _launched_tier(execution)
    cpu = resource_amount("cpu", str(found.get("cores_limit") or "0"))
    memory = resource_amount("memory", str(found.get("memory_limit") or "0"))
    return cpu or execution.millicores, memory or execution.memory_bytes
