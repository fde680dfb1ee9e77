"""What a cluster's web page can do to another one in a real browser, where all executions share one origin by path."""

from collections.abc import Iterator

import pytest
from aiohttp import web
from playwright.sync_api import Browser, Page, expect

from tests.browser.several_origins import Answer, Executions, Served, served

HOSTILE = """<!doctype html><title>Jobs</title><p>Nothing to see.</p><script>
const tried = [];
const note = (what) => { tried.push(what); document.querySelector("p").textContent = tried.join(", "); };
fetch("/w/victim/logical/kill_actor?id=1").then(() => note("fetched"), () => note("not fetched"));
note(window.open("/w/victim/") ? "opened" : "not opened");
history.replaceState(null, "", "/w/victim/jobs");
note(`called ${location.pathname}`);
window.lead = () => { location = "/w/victim/logical/kill_actor?id=1"; };
</script>"""


def hostile(request: web.Request) -> web.Response:
    return web.Response(text=HOSTILE, content_type="text/html")


def victim(request: web.Request) -> web.Response:
    return web.Response(text="<!doctype html><title>Victim</title><p>Done.</p>", content_type="text/html")


@pytest.fixture
def clusters() -> Iterator[Served]:
    programs: dict[str, Answer] = {"hostile": hostile, "victim": victim}
    with served(Executions(programs, by_path=True, component="head")) as started:
        yield started


@pytest.fixture
def page(chromium: Browser, clusters: Served) -> Iterator[Page]:
    context = chromium.new_context()
    context.add_cookies(clusters.cookies())  # type: ignore[arg-type]
    yield context.new_page()
    context.close()


def ended(clusters: Served) -> list[tuple[str, str]]:
    return [call for call in clusters.executions.reached if "kill" in call[1]]


def test_cluster_page_ends_nothing_of_another_without_consent(page: Page, clusters: Served) -> None:
    page.goto(clusters.address("hostile"))
    expect(page.locator("p")).to_contain_text("not opened")
    expect(page.locator("p")).to_contain_text("not fetched")
    expect(page.locator("p")).to_contain_text("called /w/victim/jobs")
    page.evaluate("lead()")
    expect(page.locator("h1")).to_have_text("End it?")
    page.get_by_role("link", name="go back").click()
    expect(page).to_have_title("Victim")
    assert ended(clusters) == []
    page.goto(clusters.address("hostile"))
    page.evaluate("lead()")
    page.get_by_role("link", name="End it").click()
    expect(page.locator("p")).to_have_text("Done.")
    assert ended(clusters) == [("victim", "/w/victim/logical/kill_actor")]
