"""The pages of jobs: the list, a job with its runs, and two runs compared. `job_changes` has the forms."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.executions.forms import new_token
from dashboard.jobs.job_records import read_job, read_run, read_sweep
from dashboard.jobs.pages.job import JOB, JOBS_LIST, typed_number
from dashboard.jobs.run_records import ResultsUnreadable, compare_results, launched_with, leading_runs, metrics_of_runs
from dashboard.jobs.schedule_records import schedules_of
from dashboard.jobs.viewmodels.jobs import JobRecord, compared
from dashboard.jobs.viewmodels.runs import chart_titles
from dashboard.shell.access import may_contribute, may_manage_job, may_see_job
from dashboard.shell.views.live import live_page
from grid.core.translation import gettext as _

_NOT_THERE = _("This job does not exist, or you have no access to it.")


@require_safe
async def jobs(request: HttpRequest) -> HttpResponse:
    return await live_page(request, JOBS_LIST, "jobs/jobs.html", context={"token": new_token()})


@require_safe
async def job(request: HttpRequest, id: str) -> HttpResponse:
    context = await sync_to_async(_job)(request, id)
    query = request.GET.copy()
    query["id"] = id
    return await live_page(request, JOB, "jobs/job.html", query=query, context=context)


def _job(request: HttpRequest, id: str) -> dict[str, Any]:
    """Return what the page has that does not change while it is open. Raise Http404 when the job is not there for this user."""
    record, view = seen(request, id), JOB.view(request.GET)
    sweep = read_sweep(id, view.sweep) if view.sweep else None
    measured = leading_runs(id, view.sweep, view.metric, view.order)[1] if sweep else ""
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
    record, now = seen(request, id), timezone.now()
    first, second = (read_run(id, number_in(request, name), now) for name in ("a", "b"))
    if first is None or second is None:
        messages.info(request, _("Choose two runs to compare, one in each column."))
        return redirect("job", id=id)
    facts = compared(first, second, launched_with(first.execution_id), launched_with(second.execution_id))
    context = {
        "record": record,
        "runs": (first, second),
        "different": [fact for fact in facts if fact.differs],
        "alike": [fact for fact in facts if not fact.differs],
        "titles": chart_titles(metrics_of_runs(id, (first.number, second.number)).values()),
        "metrics_query": f"?run={first.number}&run={second.number}",
        "is_final": bool(first.outcome and second.outcome),
    }
    if may_contribute(request.user, record.project_roles):
        try:
            context["comparison"] = compare_results(first.execution_id, second.execution_id)
        except ResultsUnreadable as error:
            context["results_problem"] = str(error)
    return render(request, "jobs/job_compare.html", context)


def seen(request: HttpRequest, job_id: str) -> JobRecord:
    """Return the job. Raise Http404 when it is not there for this user."""
    record = read_job(job_id)
    if record is None or not may_see_job(request.user, record):
        raise Http404(_NOT_THERE)
    return record


def managed(request: HttpRequest, job_id: str) -> JobRecord:
    """Return the user's own job. Raise PermissionDenied for somebody else's."""
    record = seen(request, job_id)
    if not may_manage_job(request.user, record):
        raise PermissionDenied(_("Only its owner can run, stop, edit or delete a job."))
    return record


def number_in(request: HttpRequest, name: str) -> int:
    """Return the number that the address has under this name; 0 when there is none or it is invalid."""
    return typed_number(request.GET.get(name, "") or request.POST.get(name, ""))
