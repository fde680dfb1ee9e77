"""The record of all that an attempt of a run ran with: a page, and a file."""

from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.viewmodels.leaving import left_sentence
from dashboard.executions.views.executions import seen
from dashboard.jobs.job_records import read_run
from dashboard.jobs.ran_with_records import deprecated_since, ran_with
from dashboard.jobs.viewmodels.jobs import asked_facts
from dashboard.jobs.viewmodels.ran_with import launch_facts, record_json
from dashboard.shell.exports import note_export_of
from grid.core.translation import gettext as _
from grid.models import Execution, JobRun


@require_safe
async def execution_record(request: HttpRequest, id: str) -> HttpResponse:
    """Show the record, or with `?download=1` send it as JSON."""
    viewer, record = await seen(request, id)
    who = person(viewer, record)
    if not who.may_read:
        raise PermissionDenied(left_sentence(record))
    answer: HttpResponse = await sync_to_async(_record)(request, record, is_owner=who.is_owner)
    return answer


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
