"""The forms of schedules: new, edited, paused, resumed and deleted. Each works without a script."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.jobs.forms.jobs import ScheduleForm, zone_names
from dashboard.jobs.job_records import read_schedule
from dashboard.jobs.viewmodels.jobs import JobRecord, ScheduleLine, schedule_times
from dashboard.jobs.views.jobs import managed
from dashboard.shell.forms.fields import add_problems
from grid.audit.entries import write_entry
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.jobs import schedules as rules
from grid.jobs.schedules import ScheduleSettings
from grid.models import Job, Schedule

_FORM_METHODS = ["GET", "HEAD", "POST"]


@require_http_methods(_FORM_METHODS)
def schedule_new(request: HttpRequest, id: str) -> HttpResponse:
    return _form(request, managed(request, id), None)


@require_http_methods(_FORM_METHODS)
def schedule_edit(request: HttpRequest, id: str, number: int) -> HttpResponse:
    return _form(request, *_managed_line(request, id, number))


@require_POST
def schedule_check(request: HttpRequest, id: str) -> HttpResponse:
    """Return what the typed schedule means, as a fragment."""
    managed(request, id)
    return render(request, "jobs/fragments/schedule_times.html", {"meaning": _meaning(request.POST)})


@require_POST
def schedule_pause(request: HttpRequest, id: str, number: int) -> HttpResponse:
    """Pause a schedule, or resume it when that is asked for. Doing it twice changes nothing."""
    _unused, line = _managed_line(request, id, number)
    by, now = request.user.get_username(), timezone.now()
    try:
        with transaction.atomic():
            if "resume" in request.POST:
                rules.resume(number, by=by, now=now)
                if line.paused:
                    _write(request, id, _paused(line), _words(line))
            else:
                rules.pause(number, by=by, now=now)
                if not line.paused:
                    _write(request, id, _words(line), _paused(line))
    except Rejected as refused:
        for problem in refused.problems:
            messages.error(request, _("The schedule was not resumed: {reason}", reason=problem.message))
    return _to_schedules(id)


@require_http_methods(_FORM_METHODS)
def schedule_delete(request: HttpRequest, id: str, number: int) -> HttpResponse:
    """Delete a schedule after a confirmation. Deleting it twice changes nothing."""
    record = managed(request, id)
    line = read_schedule(id, number, timezone.now())
    if line is None:
        return _to_schedules(id)
    if request.method == "POST":
        with transaction.atomic():
            rules.delete(number, by=request.user.get_username(), now=timezone.now())
            _write(request, id, _words(line), "")
        messages.info(request, _("The schedule was deleted."))
        return _to_schedules(id)
    return render(request, "jobs/schedule_delete.html", {"record": record, "schedule": line})


def _paused(line: ScheduleLine) -> str:
    return _("{schedule}, paused", schedule=_words(line))


def _words(schedule: ScheduleLine | Schedule) -> str:
    values = {name: getattr(schedule, name) for name in ScheduleSettings.__struct_fields__}
    return _("{cron} {time_zone} (overlap: {overlap}, missed: {missed})", **values)


def _write(request: HttpRequest, job_id: str, before: str, after: str) -> None:
    if before != after:
        write_entry(request.user.get_username(), Job.objects.get(pk=job_id), {"schedule": [before, after]})


def _managed_line(request: HttpRequest, job_id: str, number: int) -> tuple[JobRecord, ScheduleLine]:
    record, line = managed(request, job_id), read_schedule(job_id, number, timezone.now())
    if line is None:
        raise Http404(_("This schedule was deleted."))
    return record, line


def _form(request: HttpRequest, record: JobRecord, line: ScheduleLine | None) -> HttpResponse:
    names = ScheduleSettings.__struct_fields__
    initial = {name: getattr(line, name) for name in names} if line else {"time_zone": settings.TIME_ZONE}
    data = request.POST if request.method == "POST" else None
    form = ScheduleForm(data, initial=initial, takes_browser_zone=line is None)
    status, is_check = 200, "check" in request.POST
    if form.is_bound and not is_check:
        status = 422
        if form.is_valid():
            try:
                messages.info(request, _saved(request, record.id, line, form.settings()))
                return _to_schedules(record.id)
            except Rejected as refused:
                add_problems(form, refused.problems)
    values = {name: form[name].value() for name in ("cron", "time_zone")}
    context = {
        "record": record,
        "form": form,
        "is_new": line is None,
        # What is wrong is at its field already.
        "meaning": None if status != 200 or (not values["cron"] and not is_check) else _meaning(values),
        "zones": zone_names(),
    }
    return render(request, "jobs/schedule_form.html", context, status=status)


def _saved(request: HttpRequest, job_id: str, line: ScheduleLine | None, typed: ScheduleSettings) -> str:
    """Store the schedule, and return a sentence about it. Raise Rejected with all problems."""
    now = timezone.now()
    with transaction.atomic():
        schedule = rules.edit(line.id, typed, now=now) if line else rules.create(job_id, typed, now=now)
        _write(request, job_id, _words(line) if line else "", _words(schedule))
    if line is None:
        return _("The schedule was saved.")
    paused, followed = _("Saved. The schedule is still paused."), _("Saved. The next runs follow the new schedule.")
    return paused if schedule.paused_at else followed


def _meaning(typed: Any) -> object:
    return schedule_times(typed.get("cron") or "", typed.get("time_zone") or "", timezone.now())


def _to_schedules(job_id: str) -> HttpResponse:
    return redirect(f"{reverse('job', args=[job_id])}#schedules")
