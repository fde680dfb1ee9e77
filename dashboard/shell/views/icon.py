"""The icon for what asks for it at its usual address: browsers that do not draw SVG, and pages that name none, as Django's admin."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.views.decorators.http import require_safe


@login_not_required
@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to static/favicon.ico, which is static/icon.svg drawn in 16, 32 and 48 pixels."""
    return redirect(static("favicon.ico"), permanent=False)
