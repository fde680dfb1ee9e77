"""The launch form and its submission."""

from collections.abc import Iterable, Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.access import viewer_of
from dashboard.forms.launch import LaunchForm, new_token
from dashboard.ids import id_in
from dashboard.records import visible_executions
from dashboard.viewmodels.executions_view import KINDS
from dashboard.viewmodels.launch import Slots, TierOffer, tier_cards
from dashboard.views.launch_cluster import (
    cluster_context,
    cluster_initial,
    facts_of,
    running_by_tier,
    slots_of,
    workers_left,
)
from dashboard.workspace_records import has_stopped
from grid.errors import Rejected
from grid.labels import SIMULATED
from grid.launch.clusters.request import ClusterFacts
from grid.launch.request import LAUNCHABLE_KINDS, environments_for, submit
from grid.models import Execution, HardwareTier, User, Workspace
from grid.models.environment import Kind
from grid.runtime import Runtime, get_runtime

_ORDER = [kind for kind in KINDS if kind in LAUNCHABLE_KINDS]


@require_http_methods(["GET", "HEAD", "POST"])
async def launch(request: HttpRequest) -> HttpResponse:
    """Show the launch form or submit it. The nodes are read here, on the event loop; the database is used in a thread."""
    runtime = get_runtime()
    answer: HttpResponse = await sync_to_async(_launch)(request, ready_nodes(runtime), facts_of(runtime))
    if request.method == "POST":
        runtime.executions.hint()
    return answer


def ready_nodes(runtime: Runtime) -> Mapping[str, int] | None:
    """Return the number of schedulable, ready nodes by pool, without simulated ones; None until the cluster has been read."""
    if not runtime.freshness().synced:
        return None
    found: dict[str, int] = {}
    for node in runtime.nodes.values():
        pool = node.metadata.labels.get(settings.NODE_POOL_LABEL, "")
        is_ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
        if pool and is_ready and not node.spec.unschedulable and SIMULATED not in node.metadata.labels:
            found[pool] = found.get(pool, 0) + 1
    return found


def _launch(request: HttpRequest, nodes: Mapping[str, int] | None, facts: ClusterFacts) -> HttpResponse:
    assert isinstance(request.user, User)
    kinds = [kind for kind in _ORDER if environments_for(request.user, kind).exists()]
    model = _model(request)
    asked = request.POST.get("kind") or request.GET.get("kind") or (model.kind if model else "")
    kind = asked if asked in _ORDER else next(iter(kinds), _ORDER[0])
    held = slots_of(request.user)
    if request.method == "POST":
        form = LaunchForm(request.POST, user=request.user, kind=kind, facts=facts)
        if "check" not in request.POST and form.is_valid():
            launched = _submit(request, form)
            if launched is not None:
                return launched
    else:
        initial, left = _initial(request.user, kind, model), workers_left(held, kind)
        form = LaunchForm(initial=initial, user=request.user, kind=kind, cluster_slots=left, facts=facts)
    context = _context(form, kinds, nodes, held) | cluster_context(form, held)
    refused = form.is_bound and "check" not in request.POST
    return render(request, "dashboard/launch.html", context, status=422 if refused else 200)


def _submit(request: HttpRequest, form: LaunchForm) -> HttpResponse | None:
    """Redirect to the new execution, or to what this form has launched before. Return None, with errors in the form, when rejected."""
    wanted = form.execution_id()
    try:
        with transaction.atomic():
            execution = submit(form.request(), now=timezone.now(), execution_id=wanted, facts=form.facts)
        return redirect("execution", id=execution.pk)
    except Rejected as refused:
        form.add_problems(refused.problems)
        return None
    except IntegrityError:
        # The id is derived from the form, so the existing row came from an earlier submission of it.
        address = _launched_before(wanted, form.user)
        if address is None:
            raise
        if not address:
            sentence = "This form was sent before, and the workspace that it launched was deleted. Open the form anew to launch another."
            form.add_error(None, sentence)
            return None
        messages.info(request, "This form was sent twice; it was launched once.")
        return redirect(address)


def _launched_before(id: str, owner: User) -> str | None:
    """Return the URL of the owner's execution with that id, or of its workspace when the history has dropped the execution; "" when the
    workspace was deleted, None when there is neither."""
    if Execution.objects.filter(pk=id, owner=owner).exists():
        return reverse("execution", kwargs={"id": id})
    workspace = Workspace.objects.filter(pk=id, owner=owner).first()
    if workspace is None:
        return None
    return reverse("workspace", kwargs={"id": id}) if workspace.deleted_at is None else ""


def _model(request: HttpRequest) -> Execution | None:
    """Return the execution to launch again, or None when there is none that the user may see."""
    viewer = viewer_of(request.user)
    asked = id_in(request.GET, "from")
    return visible_executions(viewer).filter(pk=asked).first() if viewer and asked else None


def _initial(user: User, kind: str, model: Execution | None) -> dict[str, Any]:
    """Return initial values: those of `model` and its cluster, or else what the user launched last: project, environment and tier."""
    mine = Execution.objects.filter(owner=user).only("project", "environment", "tier")
    latest, alike = mine.first(), mine.filter(kind=kind).first()
    initial: dict[str, Any] = {"token": new_token(), "project": latest.project_id if latest else None}
    if alike is not None:
        initial |= {"environment": alike.environment_id, "tier": alike.tier_id}
    if model is None or model.kind != kind:
        return initial
    initial |= {
        "project": model.project_id,
        "environment": model.environment_id,
        "tier": model.tier_id,
        "title": model.title,
    }
    attached = model if kind == Kind.CLUSTER else model.attached.order_by("requested_at").first()
    cluster = cluster_initial(attached) if attached else {}
    return initial | cluster | {"with_cluster": bool(cluster)}


def _context(form: LaunchForm, kinds: list[str], nodes: Mapping[str, int] | None, held: Slots) -> dict[str, Any]:
    projects, environments = list(form.projects), list(form.environments)
    offers = tier_offers(form.tiers)
    missing = ""
    if not projects:
        missing = (
            "You contribute to no project yet. Ask an admin to make one for you, or to make you a contributor of one."
        )
    elif (form.is_cluster and form.cluster is None) or not environments:
        missing = "No environment is offered for this kind of work. Ask your admin to add one."
    elif not offers:
        missing = "No hardware tier is offered to you for this kind of work. Ask your admin."
    return {
        "form": form,
        "kind": form.kind,
        "kinds": {kind: KINDS[kind] for kind in kinds},
        "projects": projects,
        "chosen_project": form.chosen("project"),
        "environments": sorted(
            environments, key=lambda one: (one.pk != form.chosen("environment"), bool(one.frameworks))
        ),
        "chosen_environment": form.chosen("environment"),
        "tiers": tier_cards(offers, chosen=form.chosen("tier"), ready_nodes=nodes, pools=form.facts.offers),
        "slots": held,
        "missing": missing,
        "has_stopped": form.kind == Kind.WORKSPACE and has_stopped(form.user.pk),
        "token": form["token"].value() or new_token(),
    }


def tier_offers(tiers: Iterable[HardwareTier]) -> list[TierOffer]:
    running = running_by_tier()

    def offer(tier: HardwareTier) -> TierOffer:
        return TierOffer(
            id=tier.pk,
            name=tier.name,
            description=tier.description,
            node_pool=tier.node_pool,
            cores=tier.cores,
            memory=tier.memory,
            gpus=tier.gpus,
            gpu_resource=tier.gpu_resource,
            cost_per_hour=tier.cost_per_hour,
            is_default=tier.is_default,
            maximum=tier.maximum_simultaneous,
            running=running.get(tier.pk, 0),
        )

    return [offer(tier) for tier in tiers]
