"""The dashboard's middleware. It keeps the dashboard off the workspaces' host name, because browsers share a host's cookies between its
ports, tells the browser which scripts to run (CONTENT_SECURITY_POLICY), and keeps answers out of caches.

Django runs each hook of each middleware in a thread, and a request stands in line behind all others for each of them. So those of Django's
that only compute are run on the event loop (`OnLoop`), and the others go to a thread only when they have work there."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import iscoroutinefunction, sync_to_async
from csp.constants import SELF
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.contrib.auth import middleware as auth_middleware
from django.contrib.messages import middleware as messages_middleware
from django.contrib.sessions import middleware
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.middleware import clickjacking, common, csrf, gzip, security
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin
from whitenoise.middleware import WhiteNoiseMiddleware

from grid.database.trouble import trouble_of
from grid.observability import logcontext, telemetry, tracing

_STATIC = f"/{settings.STATIC_URL.strip('/')}/"
# Views whose answers are the same for everybody and say themselves how long they may be stored.
_STORED_VIEWS = frozenset({"script-texts"})
_QUICKLY_COMPRESSED = 4096  # bytes, in a tenth of a millisecond


class OnLoop:
    """The async side of Django's `MiddlewareMixin` without its threads, for a middleware that stands after it among the bases."""

    async_mode: bool
    get_response: Callable[[HttpRequest], Any]

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)  # type: ignore[call-arg]
        hooks: Any = self
        if self.async_mode and hasattr(hooks, "process_view"):
            self._sync_view: Callable[..., Any] = hooks.process_view
            hooks.process_view = self._view_later

    async def __acall__(self, request: HttpRequest) -> Any:
        before, after = getattr(self, "process_request", None), getattr(self, "process_response", None)
        response = (before(request) if before else None) or await self.get_response(request)
        if after is not None and self._in_thread(request, response):
            return await sync_to_async(after)(request, response)
        return response if after is None else after(request, response)

    async def _view_later(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> Any:
        hook = sync_to_async(self._sync_view) if self._view_in_thread(request, view) else None
        return await hook(request, view, args, kwargs) if hook else self._sync_view(request, view, args, kwargs)

    def _in_thread(self, request: HttpRequest, response: Any) -> bool:
        """Return whether `process_response` has work for a thread."""
        return False

    def _view_in_thread(self, request: HttpRequest, view: Any) -> bool:
        """Return whether `process_view` has."""
        return False


def _without_threads(middleware: type[MiddlewareMixin]) -> type[MiddlewareMixin]:
    return type(middleware.__name__, (OnLoop, middleware), {})


SecurityMiddleware = _without_threads(security.SecurityMiddleware)
CommonMiddleware = _without_threads(common.CommonMiddleware)
AuthenticationMiddleware = _without_threads(auth_middleware.AuthenticationMiddleware)
XFrameOptionsMiddleware = _without_threads(clickjacking.XFrameOptionsMiddleware)


def on_loop(path: str) -> str:
    """Return the namesake in this module of a middleware of Django's; any other as it is."""
    name = path.rpartition(".")[2]
    return f"{__name__}.{name}" if path.startswith("django.") and name in globals() else path


class CsrfViewMiddleware(OnLoop, csrf.CsrfViewMiddleware):
    """Django's own, on the event loop but for a request with a form, which it reads whole."""

    def _view_in_thread(self, request: HttpRequest, view: Any) -> bool:
        return request.method not in ("GET", "HEAD", "OPTIONS", "TRACE")


class GZipMiddleware(OnLoop, gzip.GZipMiddleware):
    """Django's own, on the event loop but for a page whose compression takes longer than the way to a thread."""

    def _in_thread(self, request: HttpRequest, response: Any) -> bool:
        return not response.streaming and len(response.content) > _QUICKLY_COMPRESSED


class MessageMiddleware(OnLoop, messages_middleware.MessageMiddleware):
    """Django's own, on the event loop but where there are messages, which the session may have to keep."""

    def _in_thread(self, request: HttpRequest, response: Any) -> bool:
        stored = getattr(request, "_messages", None)
        return stored is not None and bool(stored.used or stored.added_new)


class ContentSecurityPolicyMiddleware(OnLoop, CSPMiddleware):
    """Sends the policy of the settings; Django's admin, whose script tags have no nonce, may run this host's files instead."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if request.path_info.startswith("/admin/"):
            parts.replace = {"script-src": [SELF]}
        return parts


@sync_and_async_middleware
def static_files(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """WhiteNoise's middleware, made async. The original is sync only, so it would hold a thread for as long as a view awaits."""
    original = WhiteNoiseMiddleware(get_response)

    async def later(request: HttpRequest) -> Any:
        path = request.path_info
        file = original.find_file(path) if original.autorefresh else original.files.get(path)
        return await (get_response(request) if file is None else sync_to_async(original.serve)(file, request))

    return later if iscoroutinefunction(get_response) else original


class SessionMiddleware(OnLoop, middleware.SessionMiddleware):
    """Django's session middleware, which also touches the session on each response to a logged-in user, so that it does not time out."""

    def _in_thread(self, request: HttpRequest, response: Any) -> bool:
        session: Any = request.session
        return bool(session.modified or (session.accessed and session.is_touch_due(timezone.now())))

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if request.session.accessed:
            try:
                request.session.touch(timezone.now())  # type: ignore[attr-defined]
            except DatabaseError as error:
                # A database that can only be read (a full disk, a standby) still serves pages.
                if trouble_of(error) is None:
                    raise
        return super().process_response(request, response)


class LoginRequiredMiddleware(OnLoop, auth_middleware.LoginRequiredMiddleware):
    """Django's own, which also has the request's lines of log say who asks: here the account has been read anyway. For a view without login
    it is not: the answer would depend on the cookie, and caches could not keep it."""

    def _view_in_thread(self, request: HttpRequest, view: Any) -> bool:
        return bool(getattr(view, "login_required", True))

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


class UnstoredMiddleware(OnLoop, MiddlewareMixin):
    """Has no cache store an answer: neither a shared one, nor the browser's own, where the next person at the machine would find it. It
    stands outside of whatever else may answer, so that redirects, refusals and failures are covered too."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        # As WhiteNoise serves it.
        is_file = request.path_info.startswith(_STATIC) and response.has_header("Cache-Control")
        is_stored = request.resolver_match is not None and request.resolver_match.view_name in _STORED_VIEWS
        if not (is_file or is_stored):
            response["Cache-Control"] = "no-store, private"
        return response


class OwnOriginMiddleware(OnLoop, MiddlewareMixin):
    """Redirects requests for the dashboard under the workspaces' host name to the dashboard's own address."""

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        own, workspaces = urlsplit(settings.DASHBOARD_ORIGIN).hostname, urlsplit(settings.WORKSPACE_ORIGIN).hostname
        host = urlsplit(f"//{request.get_host()}").hostname
        if host != workspaces or host == own:
            return None
        return HttpResponseRedirect(settings.DASHBOARD_ORIGIN + request.get_full_path())
