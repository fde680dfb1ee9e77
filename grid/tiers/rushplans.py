"""Reads rush plans as what the keeper of placeholders wants, synchronously.

The places of a plan are those that are warm and those that launches have taken since its hours began: as people come, placeholders give
way to them and are not made again, so a plan starts no more nodes than it says.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec
from django.db.models import Sum

from grid.executions.spec import tier_spec
from grid.models import Execution, RushPlan
from grid.tiers.tierrequests import requests_beside, sidecars
from grid.tiers.warmhours import WarmHours, WarmTier

logger = logging.getLogger(__name__)


def plan_id(plan: RushPlan) -> str:
    """Return the id that a plan gets: equal for plans that ask for the same, however early they begin."""
    hours = sorted(plan.days), plan.on, plan.ready, plan.until, plan.zone
    asked = plan.tier_id, plan.environment_id, plan.places, *hours
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:16]


def plan_hours(plan: RushPlan) -> WarmHours | None:
    """Return the hours of the plan; None when they cannot be read."""
    try:
        ready, until = (time.fromisoformat(text) for text in (plan.ready, plan.until))
        zone, early = ZoneInfo(plan.zone), timedelta(minutes=plan.early_minutes)
    except (ValueError, LookupError, OSError) as error:  # such as a time zone that this machine does not know
        logger.warning("hours of a rush plan cannot be read plan=%s reason=%s", plan.pk, error)
        return None
    return WarmHours(frozenset(plan.days), ready, until, zone, plan.on, early)


class RunningPlan(NamedTuple):
    """A plan whose hours it is, and how many of its places launches have taken."""

    plan: RushPlan
    hours: WarmHours
    taken: int

    @property
    def left(self) -> int:
        """The places that no launch has taken yet."""
        return self.plan.places - self.taken


def running_plans(plans: Iterable[RushPlan], now: datetime) -> Iterator[RunningPlan]:
    """Yield those of the plans whose hours it is. A launch takes a place of one plan, also where two plans of a tier overlap."""
    counted = Counter[str]()
    for plan in plans:
        hours = plan_hours(plan)
        run = hours.next_run(now) if hours is not None else None
        if hours is not None and run is not None and run[0] <= now:
            taken = min(plan.places, max(0, taken_since(plan.tier_id, run[0]) - counted[plan.tier_id]))
            counted[plan.tier_id] += taken
            yield RunningPlan(plan, hours, taken)


def warm_plans(data_plane: str, now: datetime) -> list[WarmTier]:
    """Return the plans of a data plane whose hours it is now, each with the places that no launch has taken yet."""
    rows = RushPlan.objects.filter(tier__data_plane=data_plane, tier__is_archived=False).exclude(
        on__lt=(now - timedelta(days=2)).date()  # over, in any time zone
    )
    warm, known = [], sidecars()
    for run in running_plans(rows.select_related("tier", "environment"), now):
        spec, environment = tier_spec(run.plan.tier), run.plan.environment
        image, secret = environment.image, environment.image_pull_secret
        if environment.is_archived:
            image = secret = ""
        sidecar_requests = requests_beside(spec, environment, known)
        warm.append(WarmTier(spec, run.left, run.hours, run.plan.pk, image, secret, sidecar_requests))
    return warm


def taken_since(tier_id: str, begin: datetime) -> int:
    """Return how many slots of the tier launches hold that got them since then."""
    holding = Execution.objects.holding_slots().filter(tier=tier_id, slots_reserved_at__gte=begin).order_by()
    return holding.aggregate(Sum("slots"))["slots__sum"] or 0
