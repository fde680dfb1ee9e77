"""What crosses the proxy: never our cookies to user code or from it; nothing for pages of other origins; what is said at an end."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from yarl import URL

from dashboard.proxy.gate import Target
from dashboard.proxy.headers import cookies, decode, encode, for_aiohttp, to_browser, to_upstream
from dashboard.proxy.path_prefix import NO_PREFIX
from dashboard.proxy.upstream import head
from grid.core.origins import Origins
from grid.executions.ingress import AUTH_PATH, auth_key
from tests.proxy.support import BASE, COOKIE, ORIGIN, OpenToOneSecret, visiting

OUTER_ORIGIN = "https://abc.workspaces.test"
OUTER_COOKIE = {"Cookie": "__Host-grid_workspace=s1"}
ASKED = f"{AUTH_PATH}/abc/{auth_key('abc', 'key-of-abc')}"
FETCH = {"Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "dest", "status"),
    [
        ("navigate", "document", 200),
        ("navigate", "iframe", 403),
        ("no-cors", "image", 403),
        ("no-cors", "script", 403),
        ("cors", "empty", 403),
        ("", "", 403),
    ],
)
async def test_foreign_pages_open_workspace_in_tab_and_load_nothing(
    browser: aiohttp.ClientSession, site: str, mode: str, dest: str, status: int
) -> None:
    asked = {**COOKIE, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    async with browser.get("/lab", headers=asked) as answer:
        assert answer.status == status


async def test_no_other_origin_holds_its_windows_or_frames(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/", headers=COOKIE) as answer:
        headers = answer.headers
    assert headers["Content-Security-Policy"] == "frame-ancestors 'self'"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin-allow-popups"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Origin-Agent-Cluster"] == "?1"


@pytest.mark.parametrize("asked", [{"Service-Worker": "script"}, {"Sec-Fetch-Dest": "serviceworker"}])
async def test_service_worker_is_served_only_where_environment_needs(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret, asked: dict[str, str]
) -> None:
    async with browser.get("/sw.js", headers={**COOKIE, **asked}) as answer:
        assert answer.status == 403
        assert "An admin can allow them" in await answer.text()
    gate.known = replace(gate.known, allows_service_workers=True)
    async with browser.get("/sw.js?v=%22", headers={**COOKIE, **asked}) as answer:
        assert answer.status == 200
        script = (await answer.text()).partition('importScripts("')[2].partition('"')[0]
    async with browser.get(URL(script, encoded=True), headers=COOKIE) as answer:
        assert (await answer.json())["target"] == "/sw.js?v=%22"
    async with browser.get(URL("/__grid__/worker?%00%20", encoded=True), headers=COOKIE) as answer:
        assert (await answer.json())["target"] == "/%00%20"


async def test_visitor_after_the_end_learns_it_and_browser_forgets(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret
) -> None:
    gate.known = replace(gate.known, state="stopped", has_ended=True)
    async with browser.get("/lab", headers=COOKIE) as answer:
        assert answer.status == 410
        assert answer.headers["Clear-Site-Data"] == '"cache", "storage"'
        assert answer.headers.getall("Set-Cookie") == ["theme=; Path=/; Max-Age=0"]
        assert "This has ended (stopped)" in await answer.text()


async def test_ended_execution_clears_nothing_of_a_shared_origin(gate: OpenToOneSecret) -> None:
    gate.known = replace(gate.known, has_ended=True)
    headers = {"Host": "workspaces.test:8001", "Cookie": "grid_workspace_abc=s1; theme=dark"}
    shared = visiting(gate, origins=Origins(BASE, by_path=True), headers=headers)
    async with shared as browser, browser.get("/w/abc/lab") as answer:
        assert answer.status == 410
        assert not {"Clear-Site-Data", "Set-Cookie"} & set(answer.headers)


async def test_execution_launched_for_other_addresses_says_so(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret
) -> None:
    gate.known = replace(gate.known, base_url="/w/abc/")
    async with browser.get("/", headers=COOKIE) as answer:
        assert answer.status == 409
        assert "launch it again" in await answer.text()


@pytest.mark.parametrize("path", ["/", "/__grid__/open?ticket=t1"])
async def test_unresponsive_database_is_reported_and_nobody_passes(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret, path: str
) -> None:
    gate.answers = False
    async with browser.get(path, headers={"Cookie": "grid_workspace=s1; grid_opener=o1"}) as answer:
        assert answer.status == 503
        page = await answer.text()
    assert "The database does not answer" in page
    # The ticket may be used up, so opening begins anew.
    assert ("/__grid__/begin" in page) is ("open" in path)


@pytest.mark.parametrize(
    ("path", "problem", "status"), [("healthz", "no", 200), ("readyz", "", 200), ("readyz", "no", 503)]
)
async def test_probes_are_answered_on_any_host(gate: OpenToOneSecret, path: str, problem: str, status: int) -> None:
    at_its_address = visiting(gate, problem=problem, headers={"Host": "10.0.0.9:8001"})
    async with at_its_address as browser, browser.get(f"/__grid__/{path}") as answer:
        assert (answer.status, await answer.text()) == (status, problem if status == 503 else "ok")


async def test_message_of_a_websocket_is_use(browser: aiohttp.ClientSession, gate: OpenToOneSecret) -> None:
    async with browser.ws_connect("/ws", headers=COOKIE, origin=ORIGIN) as ws:
        assert gate.used_by == []
        await ws.send_str("hello")
        await ws.receive(timeout=10)
        assert len(gate.used_by) == 1


def upstream(*headers: tuple[str, str]) -> dict[str, str]:
    given: dict[str, Any] = {"token": "t0ken", "scheme": "http", "client": "127.0.0.9"}
    return dict(to_upstream(list(headers), **given, path_prefix=NO_PREFIX, for_front=[]))


def to_a_browser(*headers: tuple[str, str]) -> list[tuple[str, str]]:
    """What passes of these, without what every answer gets."""
    always = to_browser([])
    return decode(header for header in to_browser(encode([*headers])) if header not in always)


def test_our_cookies_stay_here_and_user_codes_cookies_pass() -> None:
    sent = upstream(("cookie", "grid_session=a; _xsrf=b; grid_workspace_x=c; theme=d=e"))
    assert sent["cookie"] == "_xsrf=b; theme=d=e"
    assert "cookie" not in upstream(("cookie", "grid_session=a"))


def test_the_pods_token_replaces_what_the_browser_claims() -> None:
    sent = upstream(("authorization", "token mine"), ("x-forwarded-for", "8.8.8.8"))
    assert sent["authorization"] == "token t0ken"
    assert sent["x-forwarded-for"] == "127.0.0.9"


def test_connection_headers_end_here() -> None:
    sent = upstream(("connection", "keep-alive, X-Secret"), ("x-secret", "1"), ("upgrade", "h2c"), ("accept", "*/*"))
    assert "x-secret" not in sent
    assert "upgrade" not in sent
    assert "connection" not in sent
    assert sent["accept"] == "*/*"


def test_user_code_cannot_set_our_cookies_or_a_domain() -> None:
    passed = to_a_browser(
        ("Set-Cookie", "grid_session=stolen; Path=/"),
        ("Set-Cookie", "_xsrf=1; Domain=.example.org; Path=/w/x/"),
        ("Content-Type", "text/html"),
    )
    assert passed == [("set-cookie", "_xsrf=1; Path=/w/x/"), ("content-type", "text/html")]


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ('a="x; Domain=example.org; y"', 'a="x; y"'),
        ("a=1; Partitioned; Priority=High; Secure", "a=1; Partitioned; Priority=High; Secure"),
        ('a={"x": 1}; DOMAIN =example.org', 'a={"x": 1}'),
        ("=grid_workspace=1", ""),
        ("grid_workspace", ""),
        (" Grid_workspace =1", ""),
    ],
)
def test_a_cookie_is_read_as_browsers_read_it(given: str, passed: str) -> None:
    assert to_a_browser(("Set-Cookie", given)) == ([("set-cookie", passed)] if passed else [])


def test_utf8_header_reaches_the_program_unchanged() -> None:
    raw = decode([(b"X-Name", "Zoë 日本".encode())])
    assert "x-name: Zoë 日本\r\n".encode() in head("GET", "/", raw)
    assert for_aiohttp(raw) == [("x-name", "Zoë 日本")]  # of a websocket


def test_user_code_says_nothing_that_reaches_beyond_its_workspace() -> None:
    passed = to_a_browser(
        ("Clear-Site-Data", '"cookies"'),
        ("Strict-Transport-Security", "max-age=9; includeSubDomains"),
        ("Origin-Agent-Cluster", "?0"),
        ("Cache-Control", "no-store"),
    )
    assert passed == [("cache-control", "no-store")]


@pytest.mark.parametrize("value", ["a\rSet-Cookie: grid_workspace_x=1", "a\n b", "a\x00b"])
def test_header_containing_a_line_end_is_dropped(value: str) -> None:
    assert to_a_browser(("X-Split", value), ("X-Whole", "a\tb")) == [("x-whole", "a\tb")]


def test_a_cookie_that_cannot_be_parsed_is_absent() -> None:
    assert cookies([("cookie", "=; ;;a;b=1")]) == {"": "", "b": "1"}


@pytest.fixture
async def ingress() -> AsyncIterator[aiohttp.ClientSession]:
    gate = OpenToOneSecret(address=Target("127.0.0.1", 8888, front_port=19080))
    async with visiting(gate, origins=Origins("https://workspaces.test")) as session:
        yield session


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (FETCH, 200),
        ({"Origin": OUTER_ORIGIN}, 200),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({}, 403),
        ({"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403),
        *(({"Origin": origin}, 403) for origin in ("https://abd.workspaces.test", "null", OUTER_ORIGIN + ":444")),
        ({**FETCH, "Origin": "https://abd.workspaces.test"}, 403),
    ],
)
async def test_auth_request_without_visitor_is_refused(
    ingress: aiohttp.ClientSession, headers: dict[str, str], status: int
) -> None:
    async with ingress.get(f"{ASKED}/ws", headers={**OUTER_COOKIE, **headers}) as answer:
        assert answer.status == status


async def test_method_comes_from_auth_request_and_not_visitor(ingress: aiohttp.ClientSession) -> None:
    link = {**OUTER_COOKIE, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    forged = {"X-Original-Method": "GET", "X-Original-URL": f"{OUTER_ORIGIN}/"}
    for method, status in (("GET", 200), ("POST", 403)):
        async with ingress.request(method, f"{ASKED}/x", headers={**link, **forged}) as answer:
            assert answer.status == status
