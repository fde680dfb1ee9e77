"""What an ingress asks the proxy before it sends a request straight to a pod (`grid.launch.ingress`), and how it is answered (pure).

The execution and a key, which only the ingress knows, are in the URL that it was told to ask; nothing of that is the visitor's word. The
request's own headers come along, but for its method and URL, which the ingress names; one that keeps them (Envoy) adds the path to the URL.
"""

import hmac
import re
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from dashboard.proxy.headers import NO_HEADERS, Headers, encode, first
from dashboard.proxy.upstream import Scope, Send
from grid.launch.ingress import AUTH_PATH, CACHED_SECONDS, auth_key

_ASKED = re.compile(rf"{AUTH_PATH}/([a-z0-9]{{1,32}})/([0-9a-f]{{64}})(/.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class IngressQuestion:
    """A request that an ingress asks about: `scope` has what it is, as if it had come to the proxy."""

    execution_id: str
    key: str
    scope: Scope

    def is_asked_by_an_ingress(self, front_key: str) -> bool:
        return hmac.compare_digest(self.key, auth_key(self.execution_id, front_key))


def asked_about(scope: Scope, headers: Headers) -> IngressQuestion | None:
    """Return what is asked about; None for a path that no ingress was told."""
    found = _ASKED.fullmatch(scope["path"])
    if found is None:
        return None
    url = first(headers, "x-original-url")
    path = unquote(urlsplit(url).path) if _is_url(url) else found[3] or "/"
    return IngressQuestion(
        found[1],
        found[2],
        {
            # Only a browser's own websocket has the header: scripts cannot set it.
            "type": "websocket" if first(headers, "sec-websocket-key") else "http",
            "method": first(headers, "x-original-method") or scope["method"],
            "path": path,
        },
    )


async def answer_ingress(send: Send, status: HTTPStatus, tokens: Headers = NO_HEADERS) -> None:
    """Send the answer, which has no body. Only a yes may be kept, for a while."""
    kept = f"max-age={CACHED_SECONDS}" if status == HTTPStatus.OK else "no-store"
    headers = [("cache-control", kept), ("content-length", "0"), *tokens]
    await send({"type": "http.response.start", "status": int(status), "headers": encode(headers)})
    await send({"type": "http.response.body", "body": b""})


def _is_url(text: str) -> bool:
    try:
        return bool(text) and bool(urlsplit(text).path)
    except ValueError:
        return False
