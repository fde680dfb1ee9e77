"""The launch form's cluster part: an estimate that follows the form's values, and the choices for a framework."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from dashboard.clusters.forms.cluster import ClusterForm
from dashboard.clusters.viewmodels.cluster_estimate import ClusterPlan, Machine, estimate
from dashboard.executions.forms import LaunchForm
from dashboard.executions.launch_facts import card_of, cluster_known, running_by_tier, slots_of
from dashboard.executions.viewmodels.launch import ClusterKnown, Slots
from dashboard.executions.views.launch import link_of, posted_form
from dashboard.shell.access import user_of
from dashboard.shell.viewmodels.states import KINDS
from grid.environments.declaredversions import version_mismatch
from grid.executions.preview import pod_plan
from grid.executions.spec import tier_spec
from grid.models import HardwareTier
from grid.models.environment import Kind
from grid.runtime import get_runtime

_CHOSEN_AGAIN = frozenset({"target_cpu", "target_memory"})  # reset to the framework's configured defaults


@dataclass(frozen=True, slots=True)
class FrameworkCard:
    """A card for choosing a framework; `versions` are those in the environments that have the framework."""

    value: str
    label: str
    versions: str
    is_chosen: bool


def cluster_context(form: LaunchForm, held: Slots, running: Mapping[str, int]) -> dict[str, Any]:
    """Return the template context of the whole page; an unbound form is estimated with its initial values."""
    part = _part_of(form)
    if part is None:
        return {"cluster": None}
    return {
        "cluster": part,
        "frameworks": [
            FrameworkCard(name.value, name.label, ", ".join(part.versions[name]), name == part.chosen_framework)
            for name in part.frameworks
        ],
        "wants_cluster": _is_wanted(form),
        "kind_word": KINDS[form.kind].lower(),
        **_estimate_context(form if part.is_bound else form.as_sent, held, running),
    }


@require_POST
async def launch_estimate(request: HttpRequest) -> HttpResponse:
    """Return the card for the posted form as a fragment, with the errors of the cluster's fields."""
    return await _estimate(request, await cluster_known(get_runtime()))


@require_POST
def launch_choices(request: HttpRequest) -> HttpResponse:
    """Return the choices for the posted framework as a fragment, which keeps the other posted values where possible."""
    typed = {name: value for name, value in request.POST.dict().items() if name not in _CHOSEN_AGAIN}
    boxes = {name: name in request.POST for name in ("autoscale", "on_demand")}
    is_attached = typed.get("kind") != Kind.CLUSTER
    part = ClusterForm(None, user=user_of(request), initial=typed | boxes, slots=0, is_attached=is_attached)
    return render(request, "clusters/fragments/cluster_choices.html", {"cluster": part})


def _part_of(form: LaunchForm) -> ClusterForm | None:
    return next((section for section in (form.own, form.attached) if isinstance(section, ClusterForm)), None)


def _is_wanted(form: LaunchForm) -> bool:
    return form.wants_attached or not form.has_machine


@sync_to_async
def _estimate(request: HttpRequest, known: ClusterKnown) -> HttpResponse:
    form, running = posted_form(request, known.pools), running_by_tier()
    held = slots_of(form.user)
    estimated = _estimate_context(form, held, running)
    context = {"is_update": True, "cluster": _part_of(form), "link": link_of(form), **estimated}
    context["card"] = card_of(form, held, known, running)
    return render(request, "executions/fragments/fit_card.html", context)


def _estimate_context(form: LaunchForm, held: Slots, running: Mapping[str, int]) -> dict[str, Any]:
    """Return the estimate's template context; `form` is bound and is validated here, so that its errors are set."""
    part = _part_of(form)
    plan = _plan(form, part, running) if form.errors is not None and part and part.errors is not None else None
    return {
        "estimate": estimate(plan, held, form.pools) if plan else None,
        "has_estimate": part is not None and _is_wanted(form),
        "mismatch": _mismatch(form, part) if part and _is_wanted(form) else "",
    }


def _plan(form: LaunchForm, part: ClusterForm, running: Mapping[str, int]) -> ClusterPlan | None:
    """Return the plan that the form describes; None while a value is missing or invalid."""
    typed = part.typed
    head, worker = typed.get("head_tier"), typed.get("worker_tier")
    minimum, maximum = typed.get("workers_minimum") or 0, typed.get("workers_maximum") or 0
    own = form.chosen_row("tier")
    if head is None or worker is None or not 1 <= minimum <= maximum or (part.is_attached and own is None):
        return None
    return ClusterPlan(
        head=_machine(head, running),
        worker=_machine(worker, running),
        minimum=minimum,
        maximum=maximum,
        companion=_machine(own, running) if own else None,
    )


def _machine(tier: HardwareTier, running: Mapping[str, int]) -> Machine:
    return Machine(pod_plan(tier_spec(tier)), tier.cost_per_hour, tier.maximum_simultaneous, running.get(tier.pk, 0))


def _mismatch(form: LaunchForm, part: ClusterForm) -> str:
    theirs, ours = part.typed.get("cluster_environment"), form.chosen_row("environment")
    return version_mismatch(ours, theirs, part.chosen_framework) if ours and theirs else ""
