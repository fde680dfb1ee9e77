"""Asks for confirmation before a link ends a cluster's job or actor (pure).

Spark and Ray end jobs and actors by plain links (`/jobs/job/kill/?id=1`, `/logical/kill_actor?…`), and all pages of the workspaces'
origin are one site to a browser. So a page of one cluster, made by a member of its project, could navigate a visitor's tab to such a
link of another cluster. The Referer does not help: a page can change its own URL (`history.replaceState`) and with it the Referer. So
the visitor confirms such a navigation, on a page that no other page can read or click.

Requests by a cluster's own scripts need no confirmation: the page's policy keeps them to their own path.
"""

import hashlib
import hmac
import html

from dashboard.proxy.answers import framed
from dashboard.proxy.headers import Headers, first
from grid.core.translation import gettext as _

_MARK = "__grid_confirmed__="
_ENDING = "kill"


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
    return framed(
        _("End it?"),
        _(
            "<p>This link ends something that runs on the cluster: <code>{target}</code></p>"
            "<p>Continue only if you have just asked for this yourself.</p>"
            '<p><a href="{go_on}">End it</a> or <a href="{home}">go back to the cluster’s page</a></p>',
            target=html.escape(target),
            go_on=go_on,
            home=html.escape(home),
        ),
    )


def _proof(target: str, secret: str) -> str:
    return hmac.new(secret.encode(), target.encode(), hashlib.sha256).hexdigest()
