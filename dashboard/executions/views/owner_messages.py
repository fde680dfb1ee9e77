"""Writing to the owners of the executions that were selected in a list, after one page that names them."""

from dataclasses import replace

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.executions.stoppable import stoppable
from dashboard.executions.viewmodels.stopping import WRITE
from dashboard.executions.views.executions import current_viewer
from dashboard.executions.views.stopping import ask, asked_ids
from dashboard.shell.access import may_operate
from grid.core.translation import gettext as _
from grid.core.wording import one_line, plural
from grid.models import User
from grid.notifications.owner_messages import MESSAGE_LONGEST, send_message


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
        user = await request.auser()
        assert isinstance(user, User)
        owners = await sync_to_async(send_message)(ids, text, by=user, now=timezone.now())
        sent = _("The message is sent to {owners}.") if owners else _("This message was sent a moment ago.")
        messages.info(request, sent.format(owners=plural(owners, "owner", "owners")))
        return redirect("executions")
    if request.method == "POST" and ids:
        messages.error(request, _("Write a text of at most {count} characters.", count=MESSAGE_LONGEST))
    fields = {"longest_reason": MESSAGE_LONGEST, "reason_label": _("Text, which each owner reads"), "reason": text}
    return await ask(request, WRITE, lines, back="executions", **fields)
