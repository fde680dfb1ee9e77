"""The launch form's cluster part: an estimate that follows the form's values, and the choices for a framework."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import Count, F, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from dashboard.forms.cluster import ClusterForm
from dashboard.forms.launch import ATTACHABLE_KINDS, LaunchForm
from dashboard.viewmodels.cluster_estimate import ClusterPlan, Estimate, Machine, estimate
from dashboard.viewmodels.executions_view import KINDS
from dashboard.viewmodels.launch import Slots, slots
from grid.centralconfig import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.diagnosis.tierfit import TierSize, pool_offers
from grid.launch.clusters.request import UNKNOWN, ClusterFacts, version_mismatch
from grid.launch.spec import parse_spec
from grid.models import Execution, HardwareTier, User
from grid.models.environment import Kind
from grid.runtime import Runtime, get_runtime
from grid.watch.pools import node_groups

_CHOSEN_AGAIN = frozenset({"target_cpu", "target_memory"})  # reset to the framework's configured defaults


@dataclass(frozen=True, slots=True)
class FrameworkCard:
    """A card for choosing a framework; `versions` are those in the environments that have the framework."""

    value: str
    label: str
    versions: str
    is_chosen: bool


def facts_of(runtime: Runtime) -> ClusterFacts:
    """Return what the node pools offer, or UNKNOWN until the cluster has been read. Call it on the event loop."""
    if not runtime.freshness().synced:
        return UNKNOWN
    return ClusterFacts(pool_offers(runtime.nodes.values(), node_groups(runtime.config_maps.values())))


def cluster_context(form: LaunchForm, held: Slots) -> dict[str, Any]:
    """Return the template context of the whole page; an unbound form is estimated with its initial values."""
    part = form.cluster
    if part is None:
        return {"cluster": None}
    asked = form if part.is_bound else _as_sent(form, part)
    return {
        "cluster": part,
        "frameworks": [
            FrameworkCard(name.value, name.label, ", ".join(part.versions[name]), name == part.chosen_framework)
            for name in part.frameworks
        ],
        "wants_cluster": form.wants_cluster,
        "kind_word": KINDS[form.kind].lower(),
        **_estimate_context(asked, held),
    }


@require_POST
async def launch_estimate(request: HttpRequest) -> HttpResponse:
    """Return the estimate for the posted form as a fragment, with the errors of the cluster's fields."""
    answer: HttpResponse = await sync_to_async(_estimate)(request, facts_of(get_runtime()))
    return answer


@require_POST
def launch_choices(request: HttpRequest) -> HttpResponse:
    """Return the choices for the posted framework as a fragment, which keeps the other posted values where possible."""
    assert isinstance(request.user, User)
    typed = {name: value for name, value in request.POST.dict().items() if name not in _CHOSEN_AGAIN}
    boxes = {name: name in request.POST for name in ("autoscale", "on_demand")}
    is_attached = typed.get("kind") != Kind.CLUSTER
    part = ClusterForm(None, user=request.user, initial=typed | boxes, slots=0, is_attached=is_attached)
    return render(request, "dashboard/fragments/cluster_choices.html", {"cluster": part})


def cluster_initial(execution: Execution) -> dict[str, Any]:
    """Return the form's fields as a previous cluster was launched with; {} when its spec cannot be read any more."""
    try:
        spec = parse_spec(execution).cluster
    except ValueError:
        return {}
    if spec is None:
        return {}
    scaling = spec.scaling
    grown = {
        "workers_maximum": spec.workers_maximum,
        "target_cpu": scaling.target_cpu,
        "target_memory": scaling.target_memory,
        "on_demand": scaling.on_demand,
    }
    return {
        "framework": spec.framework,
        "cluster_environment": execution.environment_id,
        "head_tier": execution.head_tier_id,
        "worker_tier": execution.tier_id,
        "workers_minimum": spec.workers_minimum,
        "autoscale": scaling.autoscale,
        "local_storage": spec.local_storage,
        **(grown if scaling.autoscale else {}),
    }


def slots_of(user: User) -> Slots:
    mine = Execution.objects.filter(owner=user).order_by()
    used = mine.holding_slots().aggregate(Sum("slots"))
    queued = mine.queued().aggregate(Sum("slots"))
    return slots(
        used=used["slots__sum"] or 0,
        queued=queued["slots__sum"] or 0,
        maximum=value_of(MAXIMUM_EXECUTIONS_PER_USER),
    )


def running_by_tier() -> dict[str, int]:
    """Return the number of all users' executions that hold slots, by tier. As in the queue, a cluster whose head has another tier
    counts on both tiers."""
    holding = Execution.objects.holding_slots().order_by()
    heads = holding.exclude(head_tier=None).exclude(head_tier=F("tier"))
    counts: Counter[str] = Counter()
    for column, rows in (("tier_id", holding), ("head_tier_id", heads)):
        counts.update(dict(rows.values_list(column).annotate(Count("pk"))))
    return dict(counts)


def workers_left(held: Slots, kind: str) -> int:
    """Return the free slots left for workers: the head takes one, and so does the execution that the cluster is attached to."""
    return held.maximum - held.used - 1 - (kind in ATTACHABLE_KINDS)


def _estimate(request: HttpRequest, facts: ClusterFacts) -> HttpResponse:
    assert isinstance(request.user, User)
    kind = request.POST.get("kind", "")
    form = LaunchForm(request.POST, user=request.user, kind=kind, facts=facts)
    context = {"is_update": True, "cluster": form.cluster, **_estimate_context(form, slots_of(request.user))}
    return render(request, "dashboard/fragments/cluster_estimate.html", context)


def _estimate_context(form: LaunchForm, held: Slots) -> dict[str, Any]:
    """Return the estimate's template context; `form` is bound and is validated here, so that its errors are set."""
    part = form.cluster
    plan = _plan(form, part) if form.errors is not None and part and part.errors is not None else None
    shown: Estimate | None = estimate(plan, held, form.facts.offers) if plan else None
    return {"estimate": shown, "mismatch": _mismatch(form, part) if part else ""}


def _plan(form: LaunchForm, part: ClusterForm) -> ClusterPlan | None:
    """Return the plan that the form describes; None while a value is missing or invalid."""
    typed = part.typed
    head, worker = typed.get("head_tier"), typed.get("worker_tier")
    minimum, maximum = typed.get("workers_minimum") or 0, typed.get("workers_maximum") or 0
    own = form.tiers.filter(pk=form.chosen("tier")).first()
    if head is None or worker is None or not 1 <= minimum <= maximum or not (form.is_cluster or own):
        return None
    running = running_by_tier()
    return ClusterPlan(
        head=_machine(head, running),
        worker=_machine(worker, running),
        minimum=minimum,
        maximum=maximum,
        companion=_machine(own, running) if own else None,
    )


def _machine(tier: HardwareTier, running: Mapping[str, int]) -> Machine:
    size = TierSize(tier.node_pool, tier.cores, tier.memory, tier.gpus, tier.gpu_resource)
    return Machine(tier.name, size, tier.cost_per_hour, tier.maximum_simultaneous, running.get(tier.pk, 0))


def _mismatch(form: LaunchForm, part: ClusterForm) -> str:
    theirs = part.typed.get("cluster_environment")
    ours = form.environments.filter(pk=form.chosen("environment")).first()
    return version_mismatch(ours, theirs, part.chosen_framework) if ours and theirs else ""


def _as_sent(form: LaunchForm, part: ClusterForm) -> LaunchForm:
    """Return the form bound to its own initial values."""
    own = {name: form.chosen(name) for name in ("project", "environment", "tier")}
    data = {**own, "title": form["title"].value() or "", "with_cluster": "on", **part.as_sent()}
    return LaunchForm(data, user=form.user, kind=form.kind, facts=form.facts)
