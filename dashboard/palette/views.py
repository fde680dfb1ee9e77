"""The command palette: a page with a search form, and the list of options of the dialog that its script opens on any page."""

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.palette.palette import LENGTH, copied_caches, find
from dashboard.shell.access import viewer_of
from grid.core.translation import gettext as _
from grid.runtime import get_runtime


@require_safe
async def palette(request: HttpRequest) -> HttpResponse:
    """Show what `q` finds, as a page, or with `?options=1` as the dialog's options. The caches are copied on the event loop, and searched
    in a thread."""
    viewer = await sync_to_async(viewer_of)(await request.auser())
    if viewer is None:
        raise PermissionDenied(_("You have no access to this page."))
    text = request.GET.get("q", "").replace("\x00", "")[:LENGTH].strip()
    results = await sync_to_async(find)(viewer, text, copied_caches(get_runtime(), viewer, text))
    template = "fragments/palette_options" if request.GET.get("options") == "1" else "palette"
    return await sync_to_async(render)(request, f"palette/{template}.html", {"results": results})
