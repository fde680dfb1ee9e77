"""Verbose logs: an operator has a component, or what is done about one execution, logged in detail for an hour, and ends it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.shell.access import Permission, requires, user_of
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.core.wording import moment_words
from grid.logs import verboselogging
from grid.models import VerboseLogging

_EXECUTION = "execution"


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Permission.OPERATE, _("Only operators and admins can have more logged."))
def verbose_logs(request: HttpRequest) -> HttpResponse:
    """Show what is logged in detail, who wants it and until when; begin it, or end it."""
    problem, now = "", timezone.now()
    if request.method == "POST":
        try:
            messages.success(request, _decide(request))
            return redirect("verbose-logs")
        except Rejected as rejected:
            problem = rejected.sentences
    asked = request.POST if request.method == "POST" else request.GET
    execution = asked.get("execution", "")[:40]
    context = {
        "problem": problem,
        "rows": VerboseLogging.objects.in_force(now).order_by("until_at", "pk"),
        "choices": {_EXECUTION: _("One execution"), **verboselogging.COMPONENTS},
        "subject": asked.get("subject", _EXECUTION if execution else ""),
        "execution": execution,
        "reason": asked.get("reason", "")[: verboselogging.REASON_LONGEST],
        "longest": verboselogging.REASON_LONGEST,
    }
    return render(request, "logs/verbose_logs.html", context, status=422 if problem else 200)


def _decide(request: HttpRequest) -> str:
    """Do what the form asks and return what was done. Raise Rejected."""
    now, typed = timezone.now(), request.POST.get("end", "")
    if typed:
        number = int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < 18 else 0
        row = verboselogging.end(number, by=user_of(request), now=now)
        return _("The {subject} is logged as usual again, within seconds.", subject=row)
    subject, execution = request.POST.get("subject", ""), request.POST.get("execution", "").strip()
    row = verboselogging.begin(
        component="" if subject == _EXECUTION else subject or " ",
        execution=execution.replace("\x00", ""),
        by=user_of(request),
        reason=request.POST.get("reason", "").replace("\x00", ""),
        now=now,
    )
    until = moment_words(row.until_at)
    return _("The {subject} is logged in detail within seconds, until {until_at}.", subject=row, until_at=until)
