"""The dashboard's middleware. It keeps the dashboard off the workspaces' host name, because browsers share a host's cookies between its
ports, tells the browser which scripts to run (CONTENT_SECURITY_POLICY), and keeps answers out of caches."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from csp.constants import SELF
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.contrib.auth import middleware as auth_middleware
from django.contrib.sessions import middleware
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware
from whitenoise.middleware import WhiteNoiseMiddleware

from grid.database.trouble import trouble_of
from grid.observability import logcontext, telemetry, tracing

_STATIC = f"/{settings.STATIC_URL.strip('/')}/"
# Views whose answers are the same for everybody and say themselves how long they may be stored.
_STORED_VIEWS = frozenset({"script-texts"})


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
        file = self.find_file(request.path_info) if self.autorefresh else self.files.get(request.path_info)
        if file is not None:
            return await sync_to_async(self.serve)(file, request)
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


class LoginRequiredMiddleware(auth_middleware.LoginRequiredMiddleware):
    """Django's own, which also has the request's lines of log say who asks: here the account has been read anyway. For a view without login
    it is not: the answer would depend on the cookie, and caches could not keep it."""

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        if not getattr(view_func, "login_required", True):
            return None
        answer = super().process_view(request, view_func, view_args, view_kwargs)
        if answer is None:
            logcontext.say_user(request.user.get_username())
        return answer


@sync_and_async_middleware
def measured(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Count each request and how long its answer took to make. The first of all, so that what the others answer counts too."""

    async def later(request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        with tracing.span(request.method or "", tracing.SERVER) as span:
            response: HttpResponseBase = await get_response(request)
            _count(request, response, time.perf_counter() - began, span)
        return response

    def now(request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        with tracing.span(request.method or "", tracing.SERVER) as span:
            response: HttpResponseBase = get_response(request)
            _count(request, response, time.perf_counter() - began, span)
        return response

    return later if iscoroutinefunction(get_response) else now


def _count(request: HttpRequest, response: HttpResponseBase, seconds: float, span: tracing.Span) -> None:
    """Count it by its URL pattern: there is no end of paths, and they name people's things."""
    if request.resolver_match is not None:
        route = request.resolver_match.view_name
    else:
        route = "static" if response.status_code < 400 and request.path_info.startswith(_STATIC) else telemetry.OTHER
    method = request.method or ""
    telemetry.served(route, method, response.status_code, seconds)
    span.rename(f"{method} {route}")
    span.set("http.route", route)
    span.set("http.response.status_code", response.status_code)


@sync_and_async_middleware
def unstored(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Have no cache store an answer: neither a shared one, nor the browser's own, where the next person at the machine would find it. It
    stands outside of whatever else may answer, so that redirects, refusals and failures are covered too."""

    async def later(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await get_response(request)
        _forbid_storing(request, response)
        return response

    def now(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = get_response(request)
        _forbid_storing(request, response)
        return response

    return later if iscoroutinefunction(get_response) else now


def _forbid_storing(request: HttpRequest, response: HttpResponseBase) -> None:
    is_file = request.path_info.startswith(_STATIC) and response.has_header("Cache-Control")  # as WhiteNoise serves it
    is_stored = request.resolver_match is not None and request.resolver_match.view_name in _STORED_VIEWS
    if not (is_file or is_stored):
        response["Cache-Control"] = "no-store, private"


@sync_and_async_middleware
def own_origin(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Redirect requests for the dashboard under the workspaces' host name to the dashboard's own address."""

    async def later(request: HttpRequest) -> Any:
        return _elsewhere(request) or await get_response(request)

    def now(request: HttpRequest) -> Any:
        return _elsewhere(request) or get_response(request)

    return later if iscoroutinefunction(get_response) else now


def _elsewhere(request: HttpRequest) -> HttpResponseBase | None:
    own, workspaces = urlsplit(settings.DASHBOARD_ORIGIN).hostname, urlsplit(settings.WORKSPACE_ORIGIN).hostname
    host = urlsplit(f"//{request.get_host()}").hostname
    if host != workspaces or host == own:
        return None
    return HttpResponseRedirect(settings.DASHBOARD_ORIGIN + request.get_full_path())
