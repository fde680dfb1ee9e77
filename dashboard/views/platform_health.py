"""The page of the platform's health: the first paint of a live page."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.pages.platform_health import PLATFORM_HEALTH
from dashboard.views.live import live_page


@require_safe
async def platform_health(request: HttpRequest) -> HttpResponse:
    """Show what this process sees itself, and what the controller has stored of the cluster."""
    return await live_page(request, PLATFORM_HEALTH, "dashboard/platform_health.html")
