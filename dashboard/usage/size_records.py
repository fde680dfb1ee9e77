"""Reads what a person's last runs used, and chooses tiers by it; synchronous. The cost does not grow with the history."""

from collections.abc import Collection, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

from dashboard.usage.viewmodels.sizehints import SizeFacts, SizeHint, launch_hint
from grid.core.translation import gettext as _
from grid.diagnosis.resources import resource_amount
from grid.executions.launchrequest import Offers
from grid.executions.names import unnumbered
from grid.models import Execution, HardwareTier, PeakUse, User
from grid.models.environment import Kind
from grid.tiers.rightsize import LEAST_SAMPLES, MOST_RUNS, PastRun, SizedTier, larger_tier, smaller_tier

LOOKED_AT = 200  # of a person's latest runs
OUT_OF_MEMORY = "out_of_memory"


def hint_of(
    user: User, like: Execution, *, chosen: str, tiers: Iterable[HardwareTier], unfit: Collection[str]
) -> SizeHint | None:
    """Return the hint for a launch like an unsaved one, on the tier `chosen`; the `unfit` tiers cannot be had."""
    offered = {tier.pk: sized(tier) for tier in tiers}
    possible = [tier for id, tier in offered.items() if id not in unfit]
    current = offered.get(chosen)
    smaller = smaller_tier(last_runs(user.pk, like), current, possible) if current is not None else None
    if current is None or smaller is None:
        return None
    runs = _("with {environment} in {project}", environment=like.environment.name, project=like.project.name)
    if like.title not in ("", like.environment.name):
        runs = _("of “{title}”", title=like.title)
    return launch_hint(smaller, current, runs=runs)


def size_facts(execution: Execution) -> SizeFacts | None:
    """Return what is known of the size of an execution that has ended; None for clusters, and while it runs."""
    if execution.kind == Kind.CLUSTER or execution.ended_at is None:
        return None
    peak = PeakUse.objects.filter(pk=execution.pk).first()
    is_short = execution.reason == OUT_OF_MEMORY
    if peak is None and not is_short:
        return None
    cpu_limit, memory_limit = _limits(execution)
    offered = [sized(tier) for tier in Offers(execution.owner).tiers(execution.kind)]
    current, larger, smaller = _current(execution), None, None
    if is_short:
        larger = larger_tier(execution.millicores, memory_limit, (execution.gpus, execution.gpu_resource), offered)
    else:
        smaller = smaller_tier(last_runs(execution.owner_id, execution), current, offered)
    return SizeFacts(
        memory_peak=peak.memory_peak_bytes if peak else 0,
        cpu_peak=peak.cpu_peak_millicores if peak else 0,
        cpu_mean=peak.cpu_mean_millicores if peak else 0,
        memory_limit=memory_limit,
        cpu_limit=cpu_limit,
        ran_out_of_memory=is_short,
        current=current,
        smaller=smaller,
        larger=larger,
    )


def last_runs(owner_id: int, like: Execution) -> list[PastRun]:
    """Return the person's last ended runs of one kind, environment, project and title that were measured, newest first. A number behind
    the title does not count."""
    ended = Execution.objects.filter(owner=owner_id, ended_at__isnull=False).order_by("-ended_at", "-pk")
    rows = ended.values_list("pk", "peak__samples", "kind", "environment_id", "project_id", "title")[:LOOKED_AT]
    unnamed = like.environment.name  # what the form suggests for what has no other name

    def name(title: str) -> str:
        return unnumbered(title) or unnamed

    asked = [like.kind, like.environment_id, like.project_id, name(like.title)]
    measured = ((id, *launched) for id, samples, *launched in rows if (samples or 0) >= LEAST_SAMPLES)
    ids = [id for id, *launched, title in measured if [*launched, name(title)] == asked]
    peaks = PeakUse.objects.filter(pk__in=ids[:MOST_RUNS]).select_related("execution")
    return [
        PastRun(
            cpu_limit=_limits(peak.execution)[0],
            memory_peak=peak.memory_peak_bytes,
            cpu_peak=peak.cpu_peak_millicores,
            ran_out_of_memory=peak.execution.reason == OUT_OF_MEMORY,
        )
        for peak in peaks.order_by("-execution__ended_at", "-pk")
    ]


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


def _current(execution: Execution) -> SizedTier:
    """Return the tier as it was at launch. Other tiers' prices are compared with its price, or the whole price where it names none."""
    try:
        price = Decimal(str(_launched_tier(execution)["cost_per_hour"]))
    except (LookupError, InvalidOperation):
        price = execution.price_per_hour
    return SizedTier(
        id=execution.tier_id,
        name="",
        cpu=execution.millicores,
        memory=execution.memory_bytes,
        memory_limit=_limits(execution)[1],
        gpus=execution.gpus,
        gpu_resource=execution.gpu_resource,
        price=price,
    )


def _launched_tier(execution: Execution) -> dict[str, Any]:
    tier = (execution.spec or {}).get("tier")
    return tier if isinstance(tier, dict) else {}


def _limits(execution: Execution) -> tuple[int, int]:
    """Return the limits of CPU and memory at launch; the requests where the stored tier names none."""
    tier = _launched_tier(execution)
    cpu = resource_amount("cpu", str(tier.get("cores_limit") or "0"))
    memory = resource_amount("memory", str(tier.get("memory_limit") or "0"))
    return cpu or execution.millicores, memory or execution.memory_bytes
