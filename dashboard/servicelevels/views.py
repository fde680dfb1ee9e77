"""The page of service levels, for those who watch the cluster."""

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.servicelevels.page import levels_in
from dashboard.servicelevels.viewmodel import level_card
from dashboard.shell.access import may_administer, may_observe
from grid.core.translation import gettext as _
from grid.runtime import get_runtime


@require_safe
async def service_levels(request: HttpRequest) -> HttpResponse:
    may_edit = await sync_to_async(_admitted)(request)
    read = await levels_in(get_runtime()).read()
    levels, has_prometheus = (read.levels, read.has_prometheus) if read else ((), False)
    cards = [level_card(level.status, level.source, has_prometheus=has_prometheus) for level in levels]
    context = {"read": read, "cards": cards, "may_edit": may_edit}
    return await sync_to_async(render)(request, "servicelevels/service_levels.html", context)


def _admitted(request: HttpRequest) -> bool:
    """Return whether the user may edit the objectives. Raise PermissionDenied for one who may not see them."""
    if not may_observe(request.user):
        raise PermissionDenied(_("Only operators, auditors and admins can see this page."))
    return may_administer(request.user)
