"""The pages of jobs and their runs; `job_changes` and `schedules` have the forms. Contributors and the owner also see the results."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.executions.forms import new_token
from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.viewmodels.execution_actions import left_sentence
from dashboard.executions.views.executions import seen
from dashboard.jobs import run_records
from dashboard.jobs.job_records import read_job, read_run, read_sweep, schedules_of
from dashboard.jobs.pages.job import JOB, JOBS_LIST, typed_number
from dashboard.jobs.viewmodels.jobs import JobRecord, asked_facts, compared
from dashboard.jobs.viewmodels.runs import MOST_RUNS, chart_titles, charts, launch_facts, record_json
from dashboard.shell.access import may_contribute, may_manage_job, may_see_job
from dashboard.shell.exports import note_export_of
from dashboard.shell.views.live import live_page
from grid.core.translation import gettext as _
from grid.models import JobRun


@require_safe
async def jobs(request: HttpRequest) -> HttpResponse:
    return await live_page(request, JOBS_LIST, "jobs/jobs.html", context={"token": new_token()})


@require_safe
async def job(request: HttpRequest, id: str) -> HttpResponse:
    context = await _job(request, id)
    query = request.GET.copy()
    query["id"] = id
    return await live_page(request, JOB, "jobs/job.html", query=query, context=context)


@sync_to_async
def _job(request: HttpRequest, id: str) -> dict[str, Any]:
    """Return what the page has that does not change while it is open. Raise Http404 when the job is not there for this user."""
    record, view = seen_job(request, id), JOB.view(request.GET)
    sweep = read_sweep(id, view.sweep) if view.sweep else None
    measured = run_records.leading_runs(id, view.sweep, view.metric, view.order)[1] if sweep else ""
    return {
        "record": record,
        "titles": {"metric-0": measured} if measured else {},
        "metrics_url": f"{reverse('job-metrics', args=[id])}?{request.GET.urlencode()}",
        "is_mine": may_manage_job(request.user, record),
        "token": new_token(),
        "sweep": sweep,
        "schedules": [] if sweep else schedules_of(id, timezone.now()),
    }


@require_safe
def job_compare(request: HttpRequest, id: str) -> HttpResponse:
    """Show what differs between the records of two runs, then what does not."""
    record, now = seen_job(request, id), timezone.now()
    first, second = (read_run(id, number_in(request, name), now) for name in ("a", "b"))
    if first is None or second is None:
        messages.info(request, _("Choose two runs to compare, one in each column."))
        return redirect("job", id=id)
    facts = compared(
        first, second, run_records.launched_with(first.execution_id), run_records.launched_with(second.execution_id)
    )
    context = {
        "record": record,
        "runs": (first, second),
        "different": [fact for fact in facts if fact.differs],
        "alike": [fact for fact in facts if not fact.differs],
        "titles": chart_titles(run_records.metrics_of_runs(id, (first.number, second.number)).values()),
        "metrics_query": f"?run={first.number}&run={second.number}",
        "is_final": bool(first.outcome and second.outcome),
    }
    if may_contribute(request.user, record.project_roles):
        try:
            context["comparison"] = run_records.compare_results(first.execution_id, second.execution_id)
        except run_records.ResultsUnreadable as error:
            context["results_problem"] = str(error)
    return render(request, "jobs/job_compare.html", context)


def seen_job(request: HttpRequest, job_id: str) -> JobRecord:
    """Return the job. Raise Http404 when it is not there for this user."""
    record = read_job(job_id)
    if record is None or not may_see_job(request.user, record):
        raise Http404(JOB.refusal)
    return record


def managed(request: HttpRequest, job_id: str) -> JobRecord:
    """Return the user's own job. Raise PermissionDenied for somebody else's."""
    record = seen_job(request, job_id)
    if not may_manage_job(request.user, record):
        raise PermissionDenied(_("Only its owner can run, stop, edit or delete a job."))
    return record


def number_in(request: HttpRequest, name: str) -> int:
    """Return the number that the address has under this name; 0 when there is none or it is invalid."""
    return typed_number(request.GET.get(name, "") or request.POST.get(name, ""))


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
    ran = run_records.ran_with(record.id)
    if record.run is None or ran is None:
        raise Http404(_("Only runs of jobs have a record of what they ran with, as long as it can be read."))
    if request.GET.get("download") == "1":
        name = f"{record.object_name}-record.json"
        note_export_of(request, record.id, name)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return JsonResponse(record_json(ran), json_dumps_params={"indent": 2}, headers=headers)
    run = ran.execution.run
    line = read_run(run.job_id, run.number, timezone.now()) if run else None
    earlier = JobRun.objects.filter(job=record.run.job_id, number__lt=record.run.number).order_by("-number")
    context = {
        "record": record,
        "facts": (asked_facts(line) if line else {}) | launch_facts(ran),
        "is_owner": is_owner,
        # To compare with; a deleted job has no page to compare on.
        "earlier": earlier.values_list("number", flat=True).first() if record.run.job_id else None,
        "deprecated": run_records.deprecated_since(ran),
    }
    return render(request, "jobs/execution_record.html", context)


@require_safe
async def execution_results(request: HttpRequest, id: str) -> HttpResponse:
    viewer, record = await seen(request, id)
    if record.files is None or not record.files.results_files:
        raise Http404(_("This execution has no results."))
    if not person(viewer, record).contributes:
        raise PermissionDenied(_("Only the owner and contributors of the project see its files."))
    return await _results(request, record)


@sync_to_async
def _results(request: HttpRequest, record: ExecutionRecord) -> HttpResponse:
    context: dict[str, Any] = {"record": record}
    try:
        context["results"] = run_records.read_results(record.id)
    except run_records.ResultsUnreadable as error:
        context["problem"] = str(error)
    return render(request, "jobs/execution_results.html", context, status=503 if "problem" in context else 200)


@require_safe
async def execution_metrics(request: HttpRequest, id: str) -> HttpResponse:
    """Return the charts' values as JSON, with `?table=1` as rows of a table, or with `?download=1` as a file."""
    viewer, record = await seen(request, id)
    if not person(viewer, record).may_read:
        raise PermissionDenied(left_sentence(record))
    metrics = await sync_to_async(run_records.read_metrics)(id)
    if request.GET.get("table") == "1":
        context = {"record": record, "metrics": metrics}
        return await sync_to_async(render)(request, "jobs/fragments/run_metrics_rows.html", context)
    if request.GET.get("download") == "1":
        name = f"{record.object_name}-metrics.json"
        await sync_to_async(note_export_of)(request, id, name)
        points = {
            each.name: [{"step": step, "value": value} for step, value in each.points] for each in metrics.metrics
        }
        return JsonResponse(points, headers={"Content-Disposition": f'attachment; filename="{name}"'})
    return JsonResponse(charts({record.name: metrics.metrics}))


@require_safe
def job_metrics(request: HttpRequest, id: str) -> HttpResponse:
    """Return the values of charts as JSON, with a line for each of the runs that are asked for, or for the first ones of a sweep."""
    seen_job(request, id)
    view = JOB.view(request.GET)
    if view.sweep:
        numbers, name = run_records.leading_runs(id, view.sweep, view.metric, view.order)
    else:
        numbers, name = list(filter(None, map(typed_number, request.GET.getlist("run")))), view.metric
    runs = run_records.metrics_of_runs(id, numbers[:MOST_RUNS], name)
    return JsonResponse(charts({_("Run {number}", number=number): metrics for number, metrics in runs.items()}))
