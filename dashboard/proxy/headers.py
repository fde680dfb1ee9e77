"""Filters the headers that cross the proxy, in either direction, and names its own cookies (pure)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import AnyStr

from dashboard.proxy.path_prefix import NO_PREFIX, PathPrefix
from grid.core.origins import Origins
from grid.executions.front import STATE_HEADER, TOKEN_HEADER

Headers = list[tuple[str, str]]
RawHeaders = list[tuple[bytes, bytes]]
NO_HEADERS: Headers = []

# Connection-level headers end at each hop: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
_HOP_BY_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_WEBSOCKET = frozenset(
    {"sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-protocol"}
)
_OURS = frozenset(
    {
        *(TOKEN_HEADER, STATE_HEADER, "authorization", "forwarded"),
        *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-context", "x-forwarded-prefix"),
    }
)
# Our own server responds to it before the body; forwarded to a program that ignores it, it would hang the request.
_EXPECT = frozenset({"expect"})
_NOT_PASSED = _HOP_BY_HOP | _WEBSOCKET | _OURS | _EXPECT | {"cookie", "content-length"}
# Headers that would reach beyond the program: they clear our cookie, affect all host names below, or let pages share an origin.
_FAR_REACHING = frozenset({b"clear-site-data", b"strict-transport-security", b"origin-agent-cluster"})
_NOT_ANSWERED = _FAR_REACHING | {name.encode() for name in _HOP_BY_HOP}
_REWRITTEN = frozenset({b"set-cookie", b"location", b"content-location"})
# Defaults that the program may override: no other origin may hold its windows or load its files.
_KEPT_APART = {
    b"cross-origin-opener-policy": b"same-origin-allow-popups",
    b"cross-origin-resource-policy": b"same-origin",
}
# Lenient parsers accept control characters within a value; the next hop may take them for the end of a line.
_CONTROL = bytes({*range(0x20), 0x7F} - {ord("\t")})
# Our own cookies are never sent to a program and never accepted from one. On https their names begin with `__Host-`, so that browsers
# accept them from this host only: a program on a sibling host name cannot replace a visitor's cookie with one for the parent domain.
_SECRET, _OPENER = "grid_workspace", "grid_opener"
_HOST = "__Host-"
_OUR_COOKIES = ("grid_", f"{_HOST.lower()}grid_", "__secure-grid_")


def is_ours(name: str) -> bool:
    """Return whether a cookie's name is one of the proxy's, in upper or lower case, because browsers compare the prefixes so."""
    return name.strip().lower().startswith(_OUR_COOKIES)


@dataclass(frozen=True, slots=True)
class OwnCookies:
    """The cookies of one installation. Where all executions share an origin, each execution has its own cookie names and path."""

    origins: Origins

    def secret(self, execution_id: str) -> str:
        return self._name(_SECRET, execution_id)

    def opener(self, execution_id: str) -> str:
        return self._name(_OPENER, execution_id)

    def header(self, execution_id: str, name: str, value: str, *, seconds: int) -> str:
        """Return a Set-Cookie header's value. It is Lax, not Strict, because the browser must send it when it comes from the dashboard."""
        path = f"/w/{execution_id}/" if self.origins.by_path else "/"
        secure = "; Secure" if self.origins.is_secure else ""
        return f"{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"

    def _name(self, kind: str, execution_id: str) -> str:
        if self.origins.by_path:
            return f"{kind}_{execution_id}"
        return f"{_HOST}{kind}" if self.origins.is_secure else kind


def decode(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]


def encode(headers: Headers) -> RawHeaders:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def first(headers: Headers, name: str) -> str:
    for key, value in headers:  # a generator would take thrice as long, and each request asks a dozen times
        if key == name:
            return value
    return ""


def cookies(headers: Headers) -> dict[str, str]:
    """Return the cookies of a request; malformed ones are left out."""
    by_name: dict[str, str] = {}
    for name, value in headers:
        if name == "cookie":
            for part in value.split(";"):
                key, separator, text = part.strip().partition("=")
                if separator:
                    by_name.setdefault(key, text)
    return by_name


def is_from_elsewhere(headers: Headers) -> bool:
    """Return whether a page of another origin caused the request; only browsers say so, and only on https and localhost."""
    return first(headers, "sec-fetch-site") in ("cross-site", "same-site")


def is_service_worker(headers: Headers) -> bool:
    """Return whether a browser fetches a service worker's script; the browser sets these headers, and no page can change them."""
    return bool(first(headers, "service-worker")) or first(headers, "sec-fetch-dest") == "serviceworker"


def opens_a_page(headers: Headers) -> bool:
    """Return whether the request opens a page in a tab, where the user sees it."""
    return (first(headers, "sec-fetch-mode"), first(headers, "sec-fetch-dest")) == ("navigate", "document")


def is_opened_by_a_person(headers: Headers) -> bool:
    """Return whether a click, a key or the address bar made the browser open a page; it says so of no page that reloads itself."""
    return (first(headers, "sec-fetch-mode"), first(headers, "sec-fetch-user")) == ("navigate", "?1")


def to_upstream(
    headers: Headers, *, token: str, scheme: str, client: str, path_prefix: PathPrefix, for_front: Headers
) -> Headers:
    """Return the request headers for the user's server: with the pod's token, and without our cookies and what is for this hop."""
    dropped = _ending_here(_NOT_PASSED, [value for name, value in headers if name == "connection"], ",")
    passed = [(name, value) for name, value in headers if name not in dropped]
    if kept := [f"{name}={value}" for name, value in cookies(headers).items() if not is_ours(name)]:
        passed.append(("cookie", "; ".join(kept)))
    if first(headers, "transfer-encoding"):
        passed.append(("transfer-encoding", "chunked"))
    elif length := first(headers, "content-length"):
        passed.append(("content-length", length))
    passed += [
        ("authorization", f"token {token}"),
        ("x-forwarded-proto", scheme),
        ("x-forwarded-host", first(headers, "host")),
        ("x-forwarded-for", client),
    ]
    if path_prefix.strips:
        passed += [("x-forwarded-prefix", path_prefix.prefix), ("x-forwarded-context", path_prefix.prefix)]
    return passed + for_front


def for_aiohttp(headers: Headers) -> Headers:
    """Return the headers with values decoded as UTF-8 where possible, because aiohttp encodes them so again."""
    return [(name, value if value.isascii() else _as_utf8(value)) for name, value in headers]


def _as_utf8(value: str) -> str:
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def to_browser(headers: RawHeaders, *, path_prefix: PathPrefix = NO_PREFIX, asked: str = "/") -> RawHeaders:
    """Return the response headers for the browser. User code may set its own cookies, never ours and never with a Domain. `asked` is the
    path requested from the program, to which its redirects are relative. Only what may be rewritten is decoded, which is little."""
    lowered = [(name.lower(), value) for name, value in headers]
    dropped = _ending_here(_NOT_ANSWERED, [value for name, value in lowered if name == b"connection"], b",")
    if _has_control(b"".join([value for _, value in lowered])):  # rarely, so that one look for all is cheaper
        lowered = [(name, value) for name, value in lowered if not _has_control(value)]
    passed: RawHeaders = []
    for name, value in lowered:
        if name in dropped:
            continue
        if name not in _REWRITTEN:
            passed.append((name, value))
        elif text := _rewritten(name, value.decode("latin-1"), path_prefix, asked):
            passed.append((name, text.encode("latin-1")))
    given = {name for name, _ in passed}
    passed += [(name, value) for name, value in _KEPT_APART.items() if name not in given]
    # Policies add up: the program's own one stays in force.
    passed.append((b"content-security-policy", path_prefix.policy.encode()))
    passed.append((b"origin-agent-cluster", b"?1"))  # so that two pages cannot join origins by document.domain
    return passed


def _has_control(value: bytes) -> bool:
    return len(value.translate(None, _CONTROL)) < len(value)


def _rewritten(name: bytes, value: str, path_prefix: PathPrefix, asked: str) -> str | None:
    if name == b"set-cookie":
        return _host_only(value, path=f"{path_prefix.prefix}/" if path_prefix.prefix else "")
    return path_prefix.location(value, asked=asked)


def _host_only(value: str, *, path: str) -> str:
    """Return the Set-Cookie value without Domain and with `path`, if that is given; "" for a cookie that is dropped. It is parsed as
    browsers do, which ignore quotes."""
    pair, *attributes = (part.strip() for part in value.split(";"))
    name, separator, _ = pair.partition("=")
    # A browser sends a cookie without a name as its value alone, which may look like one of ours.
    if not separator or not name.strip() or is_ours(name):
        return ""
    dropped = {"domain", "path"} if path else {"domain"}
    kept = [text for text in attributes if text and text.partition("=")[0].strip().lower() not in dropped]
    return "; ".join([pair, *kept, *([f"Path={path}"] if path else [])])


def _ending_here(always: frozenset[AnyStr], named: list[AnyStr], comma: AnyStr) -> frozenset[AnyStr]:
    """Return the names of headers that are for this hop only: `always`, and what Connection headers declare to be so."""
    names = {part.strip().lower() for part in comma.join(named).split(comma)} if named else set()
    return always if names <= always else always | names
