"""The proxy's own responses: small pages without scripts that no other page can frame.

One of them asks for confirmation before a link ends a cluster's job or actor. Spark and Ray end these by plain links
(`/jobs/job/kill/?id=1`, `/logical/kill_actor?…`), and all pages of the workspaces' origin are one site to a browser. So a page of one
cluster, made by a member of its project, could navigate a visitor's tab to such a link of another cluster. The Referer does not help: a
page can change its own URL (`history.replaceState`) and with it the Referer. So the visitor confirms such a navigation, on a page that no
other page can read or click. Requests by a cluster's own scripts need no confirmation: the
page's policy keeps them to their own path.
"""

import base64
import hashlib
import hmac
import html
import json
from http import HTTPStatus

from dashboard.proxy.headers import NO_HEADERS, Headers, encode, first
from dashboard.proxy.measured import closed_for
from grid.core.translation import LANGUAGE, gettext as _
from grid.edge.refusals import Scope, Send

Link = tuple[str, str]  # a URL and its text
_POLICY_VIOLATION = 1008
_MARK = "__grid_confirmed__="
_ENDING = "kill"
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
CLEARING = ("clear-site-data", '"cache", "storage"')


async def respond(send: Send, status: HTTPStatus, headers: Headers, body: bytes = b"") -> None:
    await send({"type": "http.response.start", "status": int(status), "headers": encode(headers)})
    await send({"type": "http.response.body", "body": body})


async def send_on(send: Send, location: str, set_cookies: list[str] | None = None) -> None:
    headers = [("location", location), *(("set-cookie", cookie) for cookie in set_cookies or ()), *_COMMON]
    await respond(send, HTTPStatus.SEE_OTHER, headers)


async def explain(
    scope: Scope, send: Send, status: HTTPStatus, sentence: str, *, link: Link | None = None, more: Headers = NO_HEADERS
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


async def show(send: Send, status: HTTPStatus, page: str, *, more: Headers = NO_HEADERS) -> None:
    body = page.encode()
    headers = [("content-type", "text/html; charset=utf-8"), ("content-length", str(len(body)))]
    await respond(send, status, [*headers, *_COMMON, _POLICY, *more], body)


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
    body = text.encode()
    headers = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body))), *_COMMON]
    await respond(send, status, headers, body)


def leads_to_an_end(path: str, query: bytes, headers: Headers) -> bool:
    """Return whether the request navigates to a link that ends something; `path` is decoded."""
    return bool(query) and _ENDING in path.lower() and first(headers, "sec-fetch-mode") == "navigate"


def confirmed(target: str, secret: str) -> str | None:
    """Return the target without our mark when the visitor has confirmed exactly this target; None otherwise."""
    asked, mark, proof = target.rpartition(f"&{_MARK}")
    return asked if mark and hmac.compare_digest(proof.encode(), _proof(asked, secret).encode()) else None


def question(target: str, secret: str, *, home: str) -> str:
    """Return the page that asks for confirmation; `secret` is the visitor's own, which no script can read."""
    go_on = html.escape(f"{target}&{_MARK}{_proof(target, secret)}")
    body = _(
        "<p>This link ends something that runs on the cluster: <code>{target}</code></p>"
        "<p>Continue only if you have just asked for this yourself.</p>"
        '<p><a href="{go_on}">End it</a> or <a href="{home}">go back to the cluster’s page</a></p>'
    )
    return framed(_("End it?"), body.format(target=html.escape(target), go_on=go_on, home=html.escape(home)))


def _proof(target: str, secret: str) -> str:
    return hmac.new(secret.encode(), target.encode(), hashlib.sha256).hexdigest()
