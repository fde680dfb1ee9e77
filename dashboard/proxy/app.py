"""The ASGI application of the proxy: each execution's program on its own origin, for users who may open it."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from urllib.parse import parse_qs, quote, unquote_to_bytes

import aiohttp

from dashboard.proxy import answers
from dashboard.proxy.external import answer_ingress, asked_about, may_be_elsewheres
from dashboard.proxy.forwarding import AccessEnded, Route, forward_http, forward_websocket
from dashboard.proxy.gate import CannotTell, GrantGate, Target
from dashboard.proxy.headers import (
    Headers,
    OwnCookies,
    cookies,
    decode,
    first,
    is_from_elsewhere,
    is_opened_by_a_person,
    is_ours,
    is_service_worker,
    opens_a_page,
    to_upstream,
)
from dashboard.proxy.path_prefix import PathPrefix
from dashboard.proxy.upstream import ProgramConnections
from grid.core.origins import BEGIN_PATH, OPEN_PATH, WORKER_PATH, Door, Origins, is_shared_port
from grid.core.translation import gettext as _
from grid.edge.refusals import Receive, Scope, Send
from grid.executions import front
from grid.executions.ingress import AUTH_PATH
from grid.sharing.grants import SECRET_LIFETIME, Passage, digest, new_opener

logger = logging.getLogger(__name__)

ALIVE_PATH, READY_PATH = "/__grid__/healthz", "/__grid__/readyz"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_CONNECT_SECONDS = 5.0
_OPENER_SECONDS = 60


@dataclass(eq=False)
class WorkspaceProxy:
    """Forwards requests with a valid grant; all others get the same 403, whether or not the execution exists. `token` returns the token
    that an execution's pod expects, `front_key` the key of its front's; `problem` says why it is not ready, or ""."""

    gate: GrantGate
    origins: Origins
    dashboard_origin: str
    token: Callable[[str], str]
    front_key: Callable[[str], str]
    problem: Callable[[], Awaitable[str]]
    _connections: ProgramConnections = field(default_factory=ProgramConnections, init=False)
    _session: aiohttp.ClientSession | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._own = OwnCookies(self.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        if scope["type"] == "http" and scope["path"] in (ALIVE_PATH, READY_PATH):
            problem = "" if scope["path"] == ALIVE_PATH else await self.problem()
            await answers.tell(send, HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK, problem or "ok")
            return
        headers = decode(scope["headers"])
        try:
            if scope["type"] == "http" and scope["path"].startswith(f"{AUTH_PATH}/"):
                await self._authorize(scope, send, headers)
            else:
                await self._answer(scope, receive, send, headers)
        except CannotTell:
            sentence = _("The database does not answer, so your access could not be checked. Reload in a few seconds.")
            await answers.explain(scope, send, HTTPStatus.SERVICE_UNAVAILABLE, sentence)

    async def _authorize(self, scope: Scope, send: Send, headers: Headers) -> None:
        """Tell an ingress whether the request that it asks about may go straight to the pod, with the tokens that open it there."""
        asked = asked_about(scope, headers, self.front_key)
        if asked is None:
            await answer_ingress(send, HTTPStatus.NOT_FOUND)
            return
        id, original = asked
        _secret, passage = await self._passage(id, headers)
        if passage is None:
            await answer_ingress(send, HTTPStatus.UNAUTHORIZED)
        elif (
            passage.has_ended
            or not self._is_own_request(original, headers, Door(id, "", original["path"]))
            or may_be_elsewheres(headers, self.origins.origin(id), is_secure=self.origins.is_secure)
            or is_service_worker(headers)
        ):
            await answer_ingress(send, HTTPStatus.FORBIDDEN)
        else:
            if _is_use(original, headers):
                self.gate.used(passage)
            target = self.gate.target(passage)
            if target is None or not target.front_port:
                await answer_ingress(send, HTTPStatus.SERVICE_UNAVAILABLE)
                return
            tokens = [*self._for_front(id, target), ("authorization", f"token {self.token(id)}")]
            await answer_ingress(send, HTTPStatus.OK, tokens)

    async def close(self) -> None:
        self._connections.close()
        if self._session is not None:
            await self._session.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        door = self.origins.door(first(headers, "host"), scope["path"])
        if door is None:
            await self._turn_away(scope, send, headers)
        elif scope["type"] == "http" and door.rest == f"/{BEGIN_PATH}":
            await self._begin(scope, send, door, headers)
        elif scope["type"] == "http" and door.rest == f"/{OPEN_PATH}":
            await self._open(scope, send, door, headers)
        else:
            await self._enter(scope, receive, send, door, headers)

    async def _passage(self, execution_id: str, headers: Headers) -> tuple[str, Passage | None]:
        """Return the visitor's secret, "" for none, and the passage that it opens."""
        secret = cookies(headers).get(self._own.secret(execution_id), "")
        return secret, await self.gate.passage(execution_id, secret) if secret else None

    async def _enter(self, scope: Scope, receive: Receive, send: Send, door: Door, headers: Headers) -> None:
        secret, passage = await self._passage(door.execution_id, headers)
        if passage is None:
            await self._refuse(scope, send, door)
        elif passage.has_ended:
            await self._say_ended(scope, send, door, headers, passage)
        elif not self._is_own_request(scope, headers, door):
            await self._refuse(scope, send, door)
        elif is_service_worker(headers):
            await self._answer_worker(scope, send, passage)
        else:
            await self._pass(scope, receive, send, door, headers, passage, secret)

    async def _answer_worker(self, scope: Scope, send: Send, passage: Passage) -> None:
        """Send the service worker, or 403 where it is not allowed; never on a shared origin, where it could answer for other executions."""
        if passage.allows_service_workers and not self.origins.by_path:
            await answers.send_worker(send, f"/{WORKER_PATH}?{quote(_raw_target(scope), safe='')}")
            return
        sentence = _("Service workers are off for this environment. An admin can allow them if its program needs them.")
        await answers.explain(scope, send, HTTPStatus.FORBIDDEN, sentence)

    async def _pass(
        self, scope: Scope, receive: Receive, send: Send, door: Door, headers: Headers, passage: Passage, secret: str
    ) -> None:
        asked: str | None = _raw_target(scope)
        if passage.allows_service_workers and door.rest == f"/{WORKER_PATH}":
            # As `send_worker` was given it in the query, with characters that are invalid in a URL encoded.
            asked = "/" + quote(unquote_to_bytes(scope["query_string"]).lstrip(b"/"), safe="%/:?&=+,;@!$'()*~[]")
        elif passage.component and scope["type"] == "http":
            asked = await self._let_in(scope, send, headers, door, secret)
        if asked is None:
            return
        if scope["type"] == "http" and _is_use(scope, headers):
            self.gate.used(passage)
        if not passage.is_shared_port and passage.base_url != f"{door.prefix}/":
            sentence = _(
                "This was launched before the addresses of executions were changed, and cannot be reached at its new one. "
                "Stop it and launch it again; its files are kept."
            )
            await answers.explain(scope, send, HTTPStatus.CONFLICT, sentence, link=self._page_of(door))
            return
        target = self.gate.target(passage)
        if target is None:
            page = self._page_of(door)
            await answers.explain(scope, send, HTTPStatus.SERVICE_UNAVAILABLE, _why_not_there(passage), link=page)
            return
        with self.gate.holding(door.execution_id, secret) as ended:
            path_prefix = PathPrefix("", False, self.origins.origin(door.execution_id), target.netloc)
            if (passage.component or passage.is_shared_port) and door.prefix:
                path_prefix = PathPrefix(door.prefix, passage.strips_prefix, path_prefix.origin, path_prefix.netloc)
            sent_headers = to_upstream(
                headers,
                token=self.token(door.execution_id),
                scheme=self.origins.base.partition("://")[0],
                client=(scope.get("client") or ("", 0))[0],
                path_prefix=path_prefix,
                for_front=self._for_front(door.execution_id, target),
            )
            session, path = self._upstream_session(), path_prefix.asked(asked)
            used = partial(self.gate.used, passage)
            route = Route(
                self._connections, session, target.entrance, path, headers, sent_headers, ended, used, path_prefix
            )
            try:
                await self._forward(scope, receive, send, route, passage)
            except AccessEnded:
                await self._refuse(scope, send, door)

    def _for_front(self, execution_id: str, target: Target) -> Headers:
        if not target.front_port:
            return []
        expires = int(time.time()) + front.TOKEN_SECONDS
        token = (front.TOKEN_HEADER, front.token(execution_id, self.front_key(execution_id), expires))
        return [token, (front.STATE_HEADER, front.CRASHED)] if target.has_crashed else [token]

    async def _forward(self, scope: Scope, receive: Receive, send: Send, route: Route, passage: Passage) -> None:
        try:
            if scope["type"] == "websocket":
                await forward_websocket(scope, receive, send, route)
            else:
                await forward_http(scope, receive, send, route)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            logger.info("workspace did not answer path=%.200r error=%s", scope["path"], error)
            await answers.explain(scope, send, HTTPStatus.BAD_GATEWAY, _why_silent(passage))

    async def _begin(self, scope: Scope, send: Send, door: Door, headers: Headers) -> None:
        """Set an opener cookie and redirect to the dashboard for a ticket; the same for every id, whether or not it exists. An ingress also
        leads here what a page that is still open fetches after its session has ended; such must not replace the opener of somebody who
        opens it anew meanwhile."""
        if first(headers, "sec-fetch-mode") not in ("", "navigate"):
            sentence = _("Your session here has ended. Reload the page to open it again.")
            await answers.explain(scope, send, HTTPStatus.FORBIDDEN, sentence, link=self._page_of(door))
            return
        id, opener = door.execution_id, new_opener()
        cookie = self._own.header(id, self._own.opener(id), opener, seconds=_OPENER_SECONDS)
        await answers.send_on(
            send, f"{self.dashboard_origin}/executions/{id}/opening/?opener={digest(opener)}", [cookie]
        )

    async def _open(self, scope: Scope, send: Send, door: Door, headers: Headers) -> None:
        id = door.execution_id
        opener = cookies(headers).get(self._own.opener(id), "")
        ticket = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [""])[0]
        secret, passage = None, None
        if ticket and opener:
            try:
                secret = await self.gate.exchange(id, ticket, opener, now=datetime.now(UTC))
                passage = await self.gate.passage(id, secret) if secret is not None else None
            except CannotTell:
                # The ticket may have been used up all the same, so a reload would not help.
                sentence = _("The database does not answer, so this cannot be opened now. Try again in a few seconds.")
                way_in = f"{self.origins.address(id)}{BEGIN_PATH}", _("Open it again")
                await answers.explain(scope, send, HTTPStatus.SERVICE_UNAVAILABLE, sentence, link=way_in)
                return
        if secret is None:
            # The ticket is used up, expired, or obsolete because another tab was opened at the same time and replaced the opener: in the
            # last case that tab's secret opens this tab as well.
            _secret, passage = await self._passage(id, headers)
            if passage is not None:
                await answers.send_on(send, self._start_of(id, passage))
            else:
                await self._refuse(scope, send, door)
            return
        given = self._own.header(id, self._own.secret(id), secret, seconds=int(SECRET_LIFETIME.total_seconds()))
        forgotten = self._own.header(id, self._own.opener(id), "", seconds=0)
        await answers.send_on(send, self._start_of(id, passage), [given, forgotten])

    def _start_of(self, execution_id: str, passage: Passage | None) -> str:
        path = passage.start_path if passage is not None else ""
        return self.origins.address(execution_id) + path.removeprefix("/")

    async def _let_in(self, scope: Scope, send: Send, headers: Headers, door: Door, secret: str) -> str | None:
        """Return the path and query to request from a cluster's program; None when a response was sent instead.

        Spark ends jobs and Ray ends actors by plain links, which any page that a member of the project visits could follow in the member's
        name. So requests from other sites lose their query and open the cluster's first page. On a shared origin the browser does not
        mark another cluster's page as another site, so such a link needs a confirmation.
        """
        target, home = _raw_target(scope), self.origins.address(door.execution_id)
        if is_from_elsewhere(headers) and scope["query_string"]:
            await answers.send_on(send, home)
            return None
        if not self.origins.by_path or scope["method"] not in _SAFE_METHODS:
            return target  # another page's form is refused by its Origin header or by that page's policy
        if not answers.leads_to_an_end(scope["path"], scope["query_string"], headers):
            return target
        confirmed_target = answers.confirmed(target, secret)
        if confirmed_target is None:
            await answers.show(send, HTTPStatus.OK, answers.question(target, secret, home=home))
        return confirmed_target

    def _is_own_request(self, scope: Scope, headers: Headers, door: Door) -> bool:
        """Return whether the request may act in the visitor's name. Pages of other origins may only open a tab: no frame, image or form. A
        websocket is protected by its Origin header only. The cookie's SameSite does not protect: other executions' host names and other
        ports are the same site. Only browsers send Sec-Fetch-Site, and only on https and localhost."""
        own, origin = self.origins.origin(door.execution_id), first(headers, "origin")
        if scope["type"] == "websocket":
            return origin == own
        if is_from_elsewhere(headers):
            return opens_a_page(headers) and scope["method"] in _SAFE_METHODS
        return scope["method"] in _SAFE_METHODS or origin in ("", own)

    async def _say_ended(self, scope: Scope, send: Send, door: Door, headers: Headers, passage: Passage) -> None:
        """Say that the execution has ended (410), and clear its origin's stored data. Our own cookie stays, so that a reload says the same;
        a shared origin is not cleared, because other executions use it."""
        state = passage.state_word
        sentence = _("This has ended ({state}). Its page tells why and keeps the end of its log.", state=state)
        more: Headers = []
        if not self.origins.by_path:
            sentence += " " + _("Your browser's stored data for it was cleared.")
            secure = "; Secure" if self.origins.is_secure else ""
            theirs = [name for name in cookies(headers) if name and not is_ours(name)]
            more = [answers.CLEARING, *(("set-cookie", f"{name}=; Path=/; Max-Age=0{secure}") for name in theirs)]
        await answers.explain(scope, send, HTTPStatus.GONE, sentence, link=self._page_of(door), more=more)

    async def _turn_away(self, scope: Scope, send: Send, headers: Headers) -> None:
        """Refuse a URL that is no execution's, or redirect when it is an execution's old URL by path."""
        moved = self.origins.moved(first(headers, "host"), scope["path"])
        if moved is None or scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._refuse(scope, send, None)
            return
        target = _raw_target(scope).removeprefix(moved.prefix).lstrip("/")
        await answers.send_on(send, self.origins.address(moved.execution_id) + target)

    async def _refuse(self, scope: Scope, send: Send, door: Door | None) -> None:
        sentence = _("Log in to the dashboard, and use the Open button of an execution that you may open.")
        await answers.explain(scope, send, HTTPStatus.FORBIDDEN, sentence, link=self._page_of(door))

    def _page_of(self, door: Door | None) -> tuple[str, str]:
        if door is None or is_shared_port(door.execution_id):
            return f"{self.dashboard_origin}/", _("The dashboard")
        return f"{self.dashboard_origin}/executions/{door.execution_id}/", _("Its page on the dashboard")

    def _upstream_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                # The browser's own or none.
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                auto_decompress=False,
            )
        return self._session


def _is_use(scope: Scope, headers: Headers) -> bool:
    """Return whether a request shows that a person is there."""
    if scope["method"] in _SAFE_METHODS:
        return is_opened_by_a_person(headers)
    return front.STORED_UNATTENDED not in scope["path"]


def _raw_target(scope: Scope) -> str:
    """Return the path and query exactly as the browser sent them, because decoding may lose what is meaningful to user code."""
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope["query_string"]
    if path == b"*":  # `OPTIONS *` is about the whole server
        path = b"/"
    return str((path + b"?" + query if query else path).decode("latin-1"))


def _why_silent(passage: Passage) -> str:
    if passage.is_shared_port:
        return _(
            "Nothing answers on port {port} of this workspace. Whoever shared it starts the program there, and lets it listen on "
            "0.0.0.0 instead of 127.0.0.1: for example streamlit run app.py --server.address 0.0.0.0 --server.port {port}. "
            "Then reload this page.",
            port=passage.port,
        )
    return _(
        "The program did not answer. It may still be starting, or it may have stopped: "
        "reload in a few seconds, or look at the execution's page and its logs."
    )


def _why_not_there(passage: Passage) -> str:
    state, component = passage.state_word, passage.component
    if not component:
        message = passage.message or _("It is not ready yet.")
        sentence = _("This execution is {state}. {message} Reload this page when it is running.")
        return sentence.format(state=state, message=message)
    sentence = _("This cluster is {state}, and its {component} is not up.", state=state, component=component)
    step = _("Reload this page when the cluster's page says that it is.")
    return " ".join(filter(None, (sentence, passage.message, step)))
