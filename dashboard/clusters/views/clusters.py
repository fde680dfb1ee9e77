"""On-demand clusters: their part of the launch form with its estimate, their chart, changing the number of workers, restarting the head.

Who may see the execution may see its samples. Who may stop it and contributes to its project may change it, and so may operators.
"""

from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.clusters.forms.cluster import ClusterForm, ResizeForm
from dashboard.clusters.page import read_samples, samples_table
from dashboard.clusters.viewmodels.cluster_estimate import ClusterPlan, Machine, estimate
from dashboard.clusters.viewmodels.clusters import ClusterRecord, cluster_of, lost_by_restart
from dashboard.clusters.viewmodels.samples import chart, scale_events, thinned
from dashboard.executions.forms import LaunchForm
from dashboard.executions.launch_facts import card_of, cluster_known, holding_beside, running_by_tier, slots_of
from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.viewmodels.execution_actions import left_sentence
from dashboard.executions.viewmodels.launch import ClusterKnown, Slots
from dashboard.executions.views.executions import seen
from dashboard.executions.views.launch import link_of, posted_form
from dashboard.shell.access import Viewer, user_of
from dashboard.shell.viewmodels.states import KINDS
from grid.audit.entries import differences, write_entry
from grid.clusters.changes import resize, restart_head
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.environments.revisions import version_mismatch
from grid.executions.preview import pod_plan
from grid.executions.spec import tier_spec
from grid.models import AuditEntry, Execution, HardwareTier
from grid.models.environment import Kind
from grid.runtime import get_runtime


@require_safe
async def execution_samples(request: HttpRequest, id: str) -> HttpResponse:
    """Return the chart's values as JSON, or with `?table=1` as rows of a table."""
    _, record, cluster = await _seen_cluster(request, id)
    if request.GET.get("table") == "1":
        context = {"record": record, "sample_rows": await sync_to_async(samples_table)(record)}
        return await sync_to_async(render)(request, "clusters/fragments/samples_rows.html", context)
    return JsonResponse(await _chart(record, cluster))


@require_http_methods(["GET", "HEAD", "POST"])
async def execution_resize(request: HttpRequest, id: str) -> HttpResponse:
    """Change the number of workers, on a page of its own, so that it works without a script."""
    viewer, record, cluster = await _changeable(request, id)
    if request.method != "POST":
        return await _resize_page(request, record, cluster, ResizeForm.of(cluster), status=200)
    form = ResizeForm(request.POST)
    if form.is_valid():
        try:
            await _resize(id, viewer.username, **form.cleaned_data)
            get_runtime().executions.hint()
            messages.success(request, _("{name} now has {workers}.", name=record.name, workers=form.words))
            return redirect("execution", id=id)
        except Rejected as rejected:
            form.refuse(rejected)
    return await _resize_page(request, record, cluster, form, status=422)


@require_http_methods(["GET", "HEAD", "POST"])
async def execution_restart_head(request: HttpRequest, id: str) -> HttpResponse:
    """Restart the cluster's head, after a confirmation page that says what is lost."""
    viewer, record, cluster = await _changeable(request, id)
    context: dict[str, Any] = {"record": record, "lost": lost_by_restart(cluster.framework), "problems": ()}
    if request.method == "POST":
        try:
            await _restart_head(id, viewer.username)
            get_runtime().executions.hint()
            messages.info(request, _("The head of {name} was asked to restart.", name=record.name))
            return redirect("execution", id=id)
        except Rejected as rejected:
            context["problems"] = tuple(problem.message for problem in rejected.problems)
    status = 422 if context["problems"] else 200
    return await sync_to_async(render)(request, "clusters/execution_restart_head.html", context, status=status)


async def _resize_page(
    request: HttpRequest, record: ExecutionRecord, cluster: ClusterRecord, form: ResizeForm, *, status: int
) -> HttpResponse:
    price = cluster.price_at_bounds(record.cost_per_hour)
    context = {"record": record, "form": form, "price": price, "slots": record.slots}
    return await sync_to_async(render)(request, "clusters/execution_resize.html", context, status=status)


async def _seen_cluster(request: HttpRequest, id: str) -> tuple[Viewer, ExecutionRecord, ClusterRecord]:
    viewer, record = await seen(request, id)
    cluster = cluster_of(record)
    if cluster is None:
        raise Http404(_("This cluster does not exist, or you have no access to it."))
    return viewer, record, cluster


async def _changeable(request: HttpRequest, id: str) -> tuple[Viewer, ExecutionRecord, ClusterRecord]:
    viewer, record, cluster = await _seen_cluster(request, id)
    who = person(viewer, record)
    if who.is_owner and not who.may_change:
        raise PermissionDenied(left_sentence(record) + " " + _("You may stop the cluster, but not change it."))
    if not who.may_change:
        raise PermissionDenied(_("Only its owner, the project's owner, operators and admins can change a cluster."))
    return viewer, record, cluster


@sync_to_async
def _chart(record: ExecutionRecord, cluster: ClusterRecord) -> dict[str, Any]:
    samples = read_samples(record.id)
    return chart(cluster, thinned(samples), scale_events(samples, record.lifecycle))


@sync_to_async
def _resize(execution_id: str, username: str, minimum: int, maximum: int) -> None:
    execution, words = Execution.objects.get(pk=execution_id), _("{minimum} to {maximum}")
    before = {"workers": words.format(minimum=execution.workers_minimum, maximum=execution.workers_maximum)}
    with transaction.atomic():
        resize(execution, minimum=minimum, maximum=maximum, by=username, now=timezone.now())
        if changes := differences(before, {"workers": words.format(minimum=minimum, maximum=maximum)}):
            write_entry(username, execution, changes)


@sync_to_async
def _restart_head(execution_id: str, username: str) -> None:
    execution = Execution.objects.get(pk=execution_id)
    with transaction.atomic():
        restart_head(execution, by=username, now=timezone.now())
        write_entry(username, execution, {}, action=AuditEntry.Action.RESTARTED)


_CHOSEN_AGAIN = frozenset({"target_cpu", "target_memory"})  # reset to the framework's configured defaults


def cluster_context(form: LaunchForm, held: Slots, running: Mapping[str, int]) -> dict[str, Any]:
    """Return the template context of the whole page; an unbound form is estimated with its initial values."""
    part = _part_of(form)
    if part is None:
        return {"cluster": None}
    versions = {name: ", ".join(part.versions[name]) for name in part.frameworks}
    return {
        "cluster": part,
        "frameworks": [(name, words, name == part.chosen_framework) for name, words in versions.items()],
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
    form = posted_form(request, known.pools)
    held, holding = slots_of(form.user), holding_beside(form.user, get_runtime())
    estimated = _estimate_context(form, held, running_by_tier(holding))
    context = {"is_update": True, "cluster": _part_of(form), "link": link_of(form), **estimated}
    context["suggested_name"] = form.suggested_name
    context["card"] = card_of(form, held, known, holding)
    return render(request, "executions/fragments/fit_card.html", context)


def _estimate_context(form: LaunchForm, held: Slots, running: Mapping[str, int]) -> dict[str, Any]:
    """Return the estimate's template context; `form` is bound and is validated here, so that its errors are set."""
    part = _part_of(form)
    plan = _plan(form, part, running) if form.errors is not None and part and part.errors is not None else None
    theirs = part.typed.get("cluster_environment") if part and _is_wanted(form) else None
    ours = form.chosen_row("environment") if theirs else None
    return {
        "estimate": estimate(plan, held, form.pools) if plan else None,
        "has_estimate": part is not None and _is_wanted(form),
        "mismatch": version_mismatch(ours, theirs, part.chosen_framework) if part and ours and theirs else "",
    }


def _plan(form: LaunchForm, part: ClusterForm, running: Mapping[str, int]) -> ClusterPlan | None:
    typed = part.typed
    head, worker = typed.get("head_tier"), typed.get("worker_tier")
    minimum, maximum = typed.get("workers_minimum") or 0, typed.get("workers_maximum") or 0
    own = form.chosen_row("tier")
    if head is None or worker is None or not 1 <= minimum <= maximum or (part.is_attached and own is None):
        return None
    companion = _machine(own, running) if own else None
    return ClusterPlan(_machine(head, running), _machine(worker, running), minimum, maximum, companion)


def _machine(tier: HardwareTier, running: Mapping[str, int]) -> Machine:
    return Machine(pod_plan(tier_spec(tier)), tier.cost_per_hour, tier.maximum_simultaneous, running.get(tier.pk, 0))
