"""The page of a project's budget: its meter and course for whoever sees the project, the form for admins."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.administration.viewmodel import history_lines
from dashboard.shell.access import may_administer, may_see_project
from dashboard.usage.budget_records import budget_of_project, past_months
from dashboard.usage.forms import BudgetForm
from grid.audit import entries as audit
from grid.core.translation import gettext as _
from grid.models import AuditEntry, Project, ProjectBudget, User
from grid.usage.budgets.keeper import set_budget

_HISTORY_LENGTH = 50


@require_http_methods(["GET", "HEAD", "POST"])
def project_budget(request: HttpRequest, id: str) -> HttpResponse:
    project = Project.objects.filter(pk=id).first()
    roles = dict(project.memberships.values_list("user_id", "role")) if project is not None else {}
    if project is None or not may_see_project(request.user, roles):
        raise Http404
    may_set = may_administer(request.user)
    if request.method == "POST" and not may_set:
        raise PermissionDenied(_("Only admins set the budget of a project."))
    form = _form(project, request.POST if request.method == "POST" else None) if may_set else None
    if form is not None and form.is_bound and form.is_valid():
        _save(form, project, request.user)
        messages.success(request, _("The budget of {project} is saved.", project=project))
        return redirect("project-budget", id)
    entries = AuditEntry.objects.filter(object_type="projectbudget", object_id=id)[:_HISTORY_LENGTH]
    labels = {name: str(field.label) for name, field in BudgetForm.base_fields.items()}
    context: dict[str, Any] = {
        "project": project,
        "budget": budget_of_project(project, timezone.now()),
        "past": past_months(project, timezone.now()),
        "form": form,
        "history": history_lines(entries, labels) if may_set else (),
    }
    return render(request, "usage/budget.html", context, status=400 if form is not None and form.errors else 200)


def _form(project: Project, data: Any) -> BudgetForm:
    instance = ProjectBudget.objects.filter(project=project).first() or ProjectBudget(project=project)
    return BudgetForm(data, instance=instance)


def _save(form: BudgetForm, project: Project, actor: Any) -> None:
    """Store what was changed, with an audit entry; nothing when it is what is stored already."""
    assert isinstance(actor, User)
    with transaction.atomic():
        # Of two admins the second sees what the first has stored.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        stored = ProjectBudget.objects.filter(project=project).first()
        before = audit.snapshot(stored) if stored is not None else None
        if before == audit.snapshot(form.instance) or (stored is None and form.instance.amount is None):
            return
        set_budget(form.instance, now=timezone.now())
        action = AuditEntry.Action.CREATED if stored is None else AuditEntry.Action.CHANGED
        audit.record(actor=actor, instance=form.instance, action=action, before=before)
