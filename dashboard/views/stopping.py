"""Stopping one execution, or all that were selected in a list, each after one confirmation that says what it means."""

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.pages.execution import person
from dashboard.stoppable import stoppable
from dashboard.viewmodels.stopping import consequences
from dashboard.views.executions import current_viewer, seen
from grid.launch.request import request_stop
from grid.models import Execution
from grid.runtime import get_runtime
from grid.wording import plural

MOST = 500  # executions in one request; a page of the list has 200


@require_http_methods(["GET", "HEAD", "POST"])
async def execution_stop(request: HttpRequest, id: str) -> HttpResponse:
    """Stop the execution, after a confirmation page that works without a script. Stopping it twice changes nothing."""
    viewer, record = await seen(request, id)
    who = person(viewer, record)
    if not who.may_stop:
        raise PermissionDenied("Only its owner, the project's owner, operators and admins can stop an execution.")
    if request.method == "POST":
        await _stop([id], viewer.username)
        messages.info(request, f"{record.name} is stopping.")
        return redirect("execution", id=id)
    context = {"record": record, "person": who, "consequences": consequences(record, who)}
    return await sync_to_async(render)(request, "dashboard/execution_stop.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
async def executions_stop(request: HttpRequest) -> HttpResponse:
    """Stop the executions with the ids `id`, after a confirmation page that names them. What the viewer may not see is left out without a
    word; what the viewer may not stop, or what has ended, is named and left alone."""
    viewer = await current_viewer(request)
    asked = (request.POST if request.method == "POST" else request.GET).getlist("id")[:MOST]
    lines = await sync_to_async(stoppable)(viewer, asked)
    stopped = [line for line in lines if line.can_be_stopped]
    if request.method == "POST":
        await _stop([line.id for line in stopped], viewer.username)
        words = f"{plural(len(stopped), 'execution')} {'is' if len(stopped) == 1 else 'are'} stopping."
        messages.info(
            request, words if stopped else "Nothing was stopped: all of them have ended, or you may not stop them."
        )
        return redirect("executions")
    context = {"lines": stopped, "others": [line for line in lines if not line.can_be_stopped]}
    return await sync_to_async(render)(request, "dashboard/executions_stop.html", context)


async def _stop(ids: list[str], username: str) -> None:
    await sync_to_async(_request_stops)(ids, username)
    get_runtime().executions.hint()


def _request_stops(ids: list[str], username: str) -> None:
    for execution in Execution.objects.filter(pk__in=ids).order_by("requested_at", "pk"):
        request_stop(execution, by=username, now=timezone.now())
