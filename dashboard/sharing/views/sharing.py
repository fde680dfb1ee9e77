"""Sharing a running app with members of its project: its owner chooses them by name, and takes it back at once."""

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.views.executions import seen
from dashboard.sharing.forms import ShareForm
from grid.audit.entries import differences, write_entry
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import Execution
from grid.runtime import get_runtime
from grid.sharing.sharing import members_to_share_with, share


@require_http_methods(["GET", "HEAD", "POST"])
async def execution_share(request: HttpRequest, id: str) -> HttpResponse:
    """Show who may open the app, and store the owner's choice."""
    viewer, record = await seen(request, id)
    who = person(viewer, record)
    if record.kind != "app":
        raise Http404(_("Only an app can be shared."))
    if not who.may_share:
        raise PermissionDenied(_("Only its owner, as a contributor of its project, can share an app."))
    answer: HttpResponse = await sync_to_async(_share)(request, record)
    if request.method == "POST":
        get_runtime().executions.hint()
    return answer


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
            for problem in refused.problems:
                form.add_error(problem.path or None, problem.message)
        else:
            sentence = _("Only you can open {name} now.", name=record.name)
            if chosen:
                sentence = _("{name} can be opened by you and {names}.", name=record.name, names=", ".join(chosen))
            messages.success(request, sentence)
            return redirect("execution", id=record.id)
    context = {"record": record, "form": form, "offered": offered}
    return render(request, "sharing/execution_share.html", context, status=422 if form.is_bound else 200)
