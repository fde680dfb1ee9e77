"""What the tier doctor says of a tier that is being edited: on its form, and as a fragment that follows the typing."""

from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST

from dashboard.administration.views.edited_kinds import Pools
from dashboard.shell.access import admin_required
from dashboard.tiers.forms.tier import TierForm
from dashboard.tiers.tier_records import check, compared_tier, known_shapes
from dashboard.tiers.viewmodels.tierchecks import relaunch_sentence
from grid.core.translation import gettext as _
from grid.models import Execution, HardwareTier
from grid.models.execution import ACTIVE_STATES
from grid.runtime import get_runtime
from grid.tiers.tierrequests import sidecars

_DECIDING = frozenset(
    {"node_pool", "cores", "memory", "gpus", "gpu_resource", "ephemeral_storage", "tolerations", "cost_per_hour"}
)


@require_POST
@admin_required
async def tier_check(request: HttpRequest, id: str = "") -> HttpResponse:
    """Return what the doctor says of the posted form as a fragment; nothing is saved."""
    pools = await known_shapes(get_runtime(), only=request.POST.get("node_pool", ""))
    answer: HttpResponse = await sync_to_async(_check)(request, id, pools)
    return answer


def check_context(form: TierForm, pools: Pools | None) -> dict[str, Any]:
    """Return the template context of the check: the finding, or in `unclear` why there is none."""
    tier: HardwareTier = form.instance
    if pools is None:
        return {"unclear": _("The cluster's nodes are not known now, so its fit cannot be computed.")}
    if form.is_bound and _DECIDING & form.errors.keys():
        return {"unclear": _("Correct the fields of the machine to see how it fits its nodes.")}
    if not (tier.node_pool and tier.cores and tier.memory):
        return {"unclear": _("Fill in the pool, the cores and the memory to see how it fits the nodes.")}
    tiers = HardwareTier.objects.filter(is_archived=False).prefetch_related("groups")
    checked = check(tier, compared_tier(tier, _groups(form)), map(compared_tier, tiers), pools, sidecars())
    is_short = checked.problem is not None and checked.severity == "problem"
    return {"check": checked, "relaunch": relaunch_sentence(_running(tier)) if is_short else ""}


def _check(request: HttpRequest, id: str, pools: Pools | None) -> HttpResponse:
    instance = get_object_or_404(HardwareTier, pk=id) if id else None
    form = TierForm(request.POST, instance=instance, pools=pools)
    form.full_clean()
    return render(request, "tiers/fragments/tier_check.html", check_context(form, pools))


def _groups(form: TierForm) -> list[Any]:
    if form.is_bound:
        return list(form.cleaned_data.get("groups") or ())
    return [] if form.instance._state.adding else list(form.instance.groups.all())


def _running(tier: HardwareTier) -> int:
    if tier._state.adding:
        return 0
    on_it = Q(head_tier=tier.pk) | Q(tier=tier.pk)
    return Execution.objects.unsettled().filter(on_it, state__in=ACTIVE_STATES).count()
