"""Workspaces: the user's own, a workspace with its executions, and resuming, restarting, renaming and deleting it.

A workspace that the user may not see is 404, like one that does not exist. Only its owner may change it.
"""

from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.executions.forms import tier_option
from dashboard.executions.launch_facts import pool_states, slots_of, tier_cards
from dashboard.executions.viewmodels.launch import Slots, slots_together
from dashboard.shell.access import may_manage_workspace, may_see_workspace, user_of
from dashboard.shell.forms.fields import add_problems
from dashboard.shell.routes import id_in
from dashboard.shell.viewmodels.listing import Confirmation
from dashboard.shell.viewmodels.states import framework_name
from dashboard.usage.viewmodels.usage import price_words
from dashboard.workspaces.forms.workspaces import RenameForm, ResumeForm, as_launched
from dashboard.workspaces.viewmodels.workspaces import WorkspaceRecord, workspace_card
from dashboard.workspaces.workspace_records import executions_of, page_of, read_workspace
from grid.audit.entries import write_entry, write_launched
from grid.clusters.request import read_cluster_settings, stored_settings
from grid.core.errors import Problem, Rejected
from grid.core.reasons import Reader
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.launchfit import Pools
from grid.environments.revisions import other_revision, version_mismatch
from grid.models import AuditEntry, Execution, Workspace
from grid.runtime import get_runtime
from grid.workspaces import workspaces as rules
from grid.workspaces.workspaces import cancel_restart, request_restart


@require_safe
def workspaces(request: HttpRequest) -> HttpResponse:
    page = page_of(request.user.pk or 0, id_in(request.GET, "before"))
    context = {"cards": list(map(workspace_card, page.rows)), "older": page.older, "now": timezone.now()}
    return render(request, "workspaces/workspaces.html", context)


@require_safe
def workspace(request: HttpRequest, id: str) -> HttpResponse:
    return _page(request, _seen(request, id))


@require_http_methods(["GET", "HEAD", "POST"])
async def workspace_resume(request: HttpRequest, id: str) -> HttpResponse:
    """Show the resume form or submit it; with `as_launched` alone it is sent for the user with what the workspace was launched with, and
    shown with the reasons where that is refused. The nodes are read here, on the event loop; the database is used in a thread."""
    runtime = get_runtime()
    answer = await _resume(request, id, await pool_states(runtime))
    if request.method == "POST":
        runtime.executions.hint()
    return answer


@require_POST
def workspace_rename(request: HttpRequest, id: str) -> HttpResponse:
    record = managed(request, id)
    form = RenameForm(request.POST)
    if form.is_valid():
        try:
            with transaction.atomic():
                workspace, before = rules.rename(id, form.cleaned_data["title"])
                if workspace.title != before:
                    write_entry(request.user.get_username(), workspace, {"title": [before, workspace.title]})
            title = form.cleaned_data["title"].strip()
            messages.info(request, _("Renamed to {title}.", title=title) if title else _("Its title was removed."))
            return redirect("workspace", id=id)
        except Rejected as refused:
            add_problems(form, refused.problems)
    return _page(request, record, form)


@require_http_methods(["GET", "HEAD", "POST"])
def workspace_delete(request: HttpRequest, id: str) -> HttpResponse:
    """Delete the workspace, after a confirmation page that works without a script. Deleting it twice changes nothing."""
    own = Workspace.objects.filter(pk=id, owner=request.user.pk or 0, deleted_at__isnull=False)
    if request.method == "POST" and own.exists():
        return redirect("workspaces")
    record = managed(request, id)
    problems: tuple[Problem, ...] = ()
    if request.method == "POST":
        try:
            with transaction.atomic():
                rules.delete(id, now=timezone.now())
                workspace = Workspace.objects.get(pk=id)
                write_entry(request.user.get_username(), workspace, {}, action=AuditEntry.Action.DELETED)
            messages.info(request, _("{name} was deleted. Its files stay.", name=record.name))
            return redirect("workspaces")
        except Rejected as refused:
            if refused.problems[0].code == rules.DELETED:
                return redirect("workspaces")
            problems = refused.problems
    context = {"record": record, "problems": problems}
    return render(request, "workspaces/workspace_delete.html", context, status=422 if problems else 200)


def _page(request: HttpRequest, record: WorkspaceRecord, form: RenameForm | None = None) -> HttpResponse:
    is_mine = may_manage_workspace(request.user, record)
    reader = Reader(record.owner_username, is_owner=record.owner_id == request.user.pk)
    context = {
        "record": record,
        "card": workspace_card(record) if is_mine else None,
        "is_mine": is_mine,
        "rename": form or RenameForm(initial={"title": record.title}),
        "executions": executions_of(record.id, id_in(request.GET, "before"), reader),
        "now": timezone.now(),
    }
    return render(request, "workspaces/workspace.html", context, status=422 if form else 200)


@sync_to_async
def _resume(request: HttpRequest, id: str, pools: Pools | None) -> HttpResponse:
    record, user = managed(request, id), user_of(request)
    asked = Workspace.objects.select_related("owner", "project", "environment", "tier").get(pk=id)
    initial = {"environment": asked.environment_id, "tier": request.GET.get("tier") or asked.tier_id}
    sent = as_launched(asked) if "as_launched" in request.POST else request.POST
    form = ResumeForm(sent if request.method == "POST" else None, user=user, initial=initial)
    closed = rules.why_not_resume(asked)
    if closed is None and form.is_bound and form.is_valid():
        try:
            with transaction.atomic():
                resumed = rules.resume(id, **form.cleaned_data, now=timezone.now(), pools=pools)
                write_launched(user, resumed, at=resumed.requested_at)
            return redirect("execution", id=resumed.pk)
        except Rejected as refused:
            form.add_problems(refused.problems)
            # Another click or page was faster, so the workspace runs, or is still stopping.
            closed = next((problem for problem in refused.problems if problem.code in rules.BUSY), None)
    if closed is not None and closed.code == rules.ACTIVE:
        execution = Execution.objects.unsettled().filter(workspace=id).first()
        if execution is None:
            return redirect("workspace", id=id)
        messages.info(request, _("This workspace has not ended: here it is."))
        return redirect("execution", id=execution.pk)
    held = slots_of(user)
    context = _form_context(form, asked, pools) | _cluster_context(form, asked, held) if closed is None else {}
    context |= {"workspace": asked, "closed": closed, "latest": record.latest, "slots": held}
    return render(request, "workspaces/workspace_resume.html", context, status=422 if form.is_bound else 200)


def _form_context(form: ResumeForm, asked: Workspace, pools: Pools | None) -> dict[str, Any]:
    """Return the form's template context; `notes` say at each field why the workspace's old value is not chosen."""
    notes: dict[str, str] = {}
    about_revision, is_deprecated = other_revision(asked.environment, asked.environment_revision)
    if not form.is_bound:
        for problem in rules.problems_as_launched(asked, pools=pools):
            path = problem.path if problem.path in form.fields else "with_cluster"
            notes[path] = f"{notes[path]} {problem.message}" if path in notes else problem.message
        form.initial["with_cluster"] = "with_cluster" not in notes
    return {
        "form": form,
        "notes": notes,
        "about_revision": about_revision,
        "is_deprecated": is_deprecated,
        "environments": list(form.environments),
        "chosen_environment": form.chosen("environment"),
        "tiers": tier_cards(form.tiers, chosen=form.chosen("tier"), pools=pools),
    }


def _cluster_context(form: ResumeForm, asked: Workspace, held: Slots) -> dict[str, Any]:
    """Return the template context about starting the cluster too, with today's tiers and prices; {} without a cluster."""
    if not asked.cluster:
        return {}
    words = {"cluster": _cluster_words(asked.cluster)}
    try:
        cluster = read_cluster_settings(asked.cluster)
    except Rejected:
        return words
    ours, prices = form.chosen_row("environment"), []
    for count in dict.fromkeys((cluster.workers_minimum, cluster.most_workers)):
        price = price_words(cluster.head_tier.cost_per_hour + cluster.tier.cost_per_hour * count)
        prices.append(_("{price} with {workers}", price=price, workers=plural(count, "worker", "workers")))
    return words | {
        "cluster_facts": {
            _("Head"): tier_option(cluster.head_tier),
            _("Each worker"): tier_option(cluster.tier),
            _("Cluster's price"): ", ".join(prices),
        },
        "cluster_slots": slots_together(1 + cluster.slots, held),
        "mismatch": version_mismatch(ours, cluster.environment, cluster.framework) if ours else "",
    }


def _cluster_words(stored: Mapping[str, Any]) -> str:
    try:
        known = stored_settings(stored)
    except Rejected:
        return _("A cluster")
    least, most = known.workers_minimum, known.workers_maximum
    workers = plural(least, "worker", "workers")
    if known.autoscale and most > least:
        workers = _("{minimum} to {workers}", minimum=least, workers=plural(most, "worker", "workers"))
    return f"{framework_name(known.framework)}, {workers}"


def _seen(request: HttpRequest, workspace_id: str) -> WorkspaceRecord:
    record = read_workspace(workspace_id)
    if record is None or not may_see_workspace(request.user, record):
        raise Http404(_("This workspace does not exist, or you have no access to it."))
    return record


def managed(request: HttpRequest, workspace_id: str) -> WorkspaceRecord:
    """Return the workspace of the user's own. Raise Http404 for one that the user may not see, PermissionDenied for somebody else's."""
    record = _seen(request, workspace_id)
    if not may_manage_workspace(request.user, record):
        raise PermissionDenied(_("Only its owner can resume, restart, rename or delete a workspace."))
    return record


@require_http_methods(["GET", "HEAD", "POST"])
async def workspace_restart(request: HttpRequest, id: str) -> HttpResponse:
    """Restart it, after a question. Asking twice restarts it once."""
    answer = await _restart(request, id)
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


@sync_to_async
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
