"""Keeping an execution longer than a rule would."""

from datetime import datetime

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard.executions.pages.execution import person
from dashboard.executions.views.executions import seen
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import Execution, User
from grid.runtime import get_runtime
from grid.workspaces.shutdown.extend import extend_lifetime


@require_POST
async def execution_keep(request: HttpRequest, id: str) -> HttpResponse:
    """Keep the execution beyond the announced stop that the form names; twice for the same announcement extends it once."""
    viewer, record = await seen(request, id)
    if not person(viewer, record).may_stop:
        raise PermissionDenied(
            _("Only its owner, the project's owner, operators and admins can keep an execution longer.")
        )
    stops_at = _moment(str(request.POST.get("stops_at", "")))
    if stops_at is None:
        messages.error(request, _("That stop was withdrawn; see what the page says now."))
        return redirect("execution", id=id)
    try:
        until = await sync_to_async(_keep)(id, stops_at, viewer.id)
        messages.success(request, _("{name} is kept until {until:%H:%M} UTC.", name=record.name, until=until))
        get_runtime().executions.hint()
    except Rejected as refused:
        messages.info(request, refused.sentences)
    return redirect("execution", id=id)


def _keep(id: str, stops_at: datetime, user_id: int) -> datetime:
    by = User.objects.get(pk=user_id)
    return extend_lifetime(Execution.objects.get(pk=id), stops_at=stops_at, by=by, now=timezone.now())


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
