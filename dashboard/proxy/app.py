"""The ASGI application of the workspaces' origin."""

import html
import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import parse_qs

import aiohttp
from django.urls import reverse

from dashboard.proxy.confirming import confirmed, leads_to_an_end, question
from dashboard.proxy.gate import Gate, Target
from dashboard.proxy.grants import Passage, digest, new_opener
from dashboard.proxy.headers import (
    Headers,
    cookie_name,
    cookies,
    decode,
    encode,
    first,
    is_from_elsewhere,
    opener_name,
    opens_a_page,
)
from dashboard.proxy.http import forward_http
from dashboard.proxy.placing import Place
from dashboard.proxy.upstream import Receive, Route, Scope, Send
from dashboard.proxy.websocket import forward_websocket

logger = logging.getLogger(__name__)

BEGIN_PATH = "__grid_begin__"
OPEN_PATH = "__grid_open__"
_EXECUTION_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_CONNECT_SECONDS = 5.0
_OPENER_SECONDS = 60
_COOKIE_SECONDS = 7 * 24 * 60 * 60  # the grant behind it ends earlier, with the dashboard's session


class WorkspaceProxy:
    """Answers `/w/<execution id>/...`; everything without a valid grant gets the same 403."""

    def __init__(
        self,
        *,
        gate: Gate,
        origin: str,
        dashboard_origin: str,
        token: Callable[[str], str],
        recheck_seconds: float = 5.0,
    ) -> None:
        self._gate = gate
        self._origin = origin
        self._dashboard_origin = dashboard_origin
        self._token = token
        self._recheck_seconds = recheck_seconds
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        headers = decode(scope["headers"])
        execution_id, rest = _split(scope["path"])
        if scope["type"] == "http" and rest == BEGIN_PATH and _EXECUTION_ID.fullmatch(execution_id):
            await self._begin(send, execution_id)
            return
        if scope["type"] == "http" and rest == OPEN_PATH:
            await self._open(scope, send, execution_id, cookies(headers).get(opener_name(execution_id), ""))
            return
        secret = cookies(headers).get(cookie_name(execution_id), "")
        passage = await self._gate.passage(execution_id, secret) if secret else None
        if passage is None or not self._same_origin(scope, headers):
            await _refuse(scope, send)
            return
        asked: str | None = _raw_target(scope)
        if passage.keeps_below_prefix and scope["type"] == "http":
            asked = await _let_in(scope, send, headers, execution_id, secret)
        if asked is None:
            return
        target = self._gate.target(passage)
        if target is None:
            await _explain(scope, send, HTTPStatus.SERVICE_UNAVAILABLE, _why_not_there(passage))
            return
        await self._forward(scope, receive, send, self._route(scope, headers, passage, target, secret, asked))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _route(
        self, scope: Scope, headers: Headers, passage: Passage, target: Target, secret: str, asked: str
    ) -> Route:
        async def still_allowed() -> bool:
            return await self._gate.passage(passage.execution_id, secret) is not None

        place = Place()
        if passage.keeps_below_prefix:
            prefix = f"/w/{passage.execution_id}"
            place = Place(prefix, passage.strips_prefix, self._origin, target.netloc)
        return Route(
            session=self._upstream_session(),
            netloc=target.netloc,
            path=place.asked(asked),
            headers=headers,
            token=self._token(passage.execution_id),
            scheme=self._origin.partition("://")[0],
            client=(scope.get("client") or ("", 0))[0],
            still_allowed=still_allowed,
            recheck_seconds=self._recheck_seconds,
            place=place,
        )

    async def _forward(self, scope: Scope, receive: Receive, send: Send, route: Route) -> None:
        try:
            if scope["type"] == "websocket":
                await forward_websocket(scope, receive, send, route)
            else:
                await forward_http(scope, receive, send, route)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            logger.info("workspace did not answer path=%s error=%s", scope["path"], error)
            await _explain(
                scope,
                send,
                HTTPStatus.BAD_GATEWAY,
                "The program did not answer. It may still be starting, or it may have stopped: "
                "reload in a few seconds, or look at the execution's page and its logs.",
            )

    async def _begin(self, send: Send, execution_id: str) -> None:
        """Give the browser an opener and let it fetch a ticket for that; the same for every id, whether it exists or not."""
        opener = new_opener()
        path = reverse("execution-opening", args=[execution_id])
        cookie = self._cookie(execution_id, opener_name(execution_id), opener, seconds=_OPENER_SECONDS)
        await _send_on(send, f"{self._dashboard_origin}{path}?opener={digest(opener)}", [cookie])

    async def _open(self, scope: Scope, send: Send, execution_id: str, opener: str) -> None:
        ticket = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [""])[0]
        secret = None
        if ticket and opener:
            secret = await self._gate.exchange(execution_id, ticket, opener, now=datetime.now(UTC))
        if secret is None:
            await _refuse(scope, send)
            return
        found = [
            self._cookie(execution_id, cookie_name(execution_id), secret, seconds=_COOKIE_SECONDS),
            self._cookie(execution_id, opener_name(execution_id), "", seconds=0),
        ]
        await _send_on(send, f"/w/{execution_id}/", found)

    def _cookie(self, execution_id: str, name: str, value: str, *, seconds: int) -> str:
        secure = "; Secure" if self._origin.startswith("https://") else ""
        return f"{name}={value}; Path=/w/{execution_id}/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"

    def _same_origin(self, scope: Scope, headers: Headers) -> bool:
        """Pages of other origins do nothing here in the visitor's name.

        A websocket has no other protection than the Origin header. A form has the cookie's SameSite, for which other ports of
        this host are the same site, and Jupyter asks no more of whoever has the token that we add.
        """
        said = first(headers, "origin")
        if scope["type"] == "websocket":
            return said == self._origin
        return scope["method"] in _SAFE_METHODS or said in ("", self._origin)

    def _upstream_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                auto_decompress=False,
            )
        return self._session


def _split(path: str) -> tuple[str, str]:
    """`/w/<id>/<rest>` as (id, rest); ("", "") for any other path."""
    parts = path.split("/", 3)
    return (parts[2], parts[3]) if len(parts) == 4 and parts[1] == "w" else ("", "")


async def _let_in(scope: Scope, send: Send, headers: Headers, execution_id: str, secret: str) -> str | None:
    """The path and query that a cluster's program is asked for; None when the browser was answered otherwise.

    Spark ends jobs and Ray ends actors by plain links, which any page that a member of the project visits could follow in that
    person's name. So from elsewhere a cluster's pages are only opened, and asked nothing; and such a link is asked about.
    """
    target = _raw_target(scope)
    if is_from_elsewhere(headers):
        if not opens_a_page(headers):
            await _refuse(scope, send)
            return None
        if scope["query_string"]:
            await _send_on(send, f"/w/{execution_id}/", [])
            return None
    if scope["method"] not in _SAFE_METHODS or not leads_to_an_end(scope["path"], scope["query_string"], headers):
        return target  # a form of another page is refused by its Origin, or by that page's policy
    found = confirmed(target, secret)
    if found is None:
        await _show(send, HTTPStatus.OK, question(target, secret, home=f"/w/{execution_id}/"))
    return found


def _raw_target(scope: Scope) -> str:
    """Path and query exactly as the browser sent them: user code may give a meaning to what decoding would lose."""
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope["query_string"]
    return str((path + b"?" + query if query else path).decode("latin-1"))


def _why_not_there(passage: Passage) -> str:
    message = passage.message or "It is not ready yet."
    if passage.component:
        state = f"This cluster is {passage.state}, and its {passage.component} is not up. {passage.message}".strip()
        return f"{state} Reload this page when the cluster's page says that it is."
    return f"This execution is {passage.state}. {message} Reload this page when it is running."


async def _send_on(send: Send, location: str, set_cookies: list[str]) -> None:
    headers = [
        ("location", location),
        *(("set-cookie", cookie) for cookie in set_cookies),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ]
    await send({"type": "http.response.start", "status": 303, "headers": encode(headers)})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, send: Send) -> None:
    await _explain(
        scope,
        send,
        HTTPStatus.FORBIDDEN,
        "You cannot open this here. Go to the dashboard, log in, and use the Open button of an execution that you may open.",
    )


async def _explain(scope: Scope, send: Send, status: HTTPStatus, sentence: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{status.phrase}</title>'
        f'<meta name="color-scheme" content="light dark"><h1>{status.phrase}</h1><p>{html.escape(sentence)}</p></html>'
    )
    await _show(send, status, page)


async def _show(send: Send, status: HTTPStatus, page: str) -> None:
    """A page of our own: no script runs on it, and no other page holds it in a frame."""
    body = page.encode()
    headers = [
        ("content-type", "text/html; charset=utf-8"),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ]
    await send({"type": "http.response.start", "status": int(status), "headers": encode(headers)})
    await send({"type": "http.response.body", "body": body})
