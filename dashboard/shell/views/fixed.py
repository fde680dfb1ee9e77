"""What shows no data: the help, and the icon for what asks for it at its usual address, as browsers that do not draw SVG and pages that
name none do."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.http import require_safe

from dashboard.shell.access import PERMISSIONS, role_of
from dashboard.shell.viewmodels.glossary import GROUPS


@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    return render(request, "shell/help.html", {"granted": PERMISSIONS[role_of(request.user)], "groups": GROUPS})


@login_not_required
@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to static/favicon.ico, which is static/icon.svg drawn in 16, 32 and 48 pixels."""
    return redirect(static("favicon.ico"), permanent=False)
