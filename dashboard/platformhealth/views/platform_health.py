"""The page of the platform's health: the first paint of a live page."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.platformhealth.page import PLATFORM_HEALTH
from dashboard.shell.views.live import live_page


@require_safe
async def platform_health(request: HttpRequest) -> HttpResponse:
    """Show what this process sees itself, and what the controller has stored of the cluster."""
    return await live_page(request, PLATFORM_HEALTH, "platformhealth/platform_health.html")
