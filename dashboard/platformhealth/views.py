"""The page of the platform's health, and the checks of the API, which the controller runs: results for observers, asking for admins."""

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.platformhealth.page import PLATFORM_HEALTH
from dashboard.platformhealth.viewmodels.api_checks import api_check_page, creation_sentences
from dashboard.shell.access import admin_required, may_administer, may_observe
from dashboard.shell.viewmodels.listing import Confirmation
from dashboard.shell.views.live import live_page
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import ApiCheckRun, User
from grid.models.dataplane import LOCAL
from grid.platformhealth.apichecks import apicheckruns

_SHOWN = 10


@require_safe
async def platform_health(request: HttpRequest) -> HttpResponse:
    """Show what this process sees itself, and what the controller has stored of the cluster."""
    return await live_page(request, PLATFORM_HEALTH, "platformhealth/platform_health.html")


@require_safe
def api_checks(request: HttpRequest) -> HttpResponse:
    """Show the newest run, and when earlier ones were."""
    if not may_observe(request.user):
        raise PermissionDenied(_("Only operators, auditors and admins can see the checks of the API."))
    runs = [api_check_page(run) for run in ApiCheckRun.objects.filter(data_plane=LOCAL).order_by("-pk")[:_SHOWN]]
    context = {
        "run": runs[0] if runs else None,
        "earlier": runs[1:],
        "may_run": may_administer(request.user),
        "shared": settings.GRID_NAMESPACE,
    }
    return render(request, "platformhealth/api_checks.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def api_checks_run(request: HttpRequest) -> HttpResponse:
    """Say what running the checks creates, or have them run."""
    shared = settings.GRID_NAMESPACE
    is_shared = (request.POST or request.GET).get("where") == "shared"
    if request.method == "POST":
        assert isinstance(request.user, User)
        try:
            apicheckruns.ask(LOCAL, shared, request.user, is_shared=is_shared, now=timezone.now())
            messages.success(request, _("The controller checks the API."))
        except Rejected as refused:
            messages.error(request, refused.sentences)
        return redirect("api-checks")
    question = Confirmation(
        _("Check the API in {subject}"),
        shared if is_shared else _("a namespace of its own"),
        creation_sentences(shared, is_shared=is_shared),
        action_url=reverse("api-checks-run"),
        answer=_("Run the checks"),
        keep=_("Do not run them"),
        keep_url=reverse("api-checks"),
        fields=[("where", "shared")] if is_shared else (),
        is_danger=False,
    )
    return render(request, "shell/question.html", {"question": question})
