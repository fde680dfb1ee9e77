"""Reads what a rush plan is worked out from, from the caches on their loop and from the database, and stores, lists and removes plans."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from asgiref.sync import async_to_sync
from django.db import transaction

from dashboard.executions.launch_facts import pool_states
from dashboard.tiers.viewmodels.rush import PlanFacts
from grid.audit import entries as audit
from grid.configuration import WARM_PLACES, value_of
from grid.core.labels import RUSH_PLAN, SIMULATED
from grid.core.translation import gettext as _
from grid.core.workqueue import in_slices
from grid.diagnosis.launchfit import LaunchPool, PodPlan
from grid.diagnosis.nodeimages import has_image, image_on
from grid.diagnosis.places import takes_pods, untolerated
from grid.executions.preview import pod_plan, tolerations_of
from grid.executions.spec import tier_spec
from grid.kube.objects import Pod, Toleration
from grid.models import AuditEntry, HardwareTier, RushPlan, User
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime
from grid.starts.startuphistory import image_size, recent_starts, slow_node_start, slow_pull
from grid.tiers.placeholders import warm_hours
from grid.tiers.rush import ImageNodes, RushFacts, RushTimes, too_many
from grid.tiers.rushplans import RunningPlan, plan_hours, plan_id, running_plans
from grid.tiers.tierrequests import Sidecars, requests_beside, sidecars
from grid.tiers.warmhours import WarmHours

MOST_PLANS = 100  # the controller reads all of them again and again, and the page lists them
_KEPT = timedelta(days=30)  # how long a plan of one day stays listed when it is over
_NODES_AT_ONCE = 100  # some 2 ms of the loop


def rush_facts(runtime: Runtime, plan: RushPlan, times: RushTimes) -> RushFacts | None:
    """Return the facts of a plan that need not be stored; None while the cluster is not known. Call it in a thread."""
    tier, environment = plan.tier, plan.environment
    known = async_to_sync(_cluster)(runtime, tier.node_pool, environment.image, tolerations_of(tier_spec(tier)))
    if known is None:
        return None
    pool, images, size = known
    known_sidecars = sidecars()
    others = list(_other_places(plan, times, known_sidecars))
    of_choice, of_pool = (
        recent_starts(tier=tier.pk, environment=environment.pk),
        recent_starts(node_pool=tier.node_pool),
    )
    size = size or image_size(of_choice, environment.image)
    return RushFacts(
        pool=pool,
        plan=_plan(plan, known_sidecars),
        most=value_of(WARM_PLACES),
        price=tier.cost_per_hour,
        pool_others=tuple(pods for pods in others if pods.pool == tier.node_pool),
        others=sum(pods.count for pods in others),
        node=slow_node_start(of_pool),
        pull=slow_pull(of_pool, environment.image, size),
        images=images,
    )


async def _cluster(
    runtime: Runtime, pool: str, image: str, tolerations: tuple[Toleration, ...]
) -> tuple[LaunchPool, ImageNodes, int | None] | None:
    """Return the pool, which of its nodes have the image, and how large that is."""
    pools = await pool_states(runtime, only=pool)
    if pools is None:
        return None
    nodes, size = [], None
    async for node in in_slices(runtime.nodes.by("pool", pool), _NODES_AT_ONCE):
        reported = image_on(node, image)
        size = size or (reported.size_bytes if reported is not None else None)
        if (
            SIMULATED not in node.metadata.labels
            and takes_pods(node)
            and not untolerated(node.spec.taints, tolerations)
        ):
            nodes.append(node)
    names: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    async for node in in_slices(nodes, _NODES_AT_ONCE):
        names[has_image(node, image, size)].append(node.metadata.name)
    return pools[pool], ImageNodes(*(tuple(sorted(names[key])) for key in (True, False, None))), size


def _other_places(plan: RushPlan, times: RushTimes, known_sidecars: Sidecars) -> Iterator[PodPlan]:
    """Yield the other warm places of the plan's hours: those of tiers and of other plans."""
    tiers = HardwareTier.objects.filter(data_plane=plan.tier.data_plane_id, is_archived=False)
    for tier in tiers.filter(warm_places__gt=0):
        if _overlap(warm_hours(tier), times):
            yield pod_plan(tier_spec(tier), tier.warm_places or 0)
    for other in RushPlan.objects.filter(tier__in=tiers).select_related("tier", "environment"):
        if other.pk != plan_id(plan) and _overlap(plan_hours(other), times):
            yield _plan(other, known_sidecars)


def _overlap(hours: WarmHours | None, times: RushTimes) -> bool:
    run = hours.next_run(times.ready) if hours is not None else None
    return run is not None and run[0] < times.until


def _plan(plan: RushPlan, known_sidecars: Sidecars) -> PodPlan:
    """Return the plan's places as pods, each with what stands beside a program of its environment."""
    spec = tier_spec(plan.tier)
    pods = pod_plan(spec, plan.places)
    sidecar_requests = Counter(requests_beside(spec, plan.environment, known_sidecars))
    return replace(pods, requests=dict(Counter(pods.requests) + sidecar_requests))


Made = Literal["saved", "changed", "same", "full"]


@transaction.atomic
def make(plan: RushPlan, actor: User, now: datetime) -> Made:
    """Store the plan, or how early it begins where an equal one exists, with an audit entry; return what was done or why nothing was."""
    RushPlan.objects.filter(on__lt=(now - _KEPT).date()).delete()
    plan.id, plan.made_by = plan_id(plan), actor.get_username()
    if RushPlan.objects.exclude(pk=plan.id).count() >= MOST_PLANS:
        return "full"
    columns = {field.attname: getattr(plan, field.attname) for field in plan._meta.concrete_fields}
    stored, is_new = RushPlan.objects.select_for_update().get_or_create(pk=columns.pop("id"), defaults=columns)
    if is_new:
        changes = {name: [None, value] for name, value in _shown(stored).items()}
        audit.write_entry(actor, stored, changes, action=AuditEntry.Action.CREATED)
        return "saved"
    early, stored.early_minutes = stored.early_minutes, plan.early_minutes
    if early == plan.early_minutes:
        return "same"
    stored.save(update_fields=["early_minutes"])
    audit.write_entry(actor, stored, {"early_minutes": [early, plan.early_minutes]})
    return "changed"


@transaction.atomic
def remove(id: str, actor: User) -> bool:
    """Delete the plan, with an audit entry; return False when it is gone already."""
    plan = RushPlan.objects.select_for_update().filter(pk=id).first()
    if plan is None:
        return False
    changes = {name: [value, None] for name, value in _shown(plan).items()}
    audit.write_entry(actor, plan, changes, action=AuditEntry.Action.DELETED)
    plan.delete()
    return True


def listed_plans(runtime: Runtime, now: datetime) -> list[PlanFacts]:
    """Return the plans: what is warm now first, then by their next runs; those that are over come last."""
    plans = list(RushPlan.objects.select_related("tier", "environment"))
    running = {run.plan.pk: run for run in running_plans(plans, now)}
    others = _AskedFor(plans, running)
    rows = [_listed(runtime, plan, running.get(plan.pk), others, now) for plan in plans]
    end = datetime.max.replace(tzinfo=UTC)
    return sorted(rows, key=lambda row: (row.run[0] if row.run else end, row.id))


class _AskedFor:
    """The warm places that tiers and plans ask for, and how many there may be at once."""

    def __init__(self, plans: Sequence[RushPlan], running: Mapping[str, RunningPlan]) -> None:
        self._most = value_of(WARM_PLACES)
        self._places = {plan.pk: plan.places for plan in plans if not plan.tier.is_archived}
        self._places |= {id: run.left for id, run in running.items() if id in self._places}
        self._hours = {plan.pk: plan_hours(plan) for plan in plans if plan.pk in self._places}
        for tier in HardwareTier.objects.filter(data_plane=LOCAL, is_archived=False, warm_places__gt=0):
            self._places[f"tier {tier.pk}"], self._hours[f"tier {tier.pk}"] = tier.warm_places or 0, warm_hours(tier)

    def limit(self, plan: RushPlan, times: RushTimes) -> str:
        """Return why not all of the plan's places can be warm at these times, and what to do; "" when they can."""
        if sum(self._places.values()) <= self._most:
            return ""
        near = {id: places for id, places in self._places.items() if _overlap(self._hours[id], times)}
        count = near.pop(plan.pk, 0)
        if count + sum(min(count, places) for places in near.values()) <= self._most:
            return ""  # places are made in turns, so that only larger plans go without
        refusal = too_many(count, sum(near.values()), self._most)
        return f"{refusal.sentence} {refusal.step}" if refusal is not None else ""


def _listed(
    runtime: Runtime, plan: RushPlan, running: RunningPlan | None, asked: _AskedFor, now: datetime
) -> PlanFacts:
    hours = plan_hours(plan)
    run = hours.next_run(now) if hours is not None else None
    shown_hours = replace(hours, early=timedelta()) if hours is not None else None
    name = f"{plan.places:,} {plan.tier}"
    facts = PlanFacts(plan.pk, name, str(plan.environment), plan.places, shown_hours, run, plan.made_by)
    if run is None:
        return facts
    if running is None:
        # As when it was planned: by the time at which its places have to be ready.
        times = RushTimes(run[0] + timedelta(minutes=plan.early_minutes), run[1])
        return replace(facts, limits=_limits(plan) or asked.limit(plan, times))
    limits = _limits(plan) or asked.limit(plan, RushTimes(now, now + timedelta.resolution))
    pods = runtime.pods.by("warm_pool", plan.tier.node_pool)
    ready = sum(pod.metadata.annotations.get(RUSH_PLAN) == plan.pk and _is_ready(pod) for pod in pods)
    return replace(facts, taken=running.taken, ready=ready, limits=limits)


def _is_ready(pod: Pod) -> bool:
    """Return whether the place is bound to a node that has the image: its init container has run, whatever came of that."""
    statuses = pod.status.init_container_statuses
    ran = [status for status in statuses if status.state.terminated or status.restart_count]
    return bool(pod.spec.node_name) and len(ran) >= len(pod.spec.init_containers)


def _limits(plan: RushPlan) -> str:
    """Return what of its own keeps the plan from being carried out, and what to do."""
    if plan.tier.is_archived:
        return _("The tier {tier} is archived. Remove the plan, or ask an admin to restore the tier.", tier=plan.tier)
    if plan.environment.is_archived:
        return _(
            "The environment {environment} is archived: its image is not pulled. Plan it with another one.",
            environment=plan.environment,
        )
    return ""


def _shown(plan: RushPlan) -> dict[str, Any]:
    values = audit.snapshot(plan) | {"on": plan.on.isoformat() if plan.on else None}
    return {name: value for name, value in values.items() if name not in ("id", "made_by")}
