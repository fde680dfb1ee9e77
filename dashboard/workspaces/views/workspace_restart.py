"""Restarting a workspace in one step, and taking that back while it still stops. Only its owner may."""

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.shell.viewmodels.listing import Confirmation
from dashboard.workspaces.viewmodels.workspaces import WorkspaceRecord
from dashboard.workspaces.views.workspaces import managed
from grid.audit.entries import write_entry
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import AuditEntry, Workspace
from grid.runtime import get_runtime
from grid.workspaces.workspaces import cancel_restart, request_restart


@require_http_methods(["GET", "HEAD", "POST"])
async def workspace_restart(request: HttpRequest, id: str) -> HttpResponse:
    """Restart it, after a question. Asking twice restarts it once."""
    answer: HttpResponse = await sync_to_async(_restart)(request, id)
    if request.method == "POST":
        get_runtime().executions.hint()
    return answer


@require_POST
def restart_cancel(request: HttpRequest, id: str) -> HttpResponse:
    record = managed(request, id)
    with transaction.atomic():
        cancelled = cancel_restart(id)
        if cancelled:
            write_entry(request.user.get_username(), Workspace.objects.get(pk=id), {"restart": [_("asked for"), ""]})
    words = _("{name} will stay stopped.") if cancelled else _("{name} was not waiting to start again.")
    messages.info(request, words.format(name=record.name))
    return redirect("workspace", id=id)


def _restart(request: HttpRequest, id: str) -> HttpResponse:
    record = managed(request, id)
    if request.method != "POST":
        return render(request, "shell/question.html", {"question": _question(record)})
    try:
        by = request.user.get_username()
        with transaction.atomic():
            request_restart(id, by=by, now=timezone.now())
            write_entry(by, Workspace.objects.get(pk=id), {}, action=AuditEntry.Action.RESTARTED)
    except Rejected as refused:
        messages.error(request, refused.sentences)
        return redirect("workspace", id=id)
    messages.info(request, _("{name} is restarting. You may close this page.", name=record.name))
    return redirect("execution", id=record.latest.id) if record.latest else redirect("workspace", id=id)


def _question(record: WorkspaceRecord) -> Confirmation:
    page = reverse("execution", args=[record.latest.id]) if record.latest else reverse("workspace", args=[record.id])
    kept = _("Files in the project {project_name} are kept. What is only in the program’s memory is lost.")
    return Confirmation(
        title=_("Restart {subject}"),
        subject=record.name,
        sentences=(
            _("It is stopped, and launched again with the same settings as soon as its pod is gone."),
            kept.format(project_name=record.project_name),
            _("When no place is free by then, it waits in the queue like any other launch."),
        ),
        action_url=reverse("workspace-restart", args=[record.id]),
        answer=_("Restart it"),
        keep=_("Keep it running"),
        keep_url=page,
    )
