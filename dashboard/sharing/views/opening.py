"""The Open button: hands a user who may open an execution over to the execution's own origin.

Three steps make a ticket useful only in the browser that asked for it: the button leads to the execution's origin, which sets an opener
cookie and redirects back here; this origin issues a ticket for that opener; the execution's origin exchanges the ticket.
"""

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponseRedirect
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from dashboard.shell.access import user_of
from grid.audit.entries import write_entry
from grid.core.origins import BEGIN_PATH, OPEN_PATH, is_shared_port
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.executions.front import workspace_origins
from grid.models import AuditEntry, Execution, PortShare
from grid.sharing.grants import issue_ticket
from grid.sharing.opening import may_open, may_open_port

_NOT_OPENED = _(
    "Only its owner can open a workspace or a job's page, only its owner and those with whom it is shared an app, and only its owner and "
    "the project's contributors a cluster's page. "
    "It has to be running, and you have to be in its project."
)
_NOT_SHARED = _(
    "This is not shared with you, or no longer: a shared app can be opened by those whom its owner chose, while they are in the project "
    "and the workspace runs."
)
_DIGEST = Expression(r"[0-9a-f]{64}")


@require_POST
def open_execution(request: HttpRequest, id: str) -> HttpResponseRedirect:
    """Redirect a user who may open the execution, or the shared port, to its origin; everybody else gets 403, whether or not it exists."""
    return _lead(_openable(request, id), BEGIN_PATH)


@require_GET
def continue_opening(request: HttpRequest, id: str) -> HttpResponseRedirect:
    """Issue the ticket and redirect to the execution's origin. A link that lures a user here gains nothing: the ticket works only with
    the opener cookie in that user's own browser."""
    execution = _openable(request, id)
    opener_digest = request.GET.get("opener", "")
    if not _DIGEST.fullmatch(opener_digest):
        raise PermissionDenied(_("Use the Open button of the execution's page."))
    user = user_of(request)
    opened = execution.execution if isinstance(execution, PortShare) else execution
    with transaction.atomic():
        session = {"session_key": request.session.session_key or "", "opener_digest": opener_digest}
        ticket = issue_ticket(execution, user=user, **session, now=timezone.now())
        if opened.owner_id != user.pk:
            port = {"port": ["", execution.port]} if isinstance(execution, PortShare) else {}
            write_entry(user, opened, port, action=AuditEntry.Action.OPENED)
    return _lead(execution, f"{OPEN_PATH}?ticket={ticket}")


def _openable(request: HttpRequest, id: str) -> Execution | PortShare:
    if is_shared_port(id):
        share = PortShare.objects.select_related("execution").filter(pk=id).first()
        if share is None or not may_open_port(request.user.pk or 0, share):
            raise PermissionDenied(_NOT_SHARED)
        return share
    execution = Execution.objects.select_related("project").filter(pk=id).first()
    if execution is None or execution.is_final or not may_open(request.user.pk or 0, execution):
        raise PermissionDenied(_NOT_OPENED)
    return execution


def _lead(place: Execution | PortShare, path: str) -> HttpResponseRedirect:
    answer = HttpResponseRedirect(workspace_origins().address(place.pk) + path)
    answer["Referrer-Policy"] = "no-referrer"
    return answer
