"""Sharing an app that somebody started in a workspace with members of its project: a port, a name, who, and for how long."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.sharing.forms import PortShareForm
from dashboard.shell.access import may_contribute, user_of
from dashboard.workspaces.views.workspaces import managed
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import Execution, PortShare, State
from grid.sharing.portsharing import share_port, shared_ports, unshare_port
from grid.sharing.sharing import members_to_share_with


@require_http_methods(["GET", "HEAD", "POST"])
def workspace_share(request: HttpRequest, id: str) -> HttpResponse:
    """Show what is shared of the workspace, and the form for more; take what it sends."""
    record, now = managed(request, id), timezone.now()
    if not may_contribute(request.user, record.project_roles):
        raise PermissionDenied(_("Only a contributor of its project can share an app of a workspace."))
    execution = Execution.objects.filter(workspace=id, state=State.RUNNING, stop_requested_at=None).first()
    if execution is None:
        context = {"record": record, "closed": True}
        return render(request, "sharing/workspace_share.html", context, status=422 if request.method == "POST" else 200)
    offered = members_to_share_with(execution)
    data = request.POST if request.method == "POST" else None
    form = PortShareForm(data, offered=offered, own_port=int(execution.spec.get("port") or 0))
    if form.is_bound and form.is_valid():
        chosen = form.cleaned_data
        try:
            share = share_port(execution.pk, **chosen, by=user_of(request), now=now)
        except Rejected as refused:
            for problem in refused.problems:
                form.add_error(problem.path or None, problem.message)
        else:
            names = ", ".join(user.get_username() for user in chosen["members"])
            messages.success(
                request,
                _("{name} is shared with {names}. They find it on their home page.", name=share.name, names=names),
            )
            return redirect("workspace-share", id=id)
    context = {"record": record, "form": form, "offered": offered, "shares": shared_ports(execution, now), "now": now}
    return render(request, "sharing/workspace_share.html", context, status=422 if form.is_bound else 200)


@require_POST
def workspace_unshare(request: HttpRequest, id: str) -> HttpResponse:
    """Take a shared port back, also once the owner does not contribute any more; doing it twice changes nothing."""
    managed(request, id)
    asked = request.POST.get("share", "")
    is_id = asked.isascii() and asked.isalnum()  # PostgreSQL refuses to look for NUL
    share = PortShare.objects.filter(pk=asked, execution__workspace=id).first() if is_id else None
    if share is not None:
        unshare_port(share, by=user_of(request), now=timezone.now())
        messages.success(request, _("{name} is no longer shared. Pages that are open are cut.", name=share.name))
    return redirect("workspace", id=id)
