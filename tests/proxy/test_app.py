"""The proxy between real servers on loopback: streaming, websockets, and nothing for whoever has no grant."""

import asyncio
import logging
import socket
from dataclasses import replace

import aiohttp
import pytest
from yarl import URL

from dashboard.proxy.gate import Target
from grid.core.origins import Origins
from grid.sharing.grants import digest
from tests.proxy.support import BASE, COOKIE, ORIGIN, OpenToOneSecret, UserServer, visiting


async def test_a_ticket_becomes_a_cookie_of_that_host_only(browser: aiohttp.ClientSession) -> None:
    opener = {"Cookie": "grid_opener=o1"}
    async with browser.get("/__grid__/open?ticket=t1", headers=opener, allow_redirects=False) as answer:
        assert answer.status == 303
        assert answer.headers["Location"] == f"{ORIGIN}/"
        cookie, forgotten = answer.headers.getall("Set-Cookie")
        assert forgotten == "grid_opener=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        assert cookie == "grid_workspace=s1; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"


@pytest.mark.parametrize(
    ("by_path", "root", "cookie"),
    [
        (False, f"{ORIGIN}/", "grid_opener=o1"),
        (False, f"{ORIGIN}/", "grid_opener=of-the-other-tab; grid_workspace=s1"),
        (True, f"{BASE}/w/abc/", "grid_opener_abc=o1"),
    ],
)
async def test_open_leads_to_start_path_below_program_root(
    gate: OpenToOneSecret, by_path: bool, root: str, cookie: str
) -> None:
    gate.known = replace(gate.known, start_path="/lab?folder=/mnt/project")
    headers = {"Host": URL(root).authority, "Cookie": cookie}
    path = f"{URL(root).path}__grid__/open?ticket=t1"
    async with (
        visiting(gate, origins=Origins(BASE, by_path=by_path), headers=headers) as browser,
        browser.get(path, allow_redirects=False) as answer,
    ):
        assert answer.headers["Location"] == f"{root}lab?folder=/mnt/project"
        # Two tabs that are opened at once share their cookies: what one is given opens both.
        assert ("Set-Cookie" in answer.headers) is ("of-the-other-tab" not in cookie)


async def test_on_https_no_other_host_can_set_our_cookies(gate: OpenToOneSecret) -> None:
    """Browsers take `__Host-` cookies without a Domain only: https://www.rfc-editor.org/rfc/rfc6265#section-4.1.3"""
    async with visiting(gate, origins=Origins("https://workspaces.test:8001")) as browser:
        opener = {"Cookie": "grid_opener=o1; __Host-grid_opener=o1"}
        async with browser.get("/__grid__/open?ticket=t1", headers=opener, allow_redirects=False) as answer:
            cookie = answer.headers.getall("Set-Cookie")[0]
        assert cookie == "__Host-grid_workspace=s1; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure"
        async with browser.get("/", headers={"Cookie": "grid_workspace=s1"}) as answer:
            assert answer.status == 403
        async with browser.get("/", headers={"Cookie": "__Host-grid_workspace=s1; __host-Grid_x=1; a=b"}) as answer:
            assert (await answer.json())["headers"]["cookie"] == "a=b"


async def test_opening_sets_a_short_lived_opener_cookie(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/__grid__/begin", allow_redirects=False) as answer:
        assert answer.status == 303
        name, _, rest = answer.headers["Set-Cookie"].partition("=")
        opener = rest.partition(";")[0]
        assert name == "grid_opener"
        assert "Path=/; Max-Age=60; HttpOnly; SameSite=Lax" in rest
        assert answer.headers["Location"] == f"https://grid.test/executions/abc/opening/?opener={digest(opener)}"
    async with browser.get("/__grid__/begin", allow_redirects=False) as answer:
        assert opener not in answer.headers["Set-Cookie"]


async def test_fetches_after_session_end_replace_no_opener(browser: aiohttp.ClientSession) -> None:
    for mode in ("cors", "no-cors", "same-origin", "websocket"):
        async with browser.get("/__grid__/begin", headers={"Sec-Fetch-Mode": mode}, allow_redirects=False) as answer:
            assert (answer.status, answer.headers.get("Set-Cookie")) == (403, None)
            assert "Reload the page" in await answer.text()
    async with browser.get("/__grid__/begin", headers={"Sec-Fetch-Mode": "navigate"}, allow_redirects=False) as answer:
        assert answer.status == 303


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/__grid__/open?ticket=wrong", {}),
        ("/__grid__/open?ticket=t1", {}),
        ("/__grid__/open?ticket=t1", {"Cookie": "grid_opener=another"}),
    ],
)
async def test_without_a_grant_every_address_gives_the_same_403(
    browser: aiohttp.ClientSession, path: str, headers: dict[str, str]
) -> None:
    async with browser.get("/", headers={"Host": "nonsense.workspaces.test:8001"}) as answer:
        expected = (await answer.text()).replace("/executions/nonsense/", "/executions/abc/")
    async with browser.get(path, headers=headers) as answer:
        assert answer.status == 403
        assert await answer.text() == expected


@pytest.mark.parametrize(
    "host", ["workspaces.test:8001", "other.workspaces.test:8001", "abc.workspaces.test", "abc.evil.test:8001", ""]
)
async def test_secret_of_an_execution_opens_no_other_host(browser: aiohttp.ClientSession, host: str) -> None:
    async with browser.get("/", headers={**COOKIE, "Host": host}) as answer:
        assert answer.status == 403


@pytest.mark.parametrize("path", ["/w/abc/lab/tree/a%2Fb?x=%26", "/w/abc//evil.test/"])
async def test_old_path_address_leads_to_the_new_one(browser: aiohttp.ClientSession, path: str) -> None:
    old = {**COOKIE, "Host": "workspaces.test:8001"}
    async with browser.get(URL(path, encoded=True), headers=old, allow_redirects=False) as answer:
        assert answer.status == 303
        assert answer.headers["Location"] == f"{ORIGIN}/{path.removeprefix('/w/abc').lstrip('/')}"
    async with browser.post(URL(path, encoded=True), headers=old, allow_redirects=False) as answer:
        assert answer.status == 403


async def test_a_request_reaches_the_pod_unchanged_but_for_identity(browser: aiohttp.ClientSession) -> None:
    async with browser.put(
        "/files/a%2Fb%20c?x=%26&y", data=b"z" * 300_000, headers={**COOKIE, "Authorization": "token stolen"}
    ) as answer:
        seen = await answer.json()
        assert "Set-Cookie" not in answer.headers, "the program's forgery of the dashboard's cookie"
    assert seen["method"] == "PUT"
    assert seen["target"].startswith("/files/a%2Fb%20c?x=%26&y")
    assert seen["length"] == 300_000
    assert seen["headers"]["authorization"] == "token token-of-abc"
    assert seen["headers"]["cookie"] == "theme=dark"


@pytest.mark.parametrize(
    ("method", "path", "sent", "uses"),
    [
        ("GET", "/", {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-User": "?1"}, 1),
        ("GET", "/", {"Sec-Fetch-Mode": "navigate"}, 0),  # it reloads itself
        ("POST", "/api/sessions", {}, 1),
        ("PUT", "/lab/api/workspaces/default", {}, 0),
    ],
)
async def test_opened_page_is_use_and_reloading_page_is_not(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret, method: str, path: str, sent: dict[str, str], uses: int
) -> None:
    async with browser.request(method, path, headers={**COOKIE, "Origin": ORIGIN, **sent}) as answer:
        assert answer.status == 200
    assert len(gate.used_by) == uses


async def test_an_answer_is_streamed_while_it_is_made(
    browser: aiohttp.ClientSession, pod: tuple[UserServer, Target]
) -> None:
    async with browser.get("/stream", headers=COOKIE) as answer:
        assert await answer.content.readexactly(5) == b"first"
        pod[0].release.set()
        assert await answer.content.read() == b"second"


async def test_endless_answer_ends_with_its_permission(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret, pod: tuple[UserServer, Target]
) -> None:
    async with browser.get("/stream", headers=COOKIE) as answer:
        assert await answer.content.readexactly(5) == b"first"
        gate.close()
        with pytest.raises(aiohttp.ClientPayloadError):
            await asyncio.wait_for(answer.content.read(), 10)
    await asyncio.wait_for(pod[0].left.wait(), 10)


async def test_websocket_messages_pass_both_ways_with_the_chosen_protocol(browser: aiohttp.ClientSession) -> None:
    async with browser.ws_connect("/ws", headers=COOKIE, origin=ORIGIN, protocols=["other", "v1.kernel"]) as ws:
        assert ws.protocol == "v1.kernel"
        await ws.send_str("hello")
        assert await ws.receive_str(timeout=10) == "token token-of-abc hello"
        await ws.send_bytes(b"abc" * 100_000)
        assert await ws.receive_bytes(timeout=10) == b"cba" * 100_000
        await ws.send_str("close 4001")
        assert (await ws.receive(timeout=10)).type is aiohttp.WSMsgType.CLOSE
        assert ws.close_code == 4001


async def test_leaving_browser_ends_pod_websocket_without_program_failure(
    browser: aiohttp.ClientSession, pod: tuple[UserServer, Target], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dashboard.proxy")
    ws = await browser.ws_connect("/ws", headers=COOKIE, origin=ORIGIN)
    await ws.close()
    await asyncio.wait_for(pod[0].left.wait(), 10)
    async with browser.get("/", headers=COOKIE) as answer:
        assert answer.status == 200
    assert [record.getMessage() for record in caplog.records if record.name.startswith("dashboard.")] == []


@pytest.mark.parametrize(
    ("headers", "origin"),
    [
        (COOKIE, "http://evil.test"),
        (COOKIE, "http://other.workspaces.test:8001"),
        (COOKIE, BASE),
        (COOKIE, None),
        ({}, ORIGIN),
    ],
)
async def test_a_websocket_needs_the_grant_and_our_own_origin(
    browser: aiohttp.ClientSession, headers: dict[str, str], origin: str | None
) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await browser.ws_connect("/ws", headers=headers, origin=origin)
    assert refused.value.status == 403


@pytest.mark.parametrize(
    ("method", "origin", "status"),
    [
        ("POST", ORIGIN, 200),
        ("POST", "http://other.workspaces.test:8001", 403),
        ("DELETE", "null", 403),
        ("GET", "http://other.workspaces.test:8001", 200),
    ],
)
async def test_page_of_another_origin_changes_nothing(
    browser: aiohttp.ClientSession, method: str, origin: str, status: int
) -> None:
    async with browser.request(method, "/api/contents", headers={**COOKIE, "Origin": origin}) as answer:
        assert answer.status == status


async def test_open_websocket_closes_with_its_permission(browser: aiohttp.ClientSession, gate: OpenToOneSecret) -> None:
    async with browser.ws_connect("/ws", headers=COOKIE, origin=ORIGIN) as ws:
        gate.close()
        await ws.receive(timeout=10)
        assert ws.close_code == 1008


async def test_owner_sees_why_workspace_is_not_ready(browser: aiohttp.ClientSession, gate: OpenToOneSecret) -> None:
    gate.address = None
    async with browser.get("/", headers=COOKIE) as answer:
        assert answer.status == 503
        assert "This execution is preparing. Its image is pulled." in await answer.text()


async def test_owner_sees_that_the_program_does_not_answer(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret
) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and nobody listens there
        gate.address = Target("127.0.0.1", deaf.getsockname()[1])
        async with browser.get("/", headers=COOKIE) as answer:
            assert answer.status == 502
            assert "did not answer" in await answer.text()
