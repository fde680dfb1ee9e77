"""The first paint of a live page: the same fragments as its websocket sends, and the websocket's address."""

from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from dashboard.shell.access import Viewer, viewer_of
from dashboard.shell.pages.feed import current_fragments
from dashboard.shell.pages.live import LivePage
from grid.runtime import get_runtime


async def admitted(request: HttpRequest, page: LivePage[Any, Any], query: QueryDict) -> Viewer:
    """Return the user when the page allows the view. Otherwise raise PermissionDenied (403), also when the object does not exist."""
    viewer = await sync_to_async(viewer_of)(request.user)
    if viewer is not None:
        await page.prepare(get_runtime(), viewer, page.view(query))
    if viewer is None or not page.allowed(get_runtime(), viewer, page.view(query)):
        raise PermissionDenied(page.refusal)
    return viewer


async def live_page(
    request: HttpRequest,
    page: LivePage[Any, Any],
    template: str,
    *,
    query: QueryDict | None = None,
    context: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Render `template` with `view`, `viewer` and the page's fragments; raise PermissionDenied (403) when the page does not allow it. The
    websocket gets `query`, or else the request's own query string. This runs on the event loop, where the stores may be read, and renders
    in a thread, so that a large page does not delay other users' updates."""
    query = request.GET if query is None else query
    viewer = await admitted(request, page, query)
    runtime, view = get_runtime(), page.view(query)
    whole = {
        "viewer": viewer,
        "view": view,
        "fragments": await current_fragments(page, runtime, viewer, view),
        "now": runtime.clock(),
        "live_url": f"/live/{page.name}/?{query.urlencode()}",
        **(context or {}),
    }
    return await sync_to_async(render)(request, template, whole)
