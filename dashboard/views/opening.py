"""The Open button: hands the owner over to the workspaces' origin."""

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseRedirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard.proxy.app import OPEN_PATH
from dashboard.proxy.grants import issue_ticket
from grid.models import Execution


@require_POST
def open_execution(request: HttpRequest, id: str) -> HttpResponseRedirect:
    """The owner goes to `/w/<id>/`; everybody else gets one 403, whether the execution exists or not."""
    execution = Execution.objects.filter(pk=id, owner=request.user.pk).first()
    if execution is None or execution.is_final:
        raise PermissionDenied("Only its owner can open an execution, and only while it runs.")
    assert isinstance(request.user, User)
    ticket = issue_ticket(
        execution, user=request.user, session_key=request.session.session_key or "", now=timezone.now()
    )
    answer = HttpResponseRedirect(f"{settings.WORKSPACE_ORIGIN}/w/{execution.pk}/{OPEN_PATH}?ticket={ticket}")
    answer["Referrer-Policy"] = "no-referrer"
    answer["Cache-Control"] = "no-store"
    return answer
