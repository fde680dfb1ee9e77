"""What runs of a job have measured: the values of the charts and the table beside them, of one execution and of several runs."""

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.leaving import left_sentence
from dashboard.executions.views.executions import seen
from dashboard.jobs.metric_records import leading_runs, metrics_of_runs, metrics_table, read_metrics
from dashboard.jobs.pages.job import JOB
from dashboard.jobs.viewmodels.run_metrics import MOST_RUNS, charts
from dashboard.jobs.views.jobs import seen as seen_job
from dashboard.shell.exports import note_export_of
from grid.core.translation import gettext as _

_ROWS = "jobs/fragments/run_metrics_rows.html"


@require_safe
async def execution_metrics(request: HttpRequest, id: str) -> HttpResponse:
    """Return the charts' values as JSON, with `?table=1` as rows of a table, or with `?download=1` as a file."""
    viewer, record = await seen(request, id)
    if not person(viewer, record).may_read:
        raise PermissionDenied(left_sentence(record))
    if request.GET.get("table") == "1":
        context = {"record": record, "metrics": await sync_to_async(metrics_table)(id)}
        return await sync_to_async(render)(request, _ROWS, context)
    found = await sync_to_async(read_metrics)(id)
    if request.GET.get("download") == "1":
        points = {one.name: [{"step": step, "value": value} for step, value in one.points] for one in found.metrics}
        name = f"{record.object_name}-metrics.json"
        await sync_to_async(note_export_of)(request, id, name)
        answer = JsonResponse(points)
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        return answer
    return JsonResponse(charts({record.name: found.metrics}))


@require_safe
def job_metrics(request: HttpRequest, id: str) -> HttpResponse:
    """Return the values of charts as JSON, with a line for each of the runs that are asked for, or for the first ones of a sweep."""
    seen_job(request, id)
    view = JOB.view(request.GET)
    if view.sweep:
        numbers, name = leading_runs(id, view.sweep, view.metric, view.order)
    else:
        asked = [text for text in request.GET.getlist("run") if text.isascii() and text.isdigit() and len(text) < 10]
        numbers, name = [int(text) for text in asked], view.metric
    found = metrics_of_runs(id, numbers[:MOST_RUNS], name)
    return JsonResponse(charts({_("Run {number}", number=number): metrics for number, metrics in found.items()}))
