"""The proxy's own responses: small pages without scripts that no other page can frame."""

import base64
import hashlib
import html
import json
from collections.abc import Iterable
from http import HTTPStatus

from dashboard.proxy.headers import Headers, encode
from dashboard.proxy.measured import closed_for
from dashboard.proxy.upstream import Scope, Send
from grid.core.translation import LANGUAGE
from grid.core.translation import gettext as _

_POLICY_VIOLATION = 1008
# The dashboard's colors, inlined: nothing is loaded from the dashboard, which may be down.
_STYLE = (
    ":root { color-scheme: light dark; } "
    "body { margin: 14vh auto 3rem; max-width: 34rem; padding: 0 1.25rem; font: 15px/1.5 system-ui, sans-serif; "
    "background: light-dark(#f5f6f8, #10141a); color: light-dark(#1a212c, #e5e9ef); overflow-wrap: anywhere; } "
    "h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .6rem; } a { color: light-dark(#1d5ca6, #82b6f2); }"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = ("content-security-policy", f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none'")
_HEADLINES = {
    HTTPStatus.FORBIDDEN: _("You cannot open this"),
    HTTPStatus.CONFLICT: _("It has another address"),
    HTTPStatus.GONE: _("It has ended"),
    HTTPStatus.BAD_GATEWAY: _("No answer"),
    HTTPStatus.SERVICE_UNAVAILABLE: _("Temporarily unavailable"),
}
_COMMON = (("cache-control", "no-store"), ("referrer-policy", "no-referrer"))
# Clears the storage, service workers and caches of the responding origin. It leaves out "cookies", which would clear those of the whole
# registrable domain, including the dashboard's and other executions': https://www.w3.org/TR/clear-site-data/#clear-cookies
_CLEARING = ("clear-site-data", '"cache", "storage"')


async def respond(send: Send, status: HTTPStatus, headers: Headers, body: bytes = b"") -> None:
    await send({"type": "http.response.start", "status": int(status), "headers": encode(headers)})
    await send({"type": "http.response.body", "body": body})


async def send_on(send: Send, location: str, set_cookies: list[str] | None = None) -> None:
    headers = [("location", location), *(("set-cookie", cookie) for cookie in set_cookies or ()), *_COMMON]
    await respond(send, HTTPStatus.SEE_OTHER, headers)


async def explain(
    scope: Scope,
    send: Send,
    status: HTTPStatus,
    sentence: str,
    *,
    link: tuple[str, str] | None = None,
    more: Headers | None = None,
) -> None:
    """Send a page with one sentence and `link`, a URL and its text. A websocket is closed without them."""
    if scope["type"] == "websocket":
        closed_for(scope, status)
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        return
    way = f'<p><a href="{html.escape(link[0])}">{html.escape(link[1])}</a></p>' if link else ""
    page = framed(_HEADLINES[status], f"<p>{html.escape(sentence)}</p>{way}")
    await show(send, status, page, more=more)


def framed(headline: str, body: str) -> str:
    """Return a whole HTML page; `body` is HTML too."""
    return (
        f'<!doctype html><html lang="{LANGUAGE}"><meta charset="utf-8"><title>{headline}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>'
        f"<main><h1>{headline}</h1>{body}</main></html>"
    )


def clearing(cookies: Iterable[str], *, is_secure: bool) -> Headers:
    """Return headers that make a browser delete these cookies and all other data that it stores for the origin."""
    secure = "; Secure" if is_secure else ""
    return [_CLEARING, *(("set-cookie", f"{name}=; Path=/; Max-Age=0{secure}") for name in cookies)]


async def show(send: Send, status: HTTPStatus, page: str, *, more: Headers | None = None) -> None:
    body = page.encode()
    headers = [("content-type", "text/html; charset=utf-8"), ("content-length", str(len(body)))]
    await respond(send, status, [*headers, *_COMMON, _POLICY, *(more or ())], body)


async def send_worker(send: Send, script: str) -> None:
    """Send a service worker that runs the program's own one, at the URL `script`, except for navigations, which go to the proxy.

    A service worker keeps responding after its execution has ended, and its pages lack our policy. Our script imports the program's, so
    that our listener is the first; in a module worker `importScripts` fails, so modules are refused. The import uses another URL,
    because the worker's own URL would return this script.
    """
    text = (
        "self.addEventListener('fetch', (event) => {\n"
        "  if (event.request.mode === 'navigate') event.stopImmediatePropagation();\n"
        "});\n"
        f"importScripts({json.dumps(script)});\n"
    )
    # A worker's scope is limited to its own path unless this header allows the whole origin.
    headers = [("content-type", "text/javascript"), ("service-worker-allowed", "/"), *_COMMON]
    await respond(send, HTTPStatus.OK, headers, text.encode())


async def tell(send: Send, status: HTTPStatus, text: str) -> None:
    """Send a plain text, for a probe."""
    body = text.encode()
    headers = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body))), *_COMMON]
    await respond(send, status, headers, body)
