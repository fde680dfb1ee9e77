"""The help page: short guides, the glossary and the keyboard shortcuts."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access import PERMISSIONS, role_of
from dashboard.viewmodels.glossary import GROUPS
from dashboard.viewmodels.guides import GUIDES


@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    granted = PERMISSIONS[role_of(request.user)]
    guides = [guide for guide in GUIDES if not guide.permission or guide.permission in granted]
    return render(request, "dashboard/help.html", {"guides": guides, "groups": GROUPS})
