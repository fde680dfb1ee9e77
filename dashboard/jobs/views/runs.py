"""The pages of a job's run: the record of what an attempt ran with, and what runs have measured. Contributors and the owner also see
the results."""

from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.viewmodels.execution_actions import left_sentence
from dashboard.executions.views.executions import seen
from dashboard.jobs.job_records import read_run
from dashboard.jobs.pages.job import JOB, typed_number
from dashboard.jobs.run_records import (
    ResultsUnreadable,
    deprecated_since,
    leading_runs,
    metrics_of_runs,
    ran_with,
    read_metrics,
    read_results,
)
from dashboard.jobs.viewmodels.jobs import asked_facts
from dashboard.jobs.viewmodels.runs import MOST_RUNS, charts, launch_facts, record_json
from dashboard.jobs.views.jobs import seen as seen_job
from dashboard.shell.exports import note_export_of
from grid.core.translation import gettext as _
from grid.models import Execution, JobRun

_ROWS = "jobs/fragments/run_metrics_rows.html"


@require_safe
async def execution_record(request: HttpRequest, id: str) -> HttpResponse:
    """Show the record, or with `?download=1` send it as JSON."""
    viewer, record = await seen(request, id)
    who = person(viewer, record)
    if not who.may_read:
        raise PermissionDenied(left_sentence(record))
    return await _record(request, record, is_owner=who.is_owner)


@sync_to_async
def _record(request: HttpRequest, record: ExecutionRecord, *, is_owner: bool) -> HttpResponse:
    ran = ran_with(record.id)
    if record.run is None or ran is None:
        raise Http404(_("Only runs of jobs have a record of what they ran with, as long as it can be read."))
    if request.GET.get("download") == "1":
        name = f"{record.object_name}-record.json"
        note_export_of(request, record.id, name)
        answer = JsonResponse(record_json(ran), json_dumps_params={"indent": 2})
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        return answer
    facts = _asked(record.id) | launch_facts(ran)
    context: dict[str, Any] = {"record": record, "facts": facts, "is_owner": is_owner, "earlier": _earlier(record)}
    context["deprecated"] = deprecated_since(ran)
    return render(request, "jobs/execution_record.html", context)


def _asked(execution_id: str) -> dict[str, str]:
    """Return what the run was asked to run with."""
    run = Execution.objects.select_related("run").get(pk=execution_id).run
    line = read_run(run.job_id, run.number, timezone.now()) if run else None
    return asked_facts(line) if line else {}


def _earlier(record: ExecutionRecord) -> int | None:
    """Return the number of the run before, to compare with; None without one, or without a job to compare in."""
    if record.run is None or not record.run.job_id:
        return None
    rows = JobRun.objects.filter(job=record.run.job_id, number__lt=record.run.number).order_by("-number")
    return rows.values_list("number", flat=True).first()


@require_safe
async def execution_results(request: HttpRequest, id: str) -> HttpResponse:
    viewer, record = await seen(request, id)
    if record.files is None or not record.files.has_results:
        raise Http404(_("This execution has no results."))
    if not person(viewer, record).contributes:
        raise PermissionDenied(_("Only the owner and contributors of the project see its files."))
    return await _results(request, record)


@sync_to_async
def _results(request: HttpRequest, record: ExecutionRecord) -> HttpResponse:
    context: dict[str, Any] = {"record": record}
    try:
        context["results"] = read_results(record.id)
    except ResultsUnreadable as error:
        context["problem"] = str(error)
    return render(request, "jobs/execution_results.html", context, status=503 if "problem" in context else 200)


@require_safe
async def execution_metrics(request: HttpRequest, id: str) -> HttpResponse:
    """Return the charts' values as JSON, with `?table=1` as rows of a table, or with `?download=1` as a file."""
    viewer, record = await seen(request, id)
    if not person(viewer, record).may_read:
        raise PermissionDenied(left_sentence(record))
    metrics = await sync_to_async(read_metrics)(id)
    if request.GET.get("table") == "1":
        return await sync_to_async(render)(request, _ROWS, {"record": record, "metrics": metrics})
    if request.GET.get("download") == "1":
        points = {
            metric.name: [{"step": step, "value": value} for step, value in metric.points] for metric in metrics.metrics
        }
        name = f"{record.object_name}-metrics.json"
        await sync_to_async(note_export_of)(request, id, name)
        answer = JsonResponse(points)
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        return answer
    return JsonResponse(charts({record.name: metrics.metrics}))


@require_safe
def job_metrics(request: HttpRequest, id: str) -> HttpResponse:
    """Return the values of charts as JSON, with a line for each of the runs that are asked for, or for the first ones of a sweep."""
    seen_job(request, id)
    view = JOB.view(request.GET)
    if view.sweep:
        numbers, name = leading_runs(id, view.sweep, view.metric, view.order)
    else:
        numbers, name = list(filter(None, map(typed_number, request.GET.getlist("run")))), view.metric
    runs = metrics_of_runs(id, numbers[:MOST_RUNS], name)
    return JsonResponse(charts({_("Run {number}", number=number): metrics for number, metrics in runs.items()}))
