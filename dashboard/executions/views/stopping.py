"""Stopping one execution or several, after a page that says what it means; writing to owners of several; and keeping one longer."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.executions.pages.execution import person
from dashboard.executions.records import jobs_with_runs, stoppable
from dashboard.executions.viewmodels.stopping import STOP, STOP_RUNS, WRITE, BulkQuestion, StopLine, consequences
from dashboard.executions.views.executions import current_viewer, seen
from dashboard.shell.access import may_operate, user_of
from grid.audit.entries import write_entry
from grid.core.errors import Rejected
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import one_line, plural
from grid.executions.stopping import request_stop
from grid.jobs import jobs as rules
from grid.models import AuditEntry, Execution, Job, User
from grid.notifications.outbox import MESSAGE_LONGEST, send_message
from grid.runtime import get_runtime
from grid.workspaces.shutdown.records import extend_lifetime

MOST = 500  # executions in one request; a page of the list has 200


@require_http_methods(["GET", "HEAD", "POST"])
async def execution_stop(request: HttpRequest, id: str) -> HttpResponse:
    """Stop the execution, after a confirmation page that works without a script. Stopping it twice changes nothing."""
    viewer, record = await seen(request, id)
    who = person(viewer, record)
    if not who.may_stop:
        raise PermissionDenied(_("Only its owner, the project's owner, operators and admins can stop an execution."))
    if request.method == "POST":
        await stop([id], viewer.username)
        messages.info(request, _("{name} is stopping.", name=record.name))
        return redirect("execution", id=id)
    context = {"record": record, "person": who, "consequences": consequences(record, who)}
    return await sync_to_async(render)(request, "executions/execution_stop.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
async def executions_stop(request: HttpRequest) -> HttpResponse:
    """Stop the executions with the ids `id`, after a page that names them and those that stay. What the viewer may not see is left out."""
    viewer = await current_viewer(request)
    lines = await sync_to_async(stoppable)(viewer, asked_ids(request))
    stopped = [line for line in lines if line.is_possible]
    if request.method == "POST":
        await stop([line.id for line in stopped], viewer.username)
        words = _("Nothing was stopped: all of them have ended, or you may not stop them.")
        if stopped:
            words = ngettext("{count:,} execution is stopping.", "{count:,} executions are stopping.", len(stopped))
        messages.info(request, words)
        return redirect("executions")
    return await ask(request, STOP, lines, back="executions")


@require_http_methods(["GET", "HEAD", "POST"])
async def jobs_stop(request: HttpRequest) -> HttpResponse:
    """Stop the runs of the viewer's own jobs with the ids `id`, after a page that names them; other people's are left out."""
    viewer = await current_viewer(request)
    lines = await sync_to_async(jobs_with_runs)(viewer, asked_ids(request))
    if request.method != "POST":
        return await ask(request, STOP_RUNS, lines, back="jobs")
    stopped = [line.id for line in lines if line.is_possible]
    count = await sync_to_async(lambda: sum(stop_runs(id, viewer.username) for id in stopped))()
    runs, jobs = plural(count, "run", "runs"), plural(len(stopped), "job", "jobs")
    words = _("Stop of {runs} of {jobs} requested.", runs=runs, jobs=jobs) if count else _("Nothing was left to stop.")
    messages.info(request, words)
    return redirect("jobs")


def asked_ids(request: HttpRequest) -> list[str]:
    return (request.POST if request.method == "POST" else request.GET).getlist("id")[:MOST]


async def ask(
    request: HttpRequest, question: BulkQuestion, lines: Sequence[StopLine], *, back: str, **context: object
) -> HttpResponse:
    """Show the page that asks before something is done to several; `back` names the page of the list."""
    possible, others = ([line for line in lines if line.is_possible is wanted] for wanted in (True, False))
    context |= {"question": question, "asked": question.headline(len(possible)), "back": back}
    shown = {**context, "lines": possible, "others": others}
    return await sync_to_async(render)(request, "executions/several.html", shown)


@transaction.atomic
def stop_runs(id: str, username: str, *, sweep: str = "", number: int | None = None) -> int:
    """Stop the open runs of a job, of a sweep or one run, with an audit entry, and return how many."""
    now = timezone.now()
    count = rules.stop_runs(id, by=username, now=now, sweep=sweep, number=number)
    if count:
        changes = {"runs": [plural(count, "open run", "open runs"), _("stop requested")]}
        write_entry(username, Job.objects.get(pk=id), changes, action=AuditEntry.Action.STOPPED, at=now)
    return count


async def stop(ids: list[str], username: str) -> None:
    await sync_to_async(_request_stops)(ids, username)
    get_runtime().executions.hint()


def _request_stops(ids: list[str], username: str) -> None:
    for execution in Execution.objects.filter(pk__in=ids).order_by("requested_at", "pk"):
        now = timezone.now()
        with transaction.atomic():
            request_stop(execution, by=username, now=now)
            if execution.stop_requested_at == now:  # nobody had asked before
                write_entry(username, execution, {}, action=AuditEntry.Action.STOPPED, at=now)


@require_POST
async def execution_keep(request: HttpRequest, id: str) -> HttpResponse:
    """Keep the execution beyond the announced stop that the form names; twice for the same announcement extends it once."""
    viewer, record = await seen(request, id)
    if not person(viewer, record).may_stop:
        raise PermissionDenied(
            _("Only its owner, the project's owner, operators and admins can keep an execution longer.")
        )
    try:
        stops_at = datetime.fromisoformat(request.POST.get("stops_at", ""))
    except ValueError:
        stops_at = datetime.min
    if stops_at.tzinfo is None:
        messages.error(request, _("That stop was withdrawn; see what the page says now."))
        return redirect("execution", id=id)
    try:
        until = await _keep(id, stops_at, viewer.id)
        messages.success(request, _("{name} is kept until {until:%H:%M} UTC.", name=record.name, until=until))
        get_runtime().executions.hint()
    except Rejected as refused:
        messages.info(request, refused.sentences)
    return redirect("execution", id=id)


@sync_to_async
def _keep(id: str, stops_at: datetime, user_id: int) -> datetime:
    by = User.objects.get(pk=user_id)
    return extend_lifetime(Execution.objects.get(pk=id), stops_at=stops_at, by=by, now=timezone.now())


@require_http_methods(["GET", "HEAD", "POST"])
async def executions_message(request: HttpRequest) -> HttpResponse:
    """Send a text to the owners of the executions with the ids `id`: operators and admins do. One that has ended is named and left out."""
    viewer = await current_viewer(request)
    if not may_operate(viewer):
        raise PermissionDenied(_("Only operators and admins write to the owners of executions."))
    lines = [replace(line, ends_too="") for line in await sync_to_async(stoppable)(viewer, asked_ids(request))]
    text = one_line(request.POST.get("reason", ""))
    ids = [line.id for line in lines if line.is_possible]
    if request.method == "POST" and ids and 0 < len(text) <= MESSAGE_LONGEST:
        now = timezone.now()
        owners = await sync_to_async(lambda: send_message(ids, text, by=user_of(request), now=now))()
        sent = _("The message is sent to {owners}.") if owners else _("This message was sent a moment ago.")
        messages.info(request, sent.format(owners=plural(owners, "owner", "owners")))
        return redirect("executions")
    if request.method == "POST" and ids:
        messages.error(request, _("Write a text of at most {count} characters.", count=MESSAGE_LONGEST))
    fields = {"longest_reason": MESSAGE_LONGEST, "reason_label": _("Text, which each owner reads"), "reason": text}
    return await ask(request, WRITE, lines, back="executions", **fields)
