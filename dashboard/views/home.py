"""The first page after login: the user's own executions and workspaces, and links by role."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.pages.home import HOME
from dashboard.views.live import live_page


@require_safe
async def home(request: HttpRequest) -> HttpResponse:
    user = await request.auser()
    if user.pk is not None:
        HOME.forget(user.pk)
    return await live_page(request, HOME, "dashboard/home.html")
