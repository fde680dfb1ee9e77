"""The overview of the cluster: the first paint of a live page."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.nodes.pages.overview import OVERVIEW
from dashboard.nodes.viewmodels.node_cells import STEPS
from dashboard.nodes.viewmodels.pool_history import range_of
from dashboard.nodes.views.infrastructure import pool_section
from dashboard.shell.views.live import admitted, live_page
from grid.runtime import get_runtime


@require_safe
async def overview(request: HttpRequest) -> HttpResponse:
    await admitted(request, OVERVIEW, request.GET)
    range = range_of(request.GET.get("range", ""))
    history = await pool_section(get_runtime(), "", range, lambda other: f"?range={other}")
    return await live_page(request, OVERVIEW, "nodes/overview.html", context={"steps": STEPS, **history})
