"""The proxy's own answers: small pages without scripts that no other page holds in a frame."""

import html
import json
from collections.abc import Iterable
from http import HTTPStatus

from dashboard.proxy.headers import Headers, encode
from dashboard.proxy.upstream import Scope, Send

_POLICY_VIOLATION = 1008
_POLICY = ("content-security-policy", "default-src 'none'; frame-ancestors 'none'")
_COMMON = (("cache-control", "no-store"), ("referrer-policy", "no-referrer"))
# Storage, service workers and caches of the origin that says it. Not "cookies", which means those of the whole registrable domain, the
# dashboard's and other executions' among them: https://www.w3.org/TR/clear-site-data/#clear-cookies
_CLEARING = ("clear-site-data", '"cache", "storage"')


async def send_on(send: Send, location: str, set_cookies: list[str] | None = None) -> None:
    headers = [("location", location), *(("set-cookie", cookie) for cookie in set_cookies or ()), *_COMMON]
    await send({"type": "http.response.start", "status": int(HTTPStatus.SEE_OTHER), "headers": encode(headers)})
    await send({"type": "http.response.body", "body": b""})


async def explain(
    scope: Scope,
    send: Send,
    status: HTTPStatus,
    sentence: str,
    *,
    link: tuple[str, str] | None = None,
    more: Headers | None = None,
) -> None:
    """One sentence; `link` is an address and its words. A websocket is refused without them."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        return
    way = f'<p><a href="{html.escape(link[0])}">{html.escape(link[1])}</a></p>' if link else ""
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{status.phrase}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<h1>{status.phrase}</h1><p>{html.escape(sentence)}</p>{way}</html>"
    )
    await show(send, status, page, more=more)


def clearing(cookies: Iterable[str], *, is_secure: bool) -> Headers:
    """What makes a browser forget all that the origin has stored: these cookies, which it sent, and what else there is."""
    secure = "; Secure" if is_secure else ""
    return [_CLEARING, *(("set-cookie", f"{name}=; Path=/; Max-Age=0{secure}") for name in cookies)]


async def show(send: Send, status: HTTPStatus, page: str, *, more: Headers | None = None) -> None:
    body = page.encode()
    headers = [
        ("content-type", "text/html; charset=utf-8"),
        ("content-length", str(len(body))),
        *_COMMON,
        _POLICY,
        *(more or ()),
    ]
    await send({"type": "http.response.start", "status": int(status), "headers": encode(headers)})
    await send({"type": "http.response.body", "body": body})


async def send_worker(send: Send, script: str) -> None:
    """A service worker that is the program's own, at the address `script`, but for opening pages: those come from the proxy.

    A worker goes on answering when its execution has ended, and with pages without our policy. The program's script is imported
    by ours, so that no listener of its own can come first; a module cannot import so, and is refused by that. It is imported under
    another address, because a worker's own gives it its own script.
    """
    text = (
        "self.addEventListener('fetch', (event) => {\n"
        "  if (event.request.mode === 'navigate') event.stopImmediatePropagation();\n"
        "});\n"
        f"importScripts({json.dumps(script)});\n"
    )
    # Its path says how much of the origin it may serve, unless it is told that it may be all of it.
    headers = [("content-type", "text/javascript"), ("service-worker-allowed", "/"), *_COMMON]
    await send({"type": "http.response.start", "status": int(HTTPStatus.OK), "headers": encode(headers)})
    await send({"type": "http.response.body", "body": text.encode()})


async def tell(send: Send, status: HTTPStatus, text: str) -> None:
    """For a probe."""
    body = text.encode()
    headers = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body))), *_COMMON]
    await send({"type": "http.response.start", "status": int(status), "headers": encode(headers)})
    await send({"type": "http.response.body", "body": body})
