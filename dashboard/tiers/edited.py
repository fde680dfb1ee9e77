"""Hardware tiers as admins edit them, with what the tier doctor says of them."""

from collections.abc import Sequence
from typing import Any

from django.urls import reverse
from django.utils import timezone

from dashboard.administration.views.edited_kinds import EditedKind, Pools
from dashboard.tiers.forms.tier import TierForm
from dashboard.tiers.tier_records import known_shapes, listed_tier, outgrown, tier_checks
from dashboard.tiers.viewmodels.tiers import TierWords, pool_words
from dashboard.tiers.views.tier_checking import check_context
from grid.core.translation import gettext as _
from grid.diagnosis.nodeshapes import PoolShapes
from grid.models import HardwareTier
from grid.runtime import get_runtime
from grid.tiers.oddsizes import SIZES, odd_sizes
from grid.tiers.tierdoctor import examine
from grid.tiers.tierrequests import sidecars, tier_request


class _Tiers(EditedKind):
    __slots__ = ()

    async def pools(self) -> Pools | None:
        return await known_shapes(get_runtime())

    def words(self, instance: Any) -> TierWords:
        return listed_tier(instance, timezone.now())

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
