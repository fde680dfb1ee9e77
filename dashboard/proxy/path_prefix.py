"""Rewrites path prefixes, so that a program's redirects lead the browser back to the program (pure).

With an origin of its own, a program is at the root. On a shared origin a cluster's page, which other contributors open and whose code is
all contributors', is confined to its own path: its redirects, its cookies, and what its scripts may reach.
"""

from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

_PORTS = {"http": 80, "https": 443}
_BASE = "http://program.invalid"


@dataclass(frozen=True, slots=True)
class PathPrefix:
    """A program's path on its origin. `prefix` has no trailing slash and is "" for a program that may use its whole origin; with `strips`,
    the program gets the path without the prefix. `origin` is what the browser sees, `netloc` is the program's own."""

    prefix: str = ""
    strips: bool = False
    origin: str = ""
    netloc: str = ""

    def asked(self, target: str) -> str:
        """Return the path and query to request from the program."""
        if not self.strips:
            return target
        rest = target.removeprefix(self.prefix)
        return rest if rest.startswith("/") else f"/{rest}"

    def location(self, value: str, *, asked: str) -> str | None:
        """Return a redirect's target for the browser. Below a prefix it is None when it is ambiguous or leads to another origin."""
        if _is_ambiguous(value):
            return value if not self.prefix else None
        try:
            given = urlsplit(value)
            is_own = _host(given) in (_host(urlsplit(self.origin)), _host(urlsplit(f"//{self.netloc}")))
        except ValueError:
            return value if not self.prefix else None
        if not self.prefix:
            # A program that writes absolute URLs may use its pod's address, or http, over which it was asked.
            own = urlunsplit(("", "", given.path or "/", given.query, given.fragment))
            return self.origin + own if given.netloc and is_own else value
        if given.netloc and not is_own:
            return None  # the other site might redirect the browser to another execution's path
        relative = urlunsplit(("", "", given.path or ("/" if given.netloc else ""), given.query, given.fragment))
        joined = urlsplit(urljoin(_BASE + asked, relative))
        path = joined.path or "/"
        if path.startswith(f"{self.prefix}{self.prefix}/"):
            path = path.removeprefix(self.prefix)  # Dask's own redirect from the root repeats it
        if path != self.prefix and not path.startswith(f"{self.prefix}/"):
            path = self.prefix + path
        return urlunsplit(("", "", path, joined.query, joined.fragment))

    @property
    def policy(self) -> str:
        """The Content-Security-Policy. Below a prefix it forbids popups, because a script can reach into a popup of its own origin. Its
        paths limit what may be loaded; browsers ignore them after a redirect, which `location` handles."""
        if not self.prefix:
            return "frame-ancestors 'self'"
        page = f"{self.origin}{self.prefix}/"
        socket = "ws" + page.removeprefix("http")
        return (
            "sandbox allow-scripts allow-same-origin allow-forms allow-modals allow-downloads; "
            f"default-src {page} 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src {page} {socket}; "
            f"form-action {page}; base-uri {page}; object-src 'none'; frame-ancestors 'none'"
        )


NO_PREFIX = PathPrefix()


def _is_ambiguous(value: str) -> bool:
    """Return whether browsers may parse the URL differently: they are lenient with slashes, spaces, schemes and encoded dots."""
    given = value.lower()
    odd = any(character in "\\ \t\r\n" or not character.isprintable() for character in given)
    scheme, colon, rest = given.partition(":")
    has_scheme = bool(colon) and "/" not in scheme and "?" not in scheme and "#" not in scheme
    is_web = scheme in _PORTS and rest.startswith("//") and not rest.startswith("///")
    return odd or "%2e" in given or given.startswith("///") or (has_scheme and not is_web)


def _host(url: SplitResult) -> tuple[str, int]:
    return (url.hostname or "").lower(), url.port or _PORTS.get(url.scheme, 80)
