"""The rush planner: operators and admins work out what many warm places at one time take, and have them made by schedule."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard.jobs.forms.jobs import zone_names
from dashboard.shell.access import Permission, requires, user_of
from dashboard.shell.viewmodels.listing import Confirmation
from dashboard.tiers import rush_records as records
from dashboard.tiers.forms.rush import RushForm
from dashboard.tiers.viewmodels.rush import RushAnswer, plan_row, rush_answer
from grid.core.translation import gettext as _
from grid.models import RushPlan
from grid.runtime import get_runtime
from grid.tiers.rush import RushTimes, plan_rush
from grid.tiers.rushplans import plan_hours

_operators_only = requires(Permission.OPERATE, _("Only operators and admins plan warm places."))
_UNKNOWN = _("The cluster is not read yet, so it is not known what this takes. Try it again in a minute.")
_MADE = {
    "saved": _("The plan is saved."),
    "changed": _("This plan existed already. It now begins {minutes} min before."),
    "same": _("This plan exists already."),
}


@require_http_methods(["GET", "HEAD", "POST"])
@_operators_only
def rush(request: HttpRequest) -> HttpResponse:
    """Show the form, with what was typed the answer, and the plans; store the plan that is sent."""
    now = get_runtime().clock()
    typed = request.POST if request.method == "POST" else request.GET
    form = RushForm(typed if "places" in typed else None, now=now, initial={"zone": settings.TIME_ZONE})
    planned = _work_out(form, now) if form.is_valid() else None
    plan, answer = planned or (None, None)
    problem = _UNKNOWN if form.is_valid() and planned is None else ""
    if request.method == "POST" and plan and answer and not answer.refusals:
        made = records.make(plan, user_of(request), now)
        if made != "full":
            messages.success(request, _MADE[made].format(minutes=plan.early_minutes))
            return redirect("rush")
        full = _("There are {count} plans, and there can be no more. Remove one, and save this one again.")
        problem = full.format(count=records.MOST_PLANS)
    context: dict[str, Any] = {
        "form": form,
        "zones": zone_names(),
        "answer": answer,
        "problem": problem,
        "behind": get_runtime().freshness().error if answer else "",
        "sent": [(name, value) for name in form.fields for value in typed.getlist(name)] if answer else (),
        "rows": [plan_row(facts, now) for facts in records.listed_plans(get_runtime(), now)],
    }
    return render(request, "tiers/rush.html", context, status=422 if request.method == "POST" else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@_operators_only
def rush_remove(request: HttpRequest, id: str) -> HttpResponse:
    """Remove a plan, after a question that works without a script."""
    if request.method == "POST":
        if records.remove(id, user_of(request)):
            messages.success(request, _("The plan is removed."))
        return redirect("rush")
    plan = get_object_or_404(RushPlan, pk=id)
    question = Confirmation(
        *(_("Remove the plan {subject}"), str(plan)),
        (
            _("Its warm places are removed within half a minute, and no more are added."),
            _("Executions that run there keep their places. The autoscaler removes nodes that nothing needs."),
        ),
        action_url=request.path,
        answer=_("Remove it"),
        keep_url=reverse("rush"),
    )
    return render(request, "shell/question.html", {"question": question})


def _work_out(form: RushForm, now: datetime) -> tuple[RushPlan, RushAnswer] | None:
    """Return the plan that the form asks for, not stored, and what it takes; None while the cluster is not known."""
    plan, minutes = form.plan(), form.cleaned_data["early"]
    hours = plan_hours(plan)
    run = hours.next_run(now) if hours is not None else None
    if hours is None or run is None:
        return None
    times = RushTimes(*run, timedelta(minutes=minutes) if minutes else None)
    facts = records.rush_facts(get_runtime(), plan, times)
    if facts is None:
        return None
    outcome = plan_rush(facts, times, now)
    plan.early_minutes = outcome.early // timedelta(minutes=1)
    return plan, rush_answer(outcome, facts, times, image=plan.environment.image, zone=hours.zone, now=now)
