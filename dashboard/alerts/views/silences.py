"""Silencing an alert for a time, and ending that: pages that say what either means, and do it."""

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.shell.access import may_operate
from dashboard.shell.viewmodels.listing import Confirmation
from grid.alerts import silences
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.core.wording import moment_words, plural
from grid.models import Alert, AlertSilence, User
from grid.models.platform import LONGEST_REASON


@require_http_methods(["GET", "HEAD", "POST"])
def alert_silence(request: HttpRequest, id: int) -> HttpResponse:
    """Ask for how long and why, and silence the alert."""
    actor = _refuse_others(request)
    alert, now, problem = get_object_or_404(Alert, pk=id), timezone.now(), ""
    typed = request.POST.get("minutes", "60")
    if request.method == "POST":
        minutes = int(typed) if typed in map(str, silences.MINUTES) else 0
        try:
            made = silences.start(alert, minutes=minutes, reason=request.POST.get("reason", ""), by=actor, now=now)
        except Rejected as rejected:
            problem = rejected.sentences
        else:
            until = moment_words(made.until_at)
            messages.success(request, _("{name} is silenced until {until_at}.", name=alert.name, until_at=until))
            return redirect("alerts")
    silence = silences.silence_of(alert.labels, silences.silences_in_force(now))
    context = {
        "alert": alert,
        "problem": problem,
        "silenced": silences.silence_sentence(silence) if silence is not None and not problem else "",
        "labels": sorted(silences.matchers_for(alert.labels).items()),
        "choices": [(minutes, plural(minutes // 60, "hour", "hours")) for minutes in silences.MINUTES],
        "minutes": typed,
        "reason": request.POST.get("reason", "")[:LONGEST_REASON],
        "longest": LONGEST_REASON,
        "has_alertmanager": bool(settings.ALERTMANAGER_URL),
    }
    return render(request, "alerts/alert_silence.html", context, status=422 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def silence_end(request: HttpRequest, id: int) -> HttpResponse:
    """End a silence now, after a question that works without a script."""
    actor = _refuse_others(request)
    row = get_object_or_404(AlertSilence, pk=id)
    if request.method == "POST":
        if silences.end(id, by=actor, now=timezone.now()):
            messages.success(request, _("The silence of {name} has ended.", name=row.name))
        else:
            messages.info(request, _("The silence of {name} had ended already.", name=row.name))
        return redirect("alerts")
    question = Confirmation(
        *(_("End the silence of {subject}"), row.name),
        (
            silences.silence_sentence(row),
            _(
                "If the alert fires, those who were not told of it are told, and a critical one has its line on all pages again."
            ),
        ),
        action_url=request.path,
        answer=_("End it now"),
        keep=_("Keep it"),
        keep_url=reverse("alerts"),
        is_danger=False,
    )
    return render(request, "shell/question.html", {"question": question})


def _refuse_others(request: HttpRequest) -> User:
    """Return who asks. Raise PermissionDenied for anybody but operators and admins."""
    if not isinstance(request.user, User) or not may_operate(request.user):
        raise PermissionDenied(_("Only operators and admins silence alerts."))
    return request.user
