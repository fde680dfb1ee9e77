"""Sharing a running app, or a port of a workspace for a time, with members of its project whom the owner chooses by name."""

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.views.executions import seen
from dashboard.sharing.forms import PortShareForm, ShareForm
from dashboard.shell.access import may_contribute, user_of
from dashboard.shell.forms.fields import add_problems
from dashboard.workspaces.views.workspaces import managed
from grid.audit.entries import differences, write_entry
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import Execution, PortShare, State
from grid.runtime import get_runtime
from grid.sharing.sharing import members_to_share_with, share, share_port, shared_ports, unshare_port


@require_http_methods(["GET", "HEAD", "POST"])
async def execution_share(request: HttpRequest, id: str) -> HttpResponse:
    """Show who may open the app, and store the owner's choice."""
    viewer, record = await seen(request, id)
    who = person(viewer, record)
    if record.kind != "app":
        raise Http404(_("Only an app can be shared."))
    if not who.may_share:
        raise PermissionDenied(_("Only its owner, as a contributor of its project, can share an app."))
    answer = await _share(request, record)
    if request.method == "POST":
        get_runtime().executions.hint()
    return answer


@sync_to_async
def _share(request: HttpRequest, record: ExecutionRecord) -> HttpResponse:
    offered = members_to_share_with(Execution.objects.get(pk=record.id))
    data = request.POST if request.method == "POST" else None
    form = ShareForm(data, offered=offered, initial={"members": list(record.shared_with)})
    if form.is_bound and form.is_valid():
        try:
            by, chosen = request.user.get_username(), [user.get_username() for user in form.cleaned_data["members"]]
            before, after = ({"shared with": sorted(names)} for names in (record.shared_with.values(), chosen))
            with transaction.atomic():
                share(record.id, form.cleaned_data["members"], by=by, now=timezone.now())
                if changes := differences(before, after):
                    write_entry(by, Execution.objects.get(pk=record.id), changes)
        except Rejected as refused:
            add_problems(form, refused.problems)
        else:
            sentence = _("Only you can open {name} now.", name=record.name)
            if chosen:
                sentence = _("{name} can be opened by you and {names}.", name=record.name, names=", ".join(chosen))
            messages.success(request, sentence)
            return redirect("execution", id=record.id)
    context = {"record": record, "form": form, "offered": offered}
    return render(request, "sharing/execution_share.html", context, status=422 if form.is_bound else 200)


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
            add_problems(form, refused.problems)
        else:
            names = ", ".join(user.get_username() for user in chosen["members"])
            sentence = _(
                "{name} is shared with {names}. They find it on their home page.", name=share.name, names=names
            )
            messages.success(request, sentence)
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
