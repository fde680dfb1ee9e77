"""The overview of the cluster: the first paint of a live page."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.pages.overview import OVERVIEW
from dashboard.viewmodels.node_cells import STEPS
from dashboard.views.live import live_page


@require_safe
async def overview(request: HttpRequest) -> HttpResponse:
    return await live_page(request, OVERVIEW, "dashboard/overview.html", context={"steps": STEPS})
