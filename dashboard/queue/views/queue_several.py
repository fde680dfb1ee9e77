"""Holding, releasing or cancelling several executions of the queue, after one page that says what it means."""

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.executions.stoppable import in_queue
from dashboard.executions.viewmodels.stopping import QUEUE_QUESTIONS, Decision, done_words
from dashboard.executions.views.executions import current_viewer
from dashboard.executions.views.stopping import ask, asked_ids, stop
from dashboard.shell.access import may_operate
from grid.core.translation import gettext as _
from grid.models import User
from grid.queue import ordering
from grid.runtime import get_runtime


@require_http_methods(["GET", "HEAD", "POST"])
async def queue_several(request: HttpRequest, do: Decision) -> HttpResponse:
    """Do what `do` says to the executions with the ids `id`. Holding and releasing is the operators'; who may stop an execution may
    cancel it. What the viewer may not see is left out without a word."""
    viewer = await current_viewer(request)
    question = QUEUE_QUESTIONS[do]
    if do != "cancel" and not may_operate(viewer):
        raise PermissionDenied(_("Only operators and admins can change the order of the queue."))
    lines = await sync_to_async(in_queue)(viewer, asked_ids(request), do)
    if request.method != "POST":
        longest = ordering.REASON_LONGEST if do == "hold" else 0
        return await ask(request, question, lines, back="queue", longest_reason=longest)
    ids = [line.id for line in lines if line.is_possible]
    if do == "cancel":
        await stop(ids, viewer.username)
        done = len(ids)
    else:
        user = await request.auser()
        assert isinstance(user, User)
        done = await sync_to_async(_order)(do, ids, user, request.POST.get("reason", ""))
        get_runtime().executions.hint()
    messages.info(request, done_words(question, done, len(lines) - done))
    return redirect("queue")


def _order(do: Decision, ids: list[str], user: User, reason: str) -> int:
    """Hold or release each, and return how many were; one that has left the queue meanwhile is left alone."""
    if do == "hold":
        return ordering.hold_several(ids, by=user, reason=reason, now=timezone.now())
    return ordering.release_several(ids, by=user, now=timezone.now())
