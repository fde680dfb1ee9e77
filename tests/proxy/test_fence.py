"""What pages of other origins can do at an execution, service workers, its end, and what is said when nobody can pass."""

from dataclasses import replace

import aiohttp
import pytest
from yarl import URL

from grid.core.origins import Origins
from tests.proxy.support import BASE, COOKIE, ORIGIN, OpenToOneSecret, visiting


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
