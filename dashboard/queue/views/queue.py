"""The queue, and what operators decide about it: hold, release, move, cancel, take over; each on a page that says what it means."""

from collections.abc import Mapping
from datetime import datetime

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.executions.records import in_queue
from dashboard.executions.viewmodels.stopping import QUEUE_QUESTIONS, Decision, done_words
from dashboard.executions.views.executions import current_viewer, seen
from dashboard.executions.views.stopping import ask, asked_ids, stop
from dashboard.queue.pages.queue import QUEUE
from dashboard.shell.access import Permission, may_operate, requires, user_of
from dashboard.shell.views.live import live_page
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.core.wording import moment_words, plural
from grid.models import Execution, State
from grid.queue import ordering, takeover
from grid.runtime import get_runtime

_OTHERS = 200  # that are offered to put it before
_MOVES: Mapping[str, ordering.Move] = {"front": "front", "back": "back", "turn": "turn"}  # else before another one
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
    problem, executions = "", get_runtime().executions
    if request.method == "POST":
        try:
            done = await sync_to_async(_order)(request, id)
        except Rejected as rejected:
            problem = rejected.sentences
        else:
            executions.hint()
            messages.success(request, _DONE[done].format(name=record.name))
            return redirect("queue")
    row = executions.get(id)
    waiting = [row for row in executions.values() if row.state == State.QUEUED and not row.attached_to]
    others = [row for row in waiting if row.id != id and row.reason != "held"]
    others.sort(key=lambda row: (row.requested_at, row.id))
    context = {
        "record": record,
        "problem": problem,
        "is_waiting": await sync_to_async(Execution.objects.queued().filter(pk=id).exists)(),
        "waits_for": record.words(to_owner=False),
        "held": row.words(to_owner=False) if row is not None and row.reason == "held" else "",
        "others": [(row.id, f"{row.title or row.object_name} ({row.owner_username})") for row in others[:_OTHERS]],
        "longest": ordering.REASON_LONGEST,
    }
    return await sync_to_async(render)(request, "queue/queue_order.html", context, status=422 if problem else 200)


def _order(request: HttpRequest, id: str) -> str:
    do, by, now = request.POST.get("do", ""), user_of(request), timezone.now()
    if do == "hold":
        ordering.hold(id, by=by, reason=request.POST.get("reason", ""), now=now)
    elif do == "release":
        ordering.release(id, by=by, now=now)
    else:
        do = _MOVES.get(do, "before")
        ordering.move(id, do, before=request.POST.get("before", ""), by=by, now=now)
    return do


@require_http_methods(["GET", "HEAD", "POST"])
async def queue_several(request: HttpRequest, do: Decision) -> HttpResponse:
    """Do what `do` says to the executions with the ids `id`; what the viewer may not see is left out. Only operators hold and release."""
    viewer = await current_viewer(request)
    if do != "cancel" and not may_operate(viewer):
        raise PermissionDenied(_("Only operators and admins can change the order of the queue."))
    lines = await sync_to_async(in_queue)(viewer, asked_ids(request), do)
    if request.method != "POST":
        longest = ordering.REASON_LONGEST if do == "hold" else 0
        return await ask(request, QUEUE_QUESTIONS[do], lines, back="queue", longest_reason=longest)
    ids = [line.id for line in lines if line.is_possible]
    if do == "cancel":
        await stop(ids, viewer.username)
        done = len(ids)
    else:
        done = await sync_to_async(_order_several)(request, do, ids)
        get_runtime().executions.hint()
    messages.info(request, done_words(QUEUE_QUESTIONS[do], done, len(lines) - done))
    return redirect("queue")


def _order_several(request: HttpRequest, do: Decision, ids: list[str]) -> int:
    """Hold or release each, and return how many were; one that has left the queue meanwhile is left alone."""
    by, now = user_of(request), timezone.now()
    if do == "hold":
        return ordering.hold_several(ids, by=by, reason=request.POST.get("reason", ""), now=now)
    return ordering.release_several(ids, by=by, now=now)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Permission.OPERATE, _("Only operators and admins can take over the queue."))
def queue_takeover(request: HttpRequest) -> HttpResponse:
    problem, now = "", timezone.now()
    if request.method == "POST":
        try:
            messages.success(request, _take_over(request, now))
            return redirect("queue")
        except Rejected as rejected:
            problem = rejected.sentences
    current = takeover.current_takeover(now)
    words = {
        minutes: plural(minutes // 60, "hour", "hours") if minutes >= 60 else plural(minutes, "minute", "minutes")
        for minutes in takeover.MINUTES
    }
    context = {
        "problem": problem,
        "takeover": takeover.takeover_sentence(current) if current is not None else "",
        "choices": list(words.items()),
        "minutes": request.POST.get("minutes", "60"),
        "reason": request.POST.get("reason", "")[: takeover.REASON_LONGEST],
        "longest": takeover.REASON_LONGEST,
    }
    return render(request, "queue/queue_takeover.html", context, status=422 if problem else 200)


def _take_over(request: HttpRequest, now: datetime) -> str:
    """Take over the queue or give it back, and return what was done. Raise Rejected."""
    if request.POST.get("do") == "back":
        takeover.give_back(by=user_of(request), now=now)
        return _("The queue goes by turn again.")
    typed, reason = request.POST.get("minutes", ""), request.POST.get("reason", "")
    minutes = int(typed) if typed in map(str, takeover.MINUTES) else 0
    until_at = moment_words(takeover.take_over(by=user_of(request), minutes=minutes, reason=reason, now=now).until_at)
    return _("You decide what starts, until {until_at}. Put executions in front to let them start.", until_at=until_at)
