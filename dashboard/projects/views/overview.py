"""The home of a project: what of it runs, how its last runs ended, who its members are, and what it has spent."""

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.administration.views import EditedKind
from dashboard.jobs.job_records import latest_runs_of
from dashboard.projects.project_records import active_in, members_of
from dashboard.projects.viewmodels.overview import run_rows, running_executions, spent_words
from dashboard.projects.views.frame import frame
from dashboard.projects.views.projects import project_settings
from dashboard.shell.access import seen_project, user_of
from dashboard.usage.usage_records import budget_of_project, costs_by_day

ACTIVE_SHOWN = 8
RUNS_SHOWN = 8


@require_http_methods(["GET", "HEAD", "POST"])
async def project(request: HttpRequest, catalogue: EditedKind, id: str) -> HttpResponse:
    """Show the overview. What is posted here is the form of the settings, which was on this page before it had one of its own."""
    if request.method == "POST":
        return await project_settings(request, catalogue, id)
    return await sync_to_async(_overview)(request, id)


def _overview(request: HttpRequest, id: str) -> HttpResponse:
    project, roles = seen_project(request, id)
    now, reader_id = timezone.now(), user_of(request).pk
    active = active_in(id, ACTIVE_SHOWN + 1)
    budget = budget_of_project(project, now)
    context = frame(request, project, roles, "project") | {
        "now": now,
        "active": running_executions(active[:ACTIVE_SHOWN], reader_id=reader_id),
        "has_more_active": len(active) > ACTIVE_SHOWN,
        "runs": run_rows(latest_runs_of(id, RUNS_SHOWN, now, reader_id), now),
        "members": members_of(project),
        "budget": budget,
        "spent": spent_words(costs_by_day(id, now)) if budget is None else "",
    }
    return render(request, "projects/overview.html", context | {"is_overview": True})
