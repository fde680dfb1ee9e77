"""What an ingress asks the proxy before it sends a request straight to a pod (`grid.executions.ingress`), and how it is answered (pure).

The execution and a key, which only the ingress knows, are in the URL that it was told to ask; that is never the visitor's word. The
request's own headers come along. ingress-nginx asks by GET, and names method and URL in X-Original-Method and X-Original-URL, in place of
what the visitor sent by these names. Envoy keeps the method and adds the path to the URL; it overwrites neither header, so they are not
believed there. It also leaves out headers that it was not told to pass on (docs/installation.md), so their absence proves nothing.
"""

import hmac
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from dashboard.proxy.answers import respond
from dashboard.proxy.headers import NO_HEADERS, Headers, first
from grid.core.regexes import Expression
from grid.edge.refusals import Scope, Send
from grid.executions.ingress import AUTH_PATH, CACHED_SECONDS, auth_key

_ASKED = Expression(rf"(?s){AUTH_PATH}/([a-z0-9]{{1,32}})/([0-9a-f]{{64}})(/.*)?")


def asked_about(scope: Scope, headers: Headers, front_key: Callable[[str], str]) -> tuple[str, Scope] | None:
    """Return the execution that an ingress asks about, and the request as if it had come to the proxy; None for a path that no ingress was
    told, whose key is not that of the execution."""
    asked = _ASKED.fullmatch(scope["path"])
    if asked is None or not hmac.compare_digest(asked[2], auth_key(asked[1], front_key(asked[1]))):
        return None
    believed = headers if asked[3] is None else NO_HEADERS
    url = first(believed, "x-original-url")
    original: Scope = {
        # Only a browser's own websocket has the header: scripts cannot set it.
        "type": "websocket" if first(headers, "sec-websocket-key") else "http",
        "method": first(believed, "x-original-method") or scope["method"],
        "path": unquote(urlsplit(url).path) if _is_url(url) else asked[3] or "/",
    }
    return asked[1], original


def may_be_elsewheres(headers: Headers, own_origin: str, *, is_secure: bool) -> bool:
    """Return whether another origin's page may be behind a question. Browsers say on https who is behind each request; where neither
    header came along, the ingress leaves them out, and a page of another execution could ask for anything."""
    origin = first(headers, "origin")
    return origin not in ("", own_origin) or (is_secure and not origin and not first(headers, "sec-fetch-site"))


async def answer_ingress(send: Send, status: HTTPStatus, tokens: Headers = NO_HEADERS) -> None:
    """Send the answer, which has no body. Only a yes may be kept, for a while."""
    kept = f"max-age={CACHED_SECONDS}" if status == HTTPStatus.OK else "no-store"
    await respond(send, status, [("cache-control", kept), ("content-length", "0"), *tokens])


def _is_url(text: str) -> bool:
    try:
        return bool(text) and bool(urlsplit(text).path)
    except ValueError:
        return False
