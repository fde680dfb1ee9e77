"""A cluster's web page through the proxy where all executions share one origin: its paths, redirects, cookies, scripts and websockets."""

import hmac
import html
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given, strategies as st
from yarl import URL

from dashboard.proxy.gate import Target
from dashboard.proxy.headers import decode, to_browser, to_upstream
from dashboard.proxy.path_prefix import NO_PREFIX, PathPrefix
from grid.core.origins import Origins
from grid.sharing.grants import Passage
from tests.proxy.support import OpenToOneSecret, visiting

ORIGIN = "http://workspaces.test:8001"
COOKIE = {"Cookie": "grid_workspace_abc=s1", "Host": "workspaces.test:8001"}
PASSAGE = Passage("abc", "running", "", 8265, base_url="/w/abc/", component="head", strips_prefix=True)
STRIPPED = PathPrefix("/w/abc", strips=True, origin="http://w.test:8001", netloc="127.0.0.9:8265")
KEPT = PathPrefix("/w/abc", strips=False, origin="http://w.test:8001", netloc="127.0.0.9:8787")
OUT = ("/w/victim/", "../../victim/", "//w.test:8001/w/victim/", "http://w.test:8001/w/victim/")


async def _home(request: web.Request) -> web.Response:
    return web.json_response({"target": request.raw_path, "prefix": request.headers.get("X-Forwarded-Prefix", "")})


async def _old(request: web.Request) -> web.Response:
    raise web.HTTPFound("/app/")


async def _out(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": f"http://{request.headers['Host']}/w/victim/"})


async def _socket(request: web.Request) -> web.WebSocketResponse:
    ws = web.WebSocketResponse(protocols=["bokeh"])
    await ws.prepare(request)
    async for message in ws:
        await ws.send_str(f"{request.path} {message.data}")
    return ws


@pytest.fixture
async def program() -> AsyncIterator[Target]:
    """What stands at the root, as Ray's and Spark's pages do."""
    app = web.Application()
    app.router.add_get("/", _home)
    for path in ("/app/", "/jobs/job/", "/jobs/job/kill/", "/kill/"):
        app.router.add_get(path, _home)
        app.router.add_post(path, _home)
    app.router.add_get("/old", _old)
    app.router.add_get("/out", _out)
    app.router.add_get("/status/ws", _socket)
    app.router.add_get("/w/abc/status/ws", _socket)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield Target("127.0.0.1", runner.addresses[0][1])
    await runner.cleanup()


@pytest.fixture
def gate(program: Target) -> OpenToOneSecret:
    return OpenToOneSecret(PASSAGE, program)


@pytest.fixture
async def browser(gate: OpenToOneSecret) -> AsyncIterator[aiohttp.ClientSession]:
    async with visiting(gate, origins=Origins(ORIGIN, by_path=True), headers=COOKIE) as session:
        yield session


@pytest.fixture
async def own(gate: OpenToOneSecret) -> AsyncIterator[aiohttp.ClientSession]:
    """As it is served on an origin of its own."""
    gate.known = replace(PASSAGE, base_url="/")
    headers = {"Cookie": "grid_workspace=s1", "Host": "abc.workspaces.test:8001"}
    async with visiting(gate, headers=headers) as session:
        yield session


async def test_root_based_page_works_below_the_prefix(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/w/abc/?job=%26") as answer:
        assert await answer.json() == {"target": "/?job=%26", "prefix": "/w/abc"}
        # The owner's browser too is kept to the page: other members' code makes it as well.
        assert "connect-src http://workspaces.test:8001/w/abc/" in answer.headers["Content-Security-Policy"]


async def test_its_redirects_stay_below_the_prefix(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/w/abc/old", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, "/w/abc/app/")
    async with browser.get("/w/abc/old") as followed:
        assert (await followed.json())["target"] == "/app/"
    async with browser.get("/w/abc/out", headers={"Host": "workspaces.test:8001"}, allow_redirects=False) as answer:
        assert answer.headers["Location"] == "/w/abc/w/victim/"


@pytest.mark.parametrize(("strips", "path"), [(True, "/status/ws"), (False, "/w/abc/status/ws")])
async def test_its_websockets_pass_with_and_without_the_prefix(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret, strips: bool, path: str
) -> None:
    gate.known = replace(PASSAGE, strips_prefix=strips)
    async with browser.ws_connect("/w/abc/status/ws", origin=ORIGIN, protocols=["bokeh"]) as ws:
        assert ws.protocol == "bokeh"
        await ws.send_str("hello")
        assert await ws.receive_str(timeout=10) == f"{path} hello"


OPENED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_foreign_link_opens_the_page_without_its_query(browser: aiohttp.ClientSession, site: str) -> None:
    """Spark's and Ray's pages end jobs by links."""
    led = {"Sec-Fetch-Site": site, **OPENED}
    async with browser.get("/w/abc/app/?kill=1", headers=led, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, f"{ORIGIN}/w/abc/")
    async with browser.get("/w/abc/app/", headers=led) as answer:
        assert (await answer.json())["target"] == "/app/"


@pytest.mark.parametrize(("mode", "dest"), [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("", "")])
@pytest.mark.parametrize("path", ["/w/abc/app/?kill=1", "/w/abc/"])
async def test_foreign_page_loads_nothing_from_a_cluster(
    browser: aiohttp.ClientSession, mode: str, dest: str, path: str
) -> None:
    loaded = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    async with browser.get(path, headers=loaded, allow_redirects=False) as answer:
        assert answer.status == 403


KILL = "/w/abc/jobs/job/kill/?id=1&x=%26"
LED = {"Sec-Fetch-Site": "same-origin", "Referer": f"{ORIGIN}/w/abc/jobs/", **OPENED}


async def test_link_ending_a_job_asks_for_confirmation(browser: aiohttp.ClientSession) -> None:
    """Its page can say that it is any other page of this origin."""
    async with browser.get(URL(KILL, encoded=True), headers=LED) as answer:
        page = await answer.text()
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-") and policy.endswith(
            "; frame-ancestors 'none'"
        )
    assert "This link ends something that runs on the cluster" in page
    yes = html.unescape(page.partition('<a href="')[2].partition('"')[0])
    async with browser.get(URL(yes, encoded=True), headers=LED) as answer:
        assert (await answer.json())["target"] == KILL.removeprefix("/w/abc")


async def test_confirmation_is_bound_to_its_link_and_person(browser: aiohttp.ClientSession) -> None:
    async with browser.get(URL(KILL, encoded=True), headers=LED) as answer:
        proof = (await answer.text()).partition("__grid_confirmed__=")[2].partition('"')[0]
    for wrong in (
        f"/w/abc/jobs/job/kill/?id=2&__grid_confirmed__={proof}",
        f"{KILL}&__grid_confirmed__=",
        f"{KILL}&__grid_confirmed__=%C3%A9",
        f"{KILL}&__grid_confirmed__={hmac.new(b's2', KILL.encode(), 'sha256').hexdigest()}",
    ):
        async with browser.get(URL(wrong, encoded=True), headers=LED) as answer:
            assert "End it?" in await answer.text(), wrong


@pytest.mark.parametrize(
    ("path", "mode"), [(KILL, "cors"), ("/w/abc/jobs/job/?id=1", "navigate"), ("/w/abc/kill/", "navigate")]
)
async def test_harmless_links_and_own_scripts_need_no_confirmation(
    browser: aiohttp.ClientSession, path: str, mode: str
) -> None:
    asked = {**LED, "Sec-Fetch-Mode": mode}
    async with browser.get(URL(path, encoded=True), headers=asked) as answer:
        assert (await answer.json())["target"] == path.removeprefix("/w/abc")


async def test_a_clusters_own_form_is_not_asked_about(browser: aiohttp.ClientSession) -> None:
    """Spark's button; another page's form is refused."""
    async with browser.post(URL(KILL, encoded=True), headers={**LED, "Origin": ORIGIN}, data={"id": "1"}) as answer:
        assert (await answer.json())["target"] == KILL.removeprefix("/w/abc")
    async with browser.post(URL(KILL, encoded=True), headers={**LED, "Origin": "http://evil.test"}) as answer:
        assert answer.status == 403


async def test_own_origin_passes_requests_unchanged(own: aiohttp.ClientSession) -> None:
    async with own.get("/?job=%26") as answer:
        assert await answer.json() == {"target": "/?job=%26", "prefix": ""}
    async with own.get("/out", allow_redirects=False) as answer:
        assert answer.headers["Location"] == "http://abc.workspaces.test:8001/w/victim/"
    async with own.get(URL(KILL.removeprefix("/w/abc"), encoded=True), headers={**LED, "Referer": ""}) as answer:
        assert (await answer.json())["target"] == KILL.removeprefix("/w/abc")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_page_of_another_cluster_is_foreign_on_own_origin(own: aiohttp.ClientSession, site: str) -> None:
    led = {"Sec-Fetch-Site": site, **OPENED}
    async with own.get("/jobs/job/kill/?id=1", headers=led, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "http://abc.workspaces.test:8001/")


@pytest.mark.parametrize(
    ("target", "asked"),
    [("/w/abc/", "/"), ("/w/abc/api/jobs?a=%2F", "/api/jobs?a=%2F"), ("/w/abc//x", "//x"), ("/w/abc/?x=1", "/?x=1")],
)
def test_root_program_is_requested_without_the_prefix(target: str, asked: str) -> None:
    assert STRIPPED.asked(target) == asked
    assert KEPT.asked(target) == target


@pytest.mark.parametrize(
    ("location", "asked", "seen"),
    [
        ("/jobs/", "/", "/w/abc/jobs/"),
        ("jobs/?a=1#x", "/api/", "/w/abc/api/jobs/?a=1#x"),
        ("http://127.0.0.9:8265/app/", "/", "/w/abc/app/"),
        ("http://w.test:8001/app/", "/", "/w/abc/app/"),
        ("http://W.TEST:8001", "/x", "/w/abc/"),
        ("/w/abc/app", "/", "/w/abc/app"),
        ("/w/abcd/app", "/", "/w/abc/w/abcd/app"),
    ],
)
def test_redirects_stay_below_the_prefix_that_was_taken_off(location: str, asked: str, seen: str) -> None:
    assert STRIPPED.location(location, asked=asked) == seen


def test_a_redirect_that_repeats_the_prefix_means_it_once() -> None:
    """Dask's scheduler answers so at the root of its page."""
    assert KEPT.location("w/abc/status", asked="/w/abc/") == "/w/abc/status"


@pytest.mark.parametrize("path_prefix", [STRIPPED, KEPT])
@pytest.mark.parametrize("location", OUT)
def test_no_redirect_leads_to_another_execution(path_prefix: PathPrefix, location: str) -> None:
    rewritten = path_prefix.location(location, asked=path_prefix.asked("/w/abc/x"))
    assert rewritten is None or rewritten.startswith("/w/abc/")


@pytest.mark.parametrize(
    "location",
    ["\\\\w.test:8001/w/victim/", "/\\w.test:8001/w/victim/", "http:/w/victim/", "http:w/victim", "///w.test:8001/w/victim/",
     "/w/abc/%2E%2e/victim/", "/\t/w.test:8001/", "javascript:alert(1)", "http://[w/", "HTTP:\\\\w.test:8001\\w"],
)  # fmt: skip
def test_ambiguous_location_is_dropped(location: str) -> None:
    assert STRIPPED.location(location, asked="/") is None


def test_location_of_another_host_is_dropped() -> None:
    assert STRIPPED.location("https://elsewhere.test/", asked="/") is None
    assert STRIPPED.location("http://127.1:8001/w/victim/", asked="/") is None


@given(st.text(max_size=40), st.sampled_from([STRIPPED, KEPT]))
def test_relative_location_stays_below_the_prefix(location: str, path_prefix: PathPrefix) -> None:
    rewritten = path_prefix.location(location, asked=path_prefix.asked("/w/abc/a/b"))
    assert rewritten is None or rewritten == "/w/abc" or rewritten.startswith("/w/abc/")


def test_a_workspace_may_redirect_as_it_likes() -> None:
    assert NO_PREFIX.location("/w/other/", asked="/w/abc/") == "/w/other/"
    assert NO_PREFIX.asked("/w/abc/lab") == "/w/abc/lab"


@pytest.mark.parametrize(
    ("location", "corrected"),
    [
        ("http://10.0.0.7:8888/lab?x=1", "https://abc.w.test/lab?x=1"),
        ("https://abc.w.test/lab", "https://abc.w.test/lab"),
        ("http://10.0.0.7:8888//evil.test/", "https://abc.w.test//evil.test/"),
        ("/lab", "/lab"),
        ("https://login.example.com/?x", "https://login.example.com/?x"),
        ("http://[", "http://["),
    ],
)
def test_pod_address_in_location_is_corrected_on_own_origin(location: str, corrected: str) -> None:
    path_prefix = PathPrefix("", False, "https://abc.w.test", "10.0.0.7:8888")
    assert path_prefix.location(location, asked="/") == corrected


def test_program_gets_only_the_true_removed_prefix() -> None:
    given = [("x-forwarded-prefix", "/evil"), ("x-forwarded-context", "/evil")]
    known: dict[str, Any] = {"token": "t", "scheme": "http", "client": "", "for_front": []}
    sent = to_upstream(given, **known, path_prefix=STRIPPED)
    assert [value for name, value in sent if name in ("x-forwarded-prefix", "x-forwarded-context")] == ["/w/abc"] * 2
    assert "x-forwarded-prefix" not in dict(to_upstream(given, **known, path_prefix=KEPT))


def test_a_cookie_of_a_cluster_stays_with_it() -> None:
    passed = to_browser([(b"Set-Cookie", b"JSESSIONID=1; Path=/; HttpOnly")], path_prefix=STRIPPED)
    assert passed[0] == (b"set-cookie", b"JSESSIONID=1; HttpOnly; Path=/w/abc/")


def test_shared_origin_policy_restricts_reach_of_cluster_page() -> None:
    policy = dict(decode(to_browser([], path_prefix=STRIPPED)))["content-security-policy"]
    assert "connect-src http://w.test:8001/w/abc/ ws://w.test:8001/w/abc/;" in policy
    assert "allow-popups" not in policy
    assert dict(decode(to_browser([], path_prefix=NO_PREFIX)))["content-security-policy"] == "frame-ancestors 'self'"
