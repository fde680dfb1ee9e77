"""What a cluster's web page can do to another one in a real browser, where all executions share one origin by path."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

import pytest
import uvicorn
from aiohttp import web
from playwright.sync_api import Browser, Page, expect

from dashboard.proxy.app import WorkspaceProxy
from dashboard.proxy.gate import Target
from grid.launch.grants import Passage
from grid.origins import Origins

HOSTILE = """<!doctype html><title>Jobs</title><p>Nothing to see.</p><script>
const tried = [];
const note = (what) => { tried.push(what); document.querySelector("p").textContent = tried.join(", "); };
fetch("/w/victim/logical/kill_actor?id=1").then(() => note("fetched"), () => note("not fetched"));
note(window.open("/w/victim/") ? "opened" : "not opened");
history.replaceState(null, "", "/w/victim/jobs");
note(`called ${location.pathname}`);
window.lead = () => { location = "/w/victim/logical/kill_actor?id=1"; };
</script>"""


@dataclass
class TwoClusters:
    """A gate that lets its visitor, their owner, into the clusters `hostile` and `victim`, and what the latter was asked to end."""

    target_port: int = 0
    ended: list[str] = field(default_factory=list)

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        return None

    async def passage(self, execution_id: str, secret: str) -> Passage | None:
        return Passage(execution_id, "running", "", 1, base_url=f"/w/{execution_id}/", component="head")

    def holding(self, execution_id: str, secret: str) -> contextlib.AbstractContextManager[asyncio.Event]:
        return contextlib.nullcontext(asyncio.Event())

    def used(self, passage: Passage) -> None:
        pass

    def target(self, passage: Passage) -> Target | None:
        return Target("127.0.0.1", self.target_port)

    async def answer(self, request: web.Request) -> web.Response:
        if "kill" in request.path:
            self.ended.append(request.raw_path)
        page = HOSTILE if request.path.startswith("/w/hostile/") else "<!doctype html><title>Victim</title><p>Done.</p>"
        return web.Response(text=page, content_type="text/html")


async def no_problem() -> str:
    return ""


@dataclass
class Served:
    clusters: TwoClusters
    origin: str


@pytest.fixture
def served() -> Iterator[Served]:
    clusters, listener = TwoClusters(), socket.create_server(("127.0.0.1", 0))  # waits for the server, so nobody has to
    origin = f"http://localhost:{listener.getsockname()[1]}"  # browsers say where a request comes from on https and on localhost
    proxy = WorkspaceProxy(
        gate=clusters,
        origins=Origins(origin, by_path=True),
        dashboard_origin="http://grid.test",
        token=lambda id: "",
        problem=no_problem,
    )
    server = uvicorn.Server(uvicorn.Config(proxy, lifespan="off", log_level="error"))

    async def serve() -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", clusters.answer)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        clusters.target_port = runner.addresses[0][1]
        await server.serve(sockets=[listener])
        await proxy.close()
        await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    yield Served(clusters, origin)
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


@pytest.fixture
def page(chromium: Browser, served: Served) -> Iterator[Page]:
    context = chromium.new_context(base_url=served.origin)
    for id in ("hostile", "victim"):
        cookie = {"name": f"grid_workspace_{id}", "value": "s", "domain": "localhost", "path": f"/w/{id}/"}
        context.add_cookies([cookie])  # type: ignore[list-item]
    yield context.new_page()
    context.close()


def test_a_clusters_page_ends_nothing_of_another_unless_the_person_says_so(page: Page, served: Served) -> None:
    page.goto("/w/hostile/")
    expect(page.locator("p")).to_contain_text("not opened")
    expect(page.locator("p")).to_contain_text("not fetched")
    expect(page.locator("p")).to_contain_text("called /w/victim/jobs")
    page.evaluate("lead()")
    expect(page.locator("h1")).to_have_text("End it?")
    assert served.clusters.ended == []
    page.get_by_role("link", name="End it").click()
    expect(page.locator("p")).to_have_text("Done.")
    assert served.clusters.ended == ["/w/victim/logical/kill_actor?id=1"]


def test_who_does_not_want_it_goes_back_to_the_clusters_page(page: Page, served: Served) -> None:
    page.goto("/w/hostile/")
    page.evaluate("lead()")
    page.get_by_role("link", name="go back").click()
    expect(page).to_have_title("Victim")
    assert served.clusters.ended == []
