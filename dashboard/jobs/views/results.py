"""The files that a run has left in its results folder, for the owner and contributors of its project."""

from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.views.executions import seen
from dashboard.jobs.results_records import ResultsUnreadable, read_results
from grid.core.translation import gettext as _


@require_safe
async def execution_results(request: HttpRequest, id: str) -> HttpResponse:
    viewer, record = await seen(request, id)
    if record.files is None or not record.files.has_results:
        raise Http404(_("This execution has no results."))
    if not person(viewer, record).contributes:
        raise PermissionDenied(_("Only the owner and contributors of the project see its files."))
    answer: HttpResponse = await sync_to_async(_page)(request, record)
    return answer


def _page(request: HttpRequest, record: ExecutionRecord) -> HttpResponse:
    context: dict[str, Any] = {"record": record}
    try:
        context["results"] = read_results(record.id)
    except ResultsUnreadable as error:
        context["problem"] = str(error)
    return render(request, "jobs/execution_results.html", context, status=503 if "problem" in context else 200)
