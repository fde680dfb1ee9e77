"""The help page: short guides, the glossary and the keyboard shortcuts."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.shell.access import PERMISSIONS, role_of
from dashboard.shell.viewmodels.glossary import GROUPS
from dashboard.shell.viewmodels.guides import GUIDES


@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    granted = PERMISSIONS[role_of(request.user)]
    guides = [guide for guide in GUIDES if not guide.permission or guide.permission in granted]
    return render(request, "shell/help.html", {"guides": guides, "groups": GROUPS})
