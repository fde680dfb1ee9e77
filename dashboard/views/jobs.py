"""The pages of jobs: the list, a job with its runs, and two runs compared. `job_changes` has the forms."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.access import may_manage_job, may_see_job
from dashboard.ids import id_in
from dashboard.job_records import jobs_of, launched_with, read_job, read_run, read_sweep, runs_of
from dashboard.schedule_records import schedules_of
from dashboard.viewmodels.jobs import JobRecord, compared

_NOT_THERE = "This job does not exist, or you have no access to it."
_LARGEST = 2**31 - 1  # that both databases take as a number


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    page = jobs_of(request.user.pk or 0, id_in(request.GET, "before"), now)
    return render(request, "dashboard/jobs.html", {"page": page, "now": now})


@require_safe
def job(request: HttpRequest, id: str) -> HttpResponse:
    record, now = seen(request, id), timezone.now()
    sweep = request.GET.get("sweep", "")
    sweep = sweep if sweep.isascii() and sweep.isdigit() else ""
    chosen = read_sweep(id, sweep) if sweep else None
    runs = runs_of(id, sweep=sweep, before=number_in(request, "before"), now=now)
    context = {
        "record": record,
        "is_mine": may_manage_job(request.user, record),
        "runs": runs,
        "sweep": chosen,
        "schedules": [] if chosen else schedules_of(id, now),
        "now": now,
    }
    return render(request, "dashboard/job.html", context)


@require_safe
def job_compare(request: HttpRequest, id: str) -> HttpResponse:
    """Show what differs between the records of two runs, then what does not."""
    record, now = seen(request, id), timezone.now()
    one, other = (read_run(id, number_in(request, name), now) for name in ("a", "b"))
    if one is None or other is None:
        messages.info(request, "Choose two runs to compare, one in each column.")
        return redirect("job", id=id)
    facts = compared(one, other, launched_with(one), launched_with(other))
    context = {
        "record": record,
        "one": one,
        "other": other,
        "runs": (one, other),
        "different": [fact for fact in facts if fact.differs],
        "alike": [fact for fact in facts if not fact.differs],
    }
    return render(request, "dashboard/job_compare.html", context)


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
        raise PermissionDenied("Only its owner can run, stop, edit or delete a job.")
    return record


def number_in(request: HttpRequest, name: str) -> int:
    """Return the number that the address has under this name; 0 when there is none or it is invalid."""
    text = request.GET.get(name, "") or request.POST.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= _LARGEST else 0
