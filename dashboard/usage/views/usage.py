"""Pages of usage: one's own, a person's, and everybody's for those who watch the cluster, also as files for spreadsheets; and the page
of a project's budget: its meter and course for whoever sees the project, the form for admins."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.administration.viewmodel import history_lines
from dashboard.shell.access import (
    Permission,
    may_administer,
    may_observe,
    may_see_usage,
    requires,
    seen_project,
    user_of,
)
from dashboard.shell.exports import attachment, note_export
from dashboard.usage.forms import BudgetForm
from dashboard.usage.usage_records import budget_of_project, past_months, read_everybody, read_usage
from dashboard.usage.viewmodels import usage
from grid.audit import entries as audit
from grid.core.translation import gettext as _
from grid.models import AuditEntry, Project, ProjectBudget, User
from grid.usage.budgets.keeper import set_budget

_TEMPLATE = "usage/usage.html"
_NOT_YOURS = _("You can see your own usage only.")
_HISTORY_LENGTH = 50


@require_safe
def own_usage(request: HttpRequest) -> HttpResponse:
    return _usage_of(request, user_of(request))


@require_safe
def person_usage(request: HttpRequest, id: int) -> HttpResponse:
    if not may_see_usage(request.user, id):
        raise PermissionDenied(_NOT_YOURS)
    return _usage_of(request, get_object_or_404(User, pk=id))


@require_safe
@requires(Permission.OBSERVE, _NOT_YOURS)
def usage_of_everybody(request: HttpRequest) -> HttpResponse:
    """Show one month, because the intervals of a year are too many to add up for a page. With `?person=` go to that person's page."""
    now, username = timezone.now(), request.GET.get("person", "").strip()
    person = User.objects.filter(username=username).first() if username and "\0" not in username else None
    if person is not None:
        return redirect("person-usage", person.pk)
    view = usage.UsageView.parse(request.GET.dict(), now)
    month = view.month
    if request.GET.get("download") == "1":
        rows = read_usage(month.first, month.last, now, only=view.columns)
        name = f"usage-{month.value}.csv"
        note_export(request, user_of(request), name)
        return attachment(usage.usage_csv(rows, has_kinds=False), name)
    rows, days = read_everybody(month.first, month.last, now, view.columns)
    context = {"months": usage.last_months(now), "unknown": username, "is_everybody": True}
    return render(request, _TEMPLATE, context | _month(rows, days, view, is_everybody=True))


def _usage_of(request: HttpRequest, person: User) -> HttpResponse:
    now = timezone.now()
    view = usage.UsageView.parse(request.GET.dict(), now)
    months = usage.last_months(now)
    rows = read_usage(months[-1].first, months[0].last, now, person.pk, view.columns)
    if request.GET.get("download") == "1":
        name = f"usage-{months[-1].value}-to-{months[0].value}.csv"
        if person != request.user:
            note_export(request, person, name)
        return attachment(usage.usage_csv(rows, has_kinds=True), name)
    context = {
        "person": person,
        "is_own": person == request.user,
        "may_see_all": may_observe(request.user),
        "months": usage.months_of(rows, now),
    }
    shown = usage.in_month(rows, view.month)
    return render(request, _TEMPLATE, context | _month(shown, shown, view, is_everybody=False))


def _month(
    rows: Sequence[usage.HeldTime], days: Sequence[usage.HeldTime], view: usage.UsageView, *, is_everybody: bool
) -> dict[str, object]:
    bars = usage.day_bars(days, view.month)
    return {
        "view": view,
        "chips": view.chips(rows),
        "total": usage.total_of(rows),
        "bars": bars,
        "picture": usage.picture_sentence(bars, view.month),
        "tables": usage.tables(rows, view, is_everybody=is_everybody),
    }


@require_http_methods(["GET", "HEAD", "POST"])
def project_budget(request: HttpRequest, id: str) -> HttpResponse:
    project, _roles = seen_project(request, id)
    may_set = may_administer(request.user)
    if request.method == "POST" and not may_set:
        raise PermissionDenied(_("Only admins set the budget of a project."))
    stored = ProjectBudget.objects.filter(project=project).first() or ProjectBudget(project=project)
    form = BudgetForm(request.POST if request.method == "POST" else None, instance=stored) if may_set else None
    if form is not None and form.is_bound and form.is_valid():
        _save(form, project, user_of(request))
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


def _save(form: BudgetForm, project: Project, actor: User) -> None:
    """Store what was changed, with an audit entry; nothing when it is what is stored already."""
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
