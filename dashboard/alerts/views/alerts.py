"""Alerts: what an Alertmanager tells of, the page that shows it, and what to do about each."""

import logging

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.safestring import mark_safe
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from dashboard.alerts.page import ALERTS
from dashboard.alerts.viewmodels.alerts import runbook_html, section_of
from dashboard.shell.access import may_observe
from dashboard.shell.views.live import live_page
from grid.alerts.webhook import keep, read_post
from grid.core.translation import gettext as _

logger = logging.getLogger(__name__)

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
    """Show what fires now, and what has ended, the latest first."""
    return await live_page(request, ALERTS, "alerts/alerts.html", context={"is_off": not settings.ALERTS_TOKEN})


@require_safe
def runbook(request: HttpRequest, id: str) -> HttpResponse:
    """Show what to do about an alert, from the section of the documentation that its rule names."""
    if not may_observe(request.user):
        raise PermissionDenied(ALERTS.refusal)
    title, text = section_of(_document(), id)
    if not title:
        raise Http404(_("There is no such section in docs/alerts.md of this installation."))
    shown = mark_safe(runbook_html(text))
    return render(request, "alerts/runbook.html", {"title": title, "text": shown})


def _document() -> str:
    """Return the text of the steps; "" when the installation has none. It is read each time: a page that is opened now and then."""
    try:
        return _RUNBOOKS.read_text()
    except OSError as error:
        logger.warning("the steps for alerts cannot be read reason=%s", error)
        return ""
