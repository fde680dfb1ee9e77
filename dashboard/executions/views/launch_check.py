"""The confirmation of a launch by the cluster, asked for while the form is filled."""

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from dashboard.executions.launch_facts import check_of, pool_states
from dashboard.executions.views.launch import posted_form
from grid.diagnosis.launchfit import Pools
from grid.runtime import get_runtime


@require_POST
async def launch_check(request: HttpRequest) -> HttpResponse:
    """Ask for a dry run of the posted form, unless it was asked for a moment ago, and return what is known as a fragment."""
    answer: HttpResponse = await sync_to_async(_check)(request, await pool_states(get_runtime()))
    return answer


def _check(request: HttpRequest, pools: Pools | None) -> HttpResponse:
    form = posted_form(request, pools)
    check = check_of(form, is_awaited="awaited" in request.POST)
    return render(request, "executions/fragments/fit_check.html", {"check": check})
