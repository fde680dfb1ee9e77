"""Keeps the dashboard off the workspaces' host name, because browsers share a host's cookies between its ports."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.decorators import sync_and_async_middleware


@sync_and_async_middleware
def own_origin(get_response: Callable[[HttpRequest], object]) -> Callable[[HttpRequest], object]:
    """Send whoever asks for the dashboard under the workspaces' host name to the dashboard's own address."""
    if iscoroutinefunction(get_response):
        answer_later: Callable[[HttpRequest], Awaitable[object]] = get_response

        async def later(request: HttpRequest) -> object:
            return _elsewhere(request) or await answer_later(request)

        return later

    def now(request: HttpRequest) -> object:
        return _elsewhere(request) or get_response(request)

    return now


def _elsewhere(request: HttpRequest) -> HttpResponseBase | None:
    own, workspaces = urlsplit(settings.DASHBOARD_ORIGIN).hostname, urlsplit(settings.WORKSPACE_ORIGIN).hostname
    host = urlsplit(f"//{request.get_host()}").hostname
    if host != workspaces or host == own:
        return None
    return HttpResponseRedirect(settings.DASHBOARD_ORIGIN + request.get_full_path())
