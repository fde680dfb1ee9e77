"""Alerts: what an Alertmanager tells of, the page that shows it, what to do about each, and silencing one for a time."""

import logging

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.safestring import mark_safe
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.alerts.page import ALERTS
from dashboard.alerts.viewmodel import runbook_html, section_of
from dashboard.shell.access import Permission, requires, user_of
from dashboard.shell.viewmodels.listing import Confirmation
from dashboard.shell.views.live import live_page
from grid.alerts import silences
from grid.alerts.webhook import keep, read_post
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.core.wording import moment_words, plural
from grid.models import Alert, AlertSilence
from grid.models.platform import LONGEST_REASON

logger = logging.getLogger(__name__)

_TOLD_AGAIN = _(
    "If the alert fires, those who were not told of it are told, and a critical one has its line on all pages again."
)
_operators_only = requires(Permission.OPERATE, _("Only operators and admins silence alerts."))
_RUNBOOKS = settings.BASE_DIR / "docs" / "alerts.md"


@login_not_required
@csrf_exempt
@require_POST
def alerts_received(request: HttpRequest) -> HttpResponse:
    """Keep what an Alertmanager posts: 200. 404 while no token is set, 403 with another one, 400 for what is no such post."""
    if not settings.ALERTS_TOKEN:
        raise Http404(_("GRID_ALERTS_TOKEN is not set."))
    scheme, _unused, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not constant_time_compare(token.strip(), settings.ALERTS_TOKEN):
        return JsonResponse({"error": _("The token is not that of GRID_ALERTS_TOKEN.")}, status=403)
    try:
        heard = read_post(request.body)
    except ValueError as error:
        logger.warning("a post of alerts was refused reason=%s", error)
        return JsonResponse({"error": str(error)}, status=400)
    keep(heard, timezone.now())
    return JsonResponse({"alerts": len(heard)})


@require_safe
async def alerts(request: HttpRequest) -> HttpResponse:
    return await live_page(request, ALERTS, "alerts/alerts.html", context={"is_off": not settings.ALERTS_TOKEN})


@require_safe
@requires(Permission.OBSERVE, ALERTS.refusal)
def runbook(request: HttpRequest, id: str) -> HttpResponse:
    """Show what to do about an alert, from the section of the documentation that its rule names."""
    try:
        title, text = section_of(_RUNBOOKS.read_text(), id)  # each time: a page that is opened now and then
    except OSError as error:
        logger.warning("the steps for alerts cannot be read reason=%s", error)
        title = text = ""
    if not title:
        raise Http404(_("There is no such section in docs/alerts.md of this installation."))
    return render(request, "alerts/runbook.html", {"title": title, "text": mark_safe(runbook_html(text))})


@require_http_methods(["GET", "HEAD", "POST"])
@_operators_only
def alert_silence(request: HttpRequest, id: int) -> HttpResponse:
    alert, now, problem = get_object_or_404(Alert, pk=id), timezone.now(), ""
    typed, actor = request.POST.get("minutes", "60"), user_of(request)
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
@_operators_only
def silence_end(request: HttpRequest, id: int) -> HttpResponse:
    row = get_object_or_404(AlertSilence, pk=id)
    if request.method == "POST":
        is_ended = silences.end(id, by=user_of(request), now=timezone.now())
        outcome = _("The silence of {name} has ended.") if is_ended else _("The silence of {name} had ended already.")
        (messages.success if is_ended else messages.info)(request, outcome.format(name=row.name))
        return redirect("alerts")
    question = Confirmation(
        *(_("End the silence of {subject}"), row.name),
        (silences.silence_sentence(row), _TOLD_AGAIN),
        action_url=request.path,
        answer=_("End it now"),
        keep_url=reverse("alerts"),
        is_danger=False,
    )
    return render(request, "shell/question.html", {"question": question})
