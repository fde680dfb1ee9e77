"""The queue, and what operators decide about one execution in it: hold, release, move; each after one page that says what it means."""

from collections.abc import Mapping

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.views.executions import seen
from dashboard.queue.pages.queue import QUEUE
from dashboard.shell.access import may_operate
from dashboard.shell.views.live import live_page
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import Execution, State, User
from grid.queue import ordering
from grid.runtime import get_runtime

_OTHERS = 200  # that are offered to put it before
_MOVES: Mapping[str, ordering.Move] = {"front": "front", "back": "back", "turn": "turn"}
_DONE = {
    "hold": _("{name} is held: it does not start until an operator releases it."),
    "release": _("{name} was released and waits for its turn."),
    "front": _("{name} is at the front of the queue."),
    "back": _("{name} is at the back of the queue."),
    "before": _("{name} was moved in the queue."),
    "turn": _("{name} waits for its turn again."),
}


@require_safe
async def queue(request: HttpRequest) -> HttpResponse:
    return await live_page(request, QUEUE, "queue/queue.html")


@require_http_methods(["GET", "HEAD", "POST"])
async def queue_order(request: HttpRequest, id: str) -> HttpResponse:
    """Show what an operator may do with a waiting execution, and do it: a page of its own, which works without a script."""
    viewer, record = await seen(request, id)
    if not may_operate(viewer):
        raise PermissionDenied(_("Only operators and admins can change the order of the queue."))
    problem = ""
    if request.method == "POST":
        user = await request.auser()
        assert isinstance(user, User)
        try:
            done = await sync_to_async(_decide)(request, id, user)
        except Rejected as rejected:
            problem = rejected.sentences
        else:
            get_runtime().executions.hint()
            messages.success(request, _DONE[done].format(name=record.name))
            return redirect("queue")
    return await _page(request, record, problem)


async def _page(request: HttpRequest, record: ExecutionRecord, problem: str) -> HttpResponse:
    row = get_runtime().executions.get(record.id)
    waiting = sorted(
        (row for row in get_runtime().executions.values() if row.state == State.QUEUED and not row.attached_to),
        key=lambda row: (row.requested_at, row.id),
    )
    others = [row for row in waiting if row.id != record.id and row.reason != "held"]
    context = {
        "record": record,
        "problem": problem,
        "is_waiting": await sync_to_async(Execution.objects.queued().filter(pk=record.id).exists)(),
        "waits_for": record.words(to_owner=False),
        "held": row.words(to_owner=False) if row is not None and row.reason == "held" else "",
        "others": [(row.id, f"{row.title or row.object_name} ({row.owner_username})") for row in others[:_OTHERS]],
        "longest": ordering.REASON_LONGEST,
    }
    status = 422 if problem else 200
    return await sync_to_async(render)(request, "queue/queue_order.html", context, status=status)


def _decide(request: HttpRequest, id: str, user: User) -> str:
    do, now = request.POST.get("do", ""), timezone.now()
    if do == "hold":
        ordering.hold(id, by=user, reason=request.POST.get("reason", ""), now=now)
    elif do == "release":
        ordering.release(id, by=user, now=now)
    elif (to := _MOVES.get(do)) is not None:
        ordering.move(id, to, by=user, now=now)
    else:
        ordering.move(id, "before", before=request.POST.get("before", ""), by=user, now=now)
        return "before"
    return do
