"""Where a program's web page stands, so that its redirects lead a browser back to it (pure).

With an origin of its own that is the root. Where the pages of all executions share one origin, a cluster's page, which is also
opened by other contributors of the project and made by code of all of them, is kept below its own path: its redirects, its cookies, and
what its scripts may reach.
"""

from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

_PORTS = {"http": 80, "https": 443}
_BASE = "http://program.invalid"


@dataclass(frozen=True, slots=True)
class PathPrefix:
    """`prefix` is without a slash at its end, "" for a program that may stand anywhere on its origin. `strips`: the program is asked
    without the prefix. `origin` is the one that the browser sees, `netloc` the program's own."""

    prefix: str = ""
    strips: bool = False
    origin: str = ""
    netloc: str = ""

    def asked(self, target: str) -> str:
        """Path and query as the program is asked for them."""
        if not self.strips:
            return target
        rest = target.removeprefix(self.prefix)
        return rest if rest.startswith("/") else f"/{rest}"

    def location(self, value: str, *, asked: str) -> str | None:
        """A redirect's target for the browser; None for one that cannot be understood or leads where it must not."""
        if _is_ambiguous(value):
            return value if not self.prefix else None
        try:
            given = urlsplit(value)
            is_own = _host(given) in (_host(urlsplit(self.origin)), _host(urlsplit(f"//{self.netloc}")))
        except ValueError:
            return value if not self.prefix else None
        if not self.prefix:
            # A program that writes whole addresses knows its pod's, or that it was asked over http.
            own = urlunsplit(("", "", given.path or "/", given.query, given.fragment))
            return self.origin + own if given.netloc and is_own else value
        if given.netloc and not is_own:
            return None  # it might send him back to another path
        relative = urlunsplit(("", "", given.path or ("/" if given.netloc else ""), given.query, given.fragment))
        found = urlsplit(urljoin(_BASE + asked, relative))
        path = found.path or "/"
        if path.startswith(f"{self.prefix}{self.prefix}/"):
            path = path.removeprefix(self.prefix)  # Dask's own redirect from the root repeats it
        if path != self.prefix and not path.startswith(f"{self.prefix}/"):
            path = self.prefix + path
        return urlunsplit(("", "", path, found.query, found.fragment))

    @property
    def policy(self) -> str:
        """The Content-Security-Policy. Below a prefix without popups, because a popup of the same origin is open to the script that
        made it; paths count in what may be loaded, and redirects are looked after above."""
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
    """What browsers read otherwise than we do: they are lenient with slashes, spaces, schemes and hidden dots."""
    given = value.lower()
    odd = any(character in "\\ \t\r\n" or not character.isprintable() for character in given)
    scheme, colon, rest = given.partition(":")
    has_scheme = bool(colon) and "/" not in scheme and "?" not in scheme and "#" not in scheme
    return odd or "%2e" in given or given.startswith("///") or (has_scheme and not _is_web(scheme, rest))


def _is_web(scheme: str, rest: str) -> bool:
    return scheme in _PORTS and rest.startswith("//") and not rest.startswith("///")


def _host(url: SplitResult) -> tuple[str, int]:
    return (url.hostname or "").lower(), url.port or _PORTS.get(url.scheme, 80)
