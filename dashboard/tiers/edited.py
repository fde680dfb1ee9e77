"""Hardware tiers as admins edit them, with what the tier doctor says of them, also while somebody types."""

from collections.abc import Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard.administration.views import EditedKind, Pools
from dashboard.shell.access import admin_required
from dashboard.tiers.forms.tier import TierForm
from dashboard.tiers.tier_records import check, compared_tier, known_shapes, outgrown, tier_checks, warm_hours_words
from dashboard.tiers.viewmodels.tierchecks import relaunch_sentence
from dashboard.tiers.viewmodels.tiers import TierWords, pool_words, tier_words
from grid.core.translation import gettext as _
from grid.diagnosis.nodeshapes import PoolShapes
from grid.models import Execution, HardwareTier
from grid.models.execution import ACTIVE_STATES
from grid.runtime import get_runtime
from grid.tiers.oddsizes import SIZES, odd_sizes
from grid.tiers.tierdoctor import examine
from grid.tiers.tierrequests import sidecars, tier_request

_DECIDING = frozenset(
    {"node_pool", "cores", "memory", "gpus", "gpu_resource", "ephemeral_storage", "tolerations", "cost_per_hour"}
)


@require_POST
@admin_required
async def tier_check(request: HttpRequest, id: str = "") -> HttpResponse:
    """Return what the doctor says of the posted form as a fragment; nothing is saved."""
    pools = await known_shapes(get_runtime(), only=request.POST.get("node_pool", ""))
    return await sync_to_async(_check)(request, id, pools)


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
    running = 0
    if checked.problem is not None and checked.severity == "problem" and not tier._state.adding:
        on_it = Q(head_tier=tier.pk) | Q(tier=tier.pk)
        running = Execution.objects.unsettled().filter(on_it, state__in=ACTIVE_STATES).count()
    return {"check": checked, "relaunch": relaunch_sentence(running)}


def _check(request: HttpRequest, id: str, pools: Pools | None) -> HttpResponse:
    instance = get_object_or_404(HardwareTier, pk=id) if id else None
    form = TierForm(request.POST, instance=instance, pools=pools)
    form.full_clean()
    return render(request, "tiers/fragments/tier_check.html", check_context(form, pools))


def _groups(form: TierForm) -> list[Any]:
    if form.is_bound:
        return list(form.cleaned_data.get("groups") or ())
    return [] if form.instance._state.adding else list(form.instance.groups.all())


class _Tiers(EditedKind):
    __slots__ = ()

    async def pools(self) -> Pools | None:
        return await known_shapes(get_runtime())

    def words(self, instance: Any) -> TierWords:
        return tier_words(instance, warm_hours_words(instance, timezone.now()))

    def list_context(self, instances: Sequence[Any], pools: Pools | None) -> dict[str, Any]:
        checks = tier_checks(instances, pools) if pools is not None else {}
        return {
            "checks": [(tier, checks[tier.pk]) for tier in instances if tier.pk in checks],
            "outgrown": outgrown(instances, checks, pools) if checks and pools is not None else [],
        }

    def edit_context(self, form: Any, instance: Any, pools: Pools | None) -> dict[str, Any]:
        url = reverse("tier-check", args=[form.instance.pk]) if instance else reverse("tier-new-check")
        return {"pools": pool_words((pools or {}).values()), "check_url": url, **check_context(form, pools)}

    def doubts(self, form: Any) -> Sequence[str]:
        return odd_sizes({name: getattr(form.instance, name) for name in form.changed_data if name in SIZES})

    def has_problem(self, instance: Any, pools: Pools | None) -> bool:
        """Return whether no node of its pool takes the tier now; False while the nodes are unknown."""
        if pools is None:
            return False
        pool = pools.get(instance.node_pool, PoolShapes(instance.node_pool))
        return examine(tier_request(instance, sidecars()), pool).problem is not None


TIERS = _Tiers(
    "tiers",
    "tier",
    _("Hardware tiers"),
    HardwareTier,
    TierForm,
    _("The sizes of machine that people choose from."),
    _("New hardware tier"),
    _("Archive the hardware tier {name}?"),
    related=("groups",),
    is_frozen_at_launch=True,
)
