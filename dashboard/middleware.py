"""The dashboard's middleware.

It keeps the dashboard off the workspaces' host name, because browsers share a host's cookies between its ports, and tells the browser
which scripts to run (CONTENT_SECURITY_POLICY).
"""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from csp.constants import SELF
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.contrib.sessions import middleware
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware
from whitenoise.middleware import WhiteNoiseMiddleware

from grid.databasetrouble import trouble_of


class ContentSecurityPolicyMiddleware(CSPMiddleware):
    """Sends the policy of the settings; Django's admin, whose script tags have no nonce, may run this host's files instead."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if request.path_info.startswith("/admin/"):
            parts.replace = {"script-src": [SELF]}
        return parts


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise's middleware, made async. The original is sync only, so it would hold a thread for as long as a view awaits."""

    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if not iscoroutinefunction(self):
            return super().__call__(request)
        return self._later(request)

    async def _later(self, request: HttpRequest) -> Any:
        # The same as WhiteNoise's own `__call__`.
        found = self.find_file(request.path_info) if self.autorefresh else self.files.get(request.path_info)
        if found is not None:
            return await sync_to_async(self.serve)(found, request)
        return await self.get_response(request)


class SessionMiddleware(middleware.SessionMiddleware):
    """Django's session middleware, which also touches the session on each response to a logged-in user, so that it does not time out."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if request.session.accessed:
            try:
                request.session.touch(timezone.now())  # type: ignore[attr-defined]
            except DatabaseError as error:
                # A database that can only be read (a full disk, a standby) still serves pages.
                if trouble_of(error) is None:
                    raise
        return super().process_response(request, response)


@sync_and_async_middleware
def own_origin(get_response: Callable[[HttpRequest], object]) -> Callable[[HttpRequest], object]:
    """Redirect requests for the dashboard under the workspaces' host name to the dashboard's own address."""
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
