"""What every answer of the dashboard has in common.

It keeps off the workspaces' host name, because browsers share a host's cookies between its ports; and it tells the browser to run
no script but the dashboard's own files, so that a name from the cluster that slipped into a page unescaped stays text.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import cast
from urllib.parse import urlsplit

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.contrib.sessions import middleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware


class SessionMiddleware(middleware.SessionMiddleware):
    """Django's, and each answer to somebody logged in keeps the session from being idle."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if request.session.accessed:
            request.session.touch(timezone.now())  # type: ignore[attr-defined]
        return super().process_response(request, response)


def locked_out(request: HttpRequest, response: HttpResponse, credentials: object) -> HttpResponse:
    """AXES_LOCKOUT_CALLABLE: the page, whose form has the sentence, as a refusal with the time to wait."""
    left: timedelta = request.login_lock.until - timezone.now()  # type: ignore[attr-defined]
    response.status_code = 429
    response["Retry-After"] = str(max(1, round(left.total_seconds())))
    return response


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


@sync_and_async_middleware
def content_security_policy(get_response: Callable[[HttpRequest], object]) -> Callable[[HttpRequest], object]:
    if iscoroutinefunction(get_response):
        answer_later: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

        async def later(request: HttpRequest) -> object:
            return _with_policy(await answer_later(request))

        return later

    answer_now = cast(Callable[[HttpRequest], HttpResponseBase], get_response)

    def now(request: HttpRequest) -> object:
        return _with_policy(answer_now(request))

    return now


def _with_policy(response: HttpResponseBase) -> HttpResponseBase:
    """A form may lead to the workspaces: Open is one, and browsers check where it redirects to."""
    response.headers.setdefault(
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
        f"form-action 'self' {settings.WORKSPACE_ORIGIN}; base-uri 'none'; frame-ancestors 'none'",
    )
    return response
