"""On-demand clusters: the values of their chart, changing the number of workers, restarting the head.

Users who may see the execution may see its samples. Users who may stop it and contribute to its project may change it, and so may
operators.
"""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.clusters.forms.cluster import ResizeForm
from dashboard.clusters.records import read_samples, samples_table
from dashboard.clusters.viewmodels.clusters import ClusterRecord, cluster_of, lost_by_restart
from dashboard.clusters.viewmodels.samples import chart, scale_events, thinned
from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.viewmodels.execution_actions import left_sentence
from dashboard.executions.views.executions import seen
from dashboard.shell.access import Viewer
from grid.audit.entries import differences, write_entry
from grid.clusters.changes import resize, restart_head
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import AuditEntry, Execution
from grid.runtime import get_runtime

_NO_CLUSTER = _("This cluster does not exist, or you have no access to it.")


@require_safe
async def execution_samples(request: HttpRequest, id: str) -> HttpResponse:
    """Return the chart's values as JSON, or with `?table=1` as rows of a table."""
    _, record, cluster = await _seen_cluster(request, id)
    if request.GET.get("table") == "1":
        rows = await sync_to_async(samples_table)(record)
        context = {"record": record, "sample_rows": rows}
        return await sync_to_async(render)(request, "clusters/fragments/samples_rows.html", context)
    values = await sync_to_async(_chart)(record, cluster)
    return JsonResponse(values)


@require_http_methods(["GET", "HEAD", "POST"])
async def execution_resize(request: HttpRequest, id: str) -> HttpResponse:
    """Change the number of workers, on a page of its own, so that it works without a script."""
    viewer, record, cluster = await _changeable(request, id)
    if request.method != "POST":
        return await _resize_page(request, record, cluster, ResizeForm.of(cluster), status=200)
    form = ResizeForm(request.POST)
    if form.is_valid():
        try:
            await sync_to_async(_resize)(
                id, viewer.username, form.cleaned_data["minimum"], form.cleaned_data["maximum"]
            )
        except Rejected as rejected:
            form.refuse(rejected)
        else:
            get_runtime().executions.hint()
            messages.success(request, _("{name} now has {workers}.", name=record.name, workers=form.words))
            return redirect("execution", id=id)
    return await _resize_page(request, record, cluster, form, status=422)


@require_http_methods(["GET", "HEAD", "POST"])
async def execution_restart_head(request: HttpRequest, id: str) -> HttpResponse:
    """Restart the cluster's head, after a confirmation page that says what is lost."""
    viewer, record, cluster = await _changeable(request, id)
    context: dict[str, Any] = {"record": record, "lost": lost_by_restart(cluster.framework), "problems": ()}
    if request.method == "POST":
        try:
            await sync_to_async(_restart_head)(id, viewer.username)
        except Rejected as rejected:
            context["problems"] = tuple(problem.message for problem in rejected.problems)
        else:
            get_runtime().executions.hint()
            messages.info(request, _("The head of {name} was asked to restart.", name=record.name))
            return redirect("execution", id=id)
    status = 422 if context["problems"] else 200
    return await sync_to_async(render)(request, "clusters/execution_restart_head.html", context, status=status)


async def _resize_page(
    request: HttpRequest, record: ExecutionRecord, cluster: ClusterRecord, form: ResizeForm, *, status: int
) -> HttpResponse:
    context = {
        "record": record,
        "form": form,
        "price": cluster.price_at_bounds(record.cost_per_hour),
        "slots": record.slots,
    }
    return await sync_to_async(render)(request, "clusters/execution_resize.html", context, status=status)


async def _seen_cluster(request: HttpRequest, id: str) -> tuple[Viewer, ExecutionRecord, ClusterRecord]:
    viewer, record = await seen(request, id)
    cluster = cluster_of(record)
    if cluster is None:
        raise Http404(_NO_CLUSTER)
    return viewer, record, cluster


async def _changeable(request: HttpRequest, id: str) -> tuple[Viewer, ExecutionRecord, ClusterRecord]:
    viewer, record, cluster = await _seen_cluster(request, id)
    who = person(viewer, record)
    if who.is_owner and not who.may_change:
        raise PermissionDenied(left_sentence(record) + " " + _("You may stop the cluster, but not change it."))
    if not who.may_change:
        raise PermissionDenied(_("Only its owner, the project's owner, operators and admins can change a cluster."))
    return viewer, record, cluster


def _chart(record: ExecutionRecord, cluster: ClusterRecord) -> dict[str, Any]:
    samples = read_samples(record.id)
    return chart(cluster, thinned(samples), scale_events(samples, record.lifecycle))


def _resize(execution_id: str, username: str, minimum: int, maximum: int) -> None:
    execution = Execution.objects.get(pk=execution_id)
    before = {
        "workers": _("{minimum} to {maximum}", minimum=execution.workers_minimum, maximum=execution.workers_maximum)
    }
    with transaction.atomic():
        resize(execution, minimum=minimum, maximum=maximum, by=username, now=timezone.now())
        if changes := differences(before, {"workers": _("{minimum} to {maximum}", minimum=minimum, maximum=maximum)}):
            write_entry(username, execution, changes)


def _restart_head(execution_id: str, username: str) -> None:
    execution = Execution.objects.get(pk=execution_id)
    with transaction.atomic():
        restart_head(execution, by=username, now=timezone.now())
        write_entry(username, execution, {}, action=AuditEntry.Action.RESTARTED)
