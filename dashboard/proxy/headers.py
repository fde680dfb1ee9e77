"""Which headers cross the proxy, in either direction (pure)."""

import re
from collections.abc import Iterable

from dashboard.proxy.own_cookies import is_ours
from dashboard.proxy.path_prefix import NO_PREFIX, PathPrefix

Headers = list[tuple[str, str]]

# Connection-level headers end at each hop: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_WEBSOCKET = frozenset(
    {"sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-protocol"}
)
_OURS = frozenset(
    {
        "authorization",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-context",
        "x-forwarded-prefix",
    }
)
# Answered by our own server before it gives us the body; a program that ignores it would wait for ever.
_EXPECT = frozenset({"expect"})
# What would reach beyond the program that says it: our cookie, all host names below, and by the last a page could leave its origin.
_FAR_REACHING = frozenset({"clear-site-data", "strict-transport-security", "origin-agent-cluster"})
# What a browser is told unless the program says otherwise: no other origin holds its windows or loads its files.
_KEPT_APART = {"cross-origin-opener-policy": "same-origin-allow-popups", "cross-origin-resource-policy": "same-origin"}
# A lenient parser lets them through within a value; the next hop may take them for the end of a line.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def decode(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]


def encode(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def first(headers: Headers, name: str) -> str:
    return next((value for key, value in headers if key == name), "")


def cookies(headers: Headers) -> dict[str, str]:
    """Cookies of a request; what cannot be parsed counts as absent."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name == "cookie":
            for part in value.split(";"):
                key, separator, text = part.strip().partition("=")
                if separator:
                    found.setdefault(key, text)
    return found


def is_from_elsewhere(headers: Headers) -> bool:
    """Whether a page of another origin made the browser ask: only browsers can say it, and on https and localhost they do."""
    return first(headers, "sec-fetch-site") in ("cross-site", "same-site")


def is_service_worker(headers: Headers) -> bool:
    """Whether a browser wants a script that goes on answering in the program's name: it says so itself, and no page can unsay it."""
    return bool(first(headers, "service-worker")) or first(headers, "sec-fetch-dest") == "serviceworker"


def opens_a_page(headers: Headers) -> bool:
    """In a tab of its own, so that the person sees it."""
    return (first(headers, "sec-fetch-mode"), first(headers, "sec-fetch-dest")) == ("navigate", "document")


def to_upstream(
    headers: Headers, *, token: str, scheme: str, client: str, path_prefix: PathPrefix = NO_PREFIX
) -> Headers:
    """Request headers for the user's server: without our cookies, with the token that its pod was given, and with the prefix
    where the path comes without it."""
    dropped = _HOP_BY_HOP | _WEBSOCKET | _OURS | _EXPECT | _named_in_connection(headers) | {"cookie", "content-length"}
    passed = [(name, value) for name, value in headers if name not in dropped]
    kept = [f"{name}={value}" for name, value in cookies(headers).items() if not is_ours(name)]
    if kept:
        passed.append(("cookie", "; ".join(kept)))
    length = first(headers, "content-length")
    if length:
        passed.append(("content-length", length))
    passed += [
        ("authorization", f"token {token}"),
        ("x-forwarded-proto", scheme),
        ("x-forwarded-host", first(headers, "host")),
        ("x-forwarded-for", client),
    ]
    if path_prefix.strips:
        passed += [("x-forwarded-prefix", path_prefix.prefix), ("x-forwarded-context", path_prefix.prefix)]
    return [(name, _as_sent(value)) for name, value in passed]


def _as_sent(value: str) -> str:
    """aiohttp writes headers in UTF-8, so what came in UTF-8 has to be read so."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def to_browser(headers: Headers, *, path_prefix: PathPrefix = NO_PREFIX, asked: str = "/") -> Headers:
    """Response headers for the browser: user code may set cookies of its own, never ours and never a Domain. `asked` is the path
    that the program was asked for, to which its redirects are relative."""
    dropped = _HOP_BY_HOP | _FAR_REACHING | _named_in_connection(headers)
    passed: Headers = []
    for name, value in headers:
        lowered = name.lower()
        if lowered in dropped or _CONTROL.search(value):
            continue
        if lowered == "set-cookie":
            cookie = _host_only(value, path=f"{path_prefix.prefix}/" if path_prefix.prefix else "")
            if cookie:
                passed.append((lowered, cookie))
        elif lowered in ("location", "content-location"):
            location = path_prefix.location(value, asked=asked)
            if location is not None:
                passed.append((lowered, location))
        else:
            passed.append((lowered, value))
    said = {name for name, _ in passed}
    passed += [(name, value) for name, value in _KEPT_APART.items() if name not in said]
    # Policies add up: the program's own stays in force beside it.
    passed.append(("content-security-policy", path_prefix.policy))
    passed.append(("origin-agent-cluster", "?1"))  # or two pages could agree to be of one origin, by document.domain
    return passed


def _host_only(value: str, *, path: str) -> str:
    """As browsers read it, to whom quotes mean nothing. `path` replaces the cookie's own, when there is one."""
    pair, *attributes = (part.strip() for part in value.split(";"))
    name, separator, _ = pair.partition("=")
    # Without a name it is sent as its value alone, which may look like one of ours.
    if not separator or not name.strip() or is_ours(name):
        return ""
    dropped = {"domain", "path"} if path else {"domain"}
    kept = [one for one in attributes if one and one.partition("=")[0].strip().lower() not in dropped]
    return "; ".join([pair, *kept, *([f"Path={path}"] if path else [])])


def _named_in_connection(headers: Headers) -> frozenset[str]:
    """Headers that the Connection header declares to be for this hop only."""
    return frozenset(
        part.strip().lower()
        for name, value in headers
        if name.lower() == "connection"
        for part in value.split(",")
        if part.strip()
    )
