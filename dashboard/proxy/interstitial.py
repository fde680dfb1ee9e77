"""Asks before a link ends something of a cluster (pure).

Spark and Ray let jobs and actors be ended by plain links (`/jobs/job/kill/?id=1`, `/logical/kill_actor?…`), and all pages of the
workspaces' origin are one site to a browser. So a page of one cluster, which a member of its project has made, could lead the tab
of whoever looks at it to such a link of another. Where the request comes from cannot tell: a page writes its own address
(`history.replaceState`) and with it the Referer. So the person whose tab is led to such a link is asked, on a page that
no other page can read or press.

What a cluster's own scripts ask for without leaving their page is not asked about: the page's policy keeps those to their own path.
"""

import hashlib
import hmac
import html

from dashboard.proxy.answers import framed
from dashboard.proxy.headers import Headers, first

_MARK = "__grid_confirmed__="
_ENDING = "kill"


def leads_to_an_end(path: str, query: bytes, headers: Headers) -> bool:
    """`path` is decoded."""
    return bool(query) and _ENDING in path.lower() and first(headers, "sec-fetch-mode") == "navigate"


def confirmed(target: str, secret: str) -> str | None:
    """The target without our mark, when the person has said yes to this very one; None when not."""
    asked, mark, proof = target.rpartition(f"&{_MARK}")
    return asked if mark and hmac.compare_digest(proof.encode(), _proof(asked, secret).encode()) else None


def question(target: str, secret: str, *, home: str) -> str:
    """The page that asks; `secret` is the visitor's own, which no script can read."""
    go_on = html.escape(f"{target}&{_MARK}{_proof(target, secret)}")
    return framed(
        "End it?",
        f"<p>This link ends something that runs on the cluster: <code>{html.escape(target)}</code></p>"
        "<p>Go on only if you have just asked for this yourself.</p>"
        f'<p><a href="{go_on}">End it</a> or <a href="{html.escape(home)}">go back to the cluster’s page</a></p>',
    )


def _proof(target: str, secret: str) -> str:
    return hmac.new(secret.encode(), target.encode(), hashlib.sha256).hexdigest()
