"""What a page that somebody else has planted reaches of a visitor's other workspaces, in a real browser: nothing.

The visitor has a private workspace open in one tab; in another he opens what a member of a shared project has made.
"""

import contextlib
from collections.abc import Callable, Iterator

import pytest
from aiohttp import web
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import StageProcess
from tests.browser.server import password_of
from tests.browser.several_origins import Executions, Served, page, served
from tests.support.http_server import certificate

PRIVATE = """
addEventListener("message", (event) => found.push("message: " + event.data));
localStorage.setItem("secret", "beacon of mine");
setInterval(() => localStorage.setItem("beacon", "mine " + Math.random()), 50);
found.push(window.opener ? "has an opener" : "no opener");
"""
SIBLING = "https://evil.grid.localhost/"


def nothing_planted(request: web.Request) -> web.Response:
    return page()


@pytest.fixture
def executions() -> Executions:
    return Executions({"mine": lambda request: page(PRIVATE, title="Private"), "planted": nothing_planted})


@pytest.fixture
def visitor(chromium: Browser, executions: Executions) -> Iterator[tuple[BrowserContext, Served]]:
    with served(executions) as server, contextlib.closing(chromium.new_context()) as context:
        context.add_cookies(server.cookies())  # type: ignore[arg-type]
        yield context, server


Plant = Callable[[str], Page]


@pytest.fixture
def plant(visitor: tuple[BrowserContext, Served], executions: Executions) -> Plant:
    """Opens the private workspace, then the planted page with that script; `MINE` in it is the former's address."""
    context, served = visitor

    def open_both(script: str) -> Page:
        private = context.new_page()
        private.goto(served.address("mine"))
        expect(private).to_have_title("Private")
        executions.reached.clear()
        planted = script.replace("MINE", served.address("mine"))
        executions.programs["planted"] = lambda request: page(planted, title="Planted")
        opened = context.new_page()
        opened.goto(served.address("planted"))
        return opened

    return open_both


def reached_mine(executions: Executions) -> list[str]:
    return [path for id, path in executions.reached if id == "mine"]


def test_planted_page_learns_of_no_workspace_from_storage(plant: Plant) -> None:
    """JupyterLab's tabs tell each other their ids by events of the storage that they share."""
    planted = plant(
        """
        addEventListener("storage", (event) => found.push(event.key));
        new BroadcastChannel("beacon").onmessage = (event) => found.push(event.data);
        window.stored = Object.keys(localStorage);
        """
    )
    with pytest.raises(Exception, match="Timeout"):  # the private tab writes every 50 ms
        planted.wait_for_function("found.length > 0", timeout=1500)
    assert planted.evaluate("stored") == []


def test_planted_page_reads_and_writes_no_file_of_another(plant: Plant, executions: Executions) -> None:
    planted = plant(
        """
        const ask = (method, mode) => fetch("MINEapi/contents/secret.txt", {method, mode, credentials: "include"})
            .then((answer) => answer.text()).then((text) => found.push("read " + text), () => found.push("refused"));
        const asked = ["cors", "no-cors", "same-origin"].flatMap((mode) => [ask("GET", mode), ask("POST", mode)]);
        Promise.all(asked).then(() => found.push("done"));
        """
    )
    planted.wait_for_function("found.includes('done')")
    assert set(planted.evaluate("found")) <= {"refused", "read ", "done"}
    assert reached_mine(executions) == []


def test_planted_page_starts_no_terminal_in_another(plant: Plant, executions: Executions) -> None:
    planted = plant(
        """
        const socket = new WebSocket("MINEterminals/websocket/1".replace("http", "ws"));
        socket.onmessage = (event) => found.push(event.data);
        socket.onclose = () => found.push("closed");
        """
    )
    planted.wait_for_function("found.length > 0")
    assert planted.evaluate("found") == ["closed"]
    assert reached_mine(executions) == []


def test_planted_page_sends_no_form_to_another(plant: Plant, executions: Executions) -> None:
    planted = plant(
        """
        const form = document.createElement("form");
        Object.assign(form, {method: "post", action: "MINEapi/shutdown"});
        document.body.append(form);
        window.send = () => form.submit();
        """
    )
    planted.evaluate("send()")
    expect(planted).to_have_title("You cannot open this")
    assert reached_mine(executions) == []


def test_planted_page_frames_and_loads_nothing_of_another(plant: Plant, executions: Executions) -> None:
    planted = plant(
        """
        for (const name of ["iframe", "img", "script", "object", "embed"]) {
            const held = document.createElement(name);
            held[name === "object" ? "data" : "src"] = "MINElab?" + name;
            document.body.append(held);
        }
        """
    )
    planted.wait_for_load_state("networkidle")
    assert reached_mine(executions) == []


def test_planted_page_holds_no_window_and_messages_no_other(
    plant: Plant, visitor: tuple[BrowserContext, Served]
) -> None:
    context, _ = visitor
    planted = plant(
        """
        window.opened = null;
        window.open_it = () => { opened = window.open("MINE"); };
        window.shout = () => { try { opened.postMessage("do this", "*"); } catch (error) { found.push(error.name); } };
        """
    )
    with context.expect_page() as popped:
        planted.evaluate("open_it()")
    popup = popped.value
    expect(popup).to_have_title("Private")
    planted.wait_for_function("opened.closed")  # to whoever opened it: the browser has parted the two
    planted.evaluate("shout()")
    assert popup.evaluate("found") == ["no opener"]
    assert popup.evaluate("window.opener") is None


def test_planted_page_sets_no_cookie_sent_to_another(plant: Plant, visitor: tuple[BrowserContext, Served]) -> None:
    context, served = visitor
    planted = plant(
        """
        for (const domain of ["localhost", ".localhost", "mine.localhost"])
            document.cookie = `grid_workspace=theirs; domain=${domain}; path=/`;
        """
    )
    expect(planted).to_have_title("Planted")
    sent = [cookie["value"] for cookie in context.cookies(served.address("mine")) if cookie["name"] == "grid_workspace"]
    assert sent == ["s"]


WORKER = """
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => event.respondWith(
    new Response("<!doctype html><title>Made by the worker</title>", {headers: {"Content-Type": "text/html"}})));
"""
REGISTERS = """
navigator.serviceWorker.register("/sw.js").then(() => navigator.serviceWorker.ready)
    .then(() => found.push("registered"), (error) => found.push(error.name));
"""
MODULE = """navigator.serviceWorker.register("/sw.js", {type: "module"})
    .then(() => found.push("registered"), (error) => found.push(error.name))"""


def program_with_a_worker(request: web.Request) -> web.Response:
    if request.path == "/sw.js":
        return web.Response(text=WORKER, content_type="text/javascript")
    return page(REGISTERS, title="Cluster")


def test_program_gets_no_service_worker_in_its_place(
    visitor: tuple[BrowserContext, Served], executions: Executions
) -> None:
    context, served = visitor
    executions.programs["planted"] = program_with_a_worker
    tab = context.new_page()
    tab.goto(served.address("planted"))
    tab.wait_for_function("found.length > 0")
    assert tab.evaluate("found") != ["registered"]
    tab.reload()
    expect(tab).to_have_title("Cluster")
    executions.allows_service_workers = True  # but no module: what it imports would come before our own listener
    tab.evaluate(MODULE)
    tab.wait_for_function("found.length > 1")
    assert "registered" not in tab.evaluate("found")


def test_allowed_service_workers_serve_files_only_until_execution_ends(
    visitor: tuple[BrowserContext, Served], executions: Executions
) -> None:
    context, served = visitor
    executions.programs["planted"] = program_with_a_worker
    executions.allows_service_workers = True
    tab = context.new_page()
    tab.goto(served.address("planted", "lab/"))
    tab.wait_for_function("found.includes('registered')")
    tab.reload()
    expect(tab).to_have_title("Cluster")
    file = "fetch('/a/file').then((answer) => answer.text())"
    assert "Made by the worker" in tab.evaluate(file)
    executions.ended.add("planted")
    tab.goto(served.address("planted", "lab/"))
    expect(tab).to_have_title("It has ended")
    executions.ended.clear()
    context.add_cookies(served.cookies())  # type: ignore[arg-type]
    executions.programs["planted"] = nothing_planted
    tab.goto(served.address("planted", "lab/"))
    assert "Made by the worker" not in tab.evaluate(file)


def test_stored_data_of_an_origin_goes_when_it_ended(
    visitor: tuple[BrowserContext, Served], executions: Executions
) -> None:
    context, served = visitor
    tab = context.new_page()
    tab.goto(served.address("mine"))
    expect(tab).to_have_title("Private")
    tab.evaluate("() => { document.cookie = 'theirs=1; path=/'; }")
    executions.ended.add("mine")
    for _ in range(2):
        tab.goto(served.address("mine"))
        expect(tab).to_have_title("It has ended")
    assert [cookie["name"] for cookie in context.cookies(served.address("mine"))] == ["grid_workspace"]
    executions.ended.clear()
    executions.programs["mine"] = nothing_planted
    tab.goto(served.address("mine"))
    assert tab.evaluate("localStorage.getItem('secret')") is None


def test_the_end_of_an_execution_closes_no_other_one(chromium: Browser, executions: Executions) -> None:
    """Below a company's domain all executions are one site, whose cookies browsers forget all together when they are told so."""
    executions.ended.add("planted")
    with (
        served(executions, below="people.localhost") as together,
        contextlib.closing(chromium.new_context()) as context,
    ):
        context.add_cookies(together.cookies())  # type: ignore[arg-type]
        tab = context.new_page()
        tab.goto(together.address("planted"))
        expect(tab).to_have_title("It has ended")
        tab.goto(together.address("mine"))
        expect(tab).to_have_title("Private")


@pytest.fixture(scope="module")
def secure_stage(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageProcess]:
    """The dashboard at `https://dash.grid.localhost`, which browsers find on this machine."""
    folder = tmp_path_factory.mktemp("secure")
    certificate(folder, "dash.grid.localhost")
    stage = StageProcess(folder, host="dash.grid.localhost", tls=folder / "certificate.pem")
    try:
        stage.start()
        yield stage
    finally:
        stage.kill()


def _logged_in(chromium: Browser, stage: StageProcess, person: str) -> BrowserContext:
    context = chromium.new_context(base_url=stage.url, ignore_https_errors=True)
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("Username").fill(person)
    page.get_by_label("Password").fill(password_of(person))
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda url: "/login/" not in url)
    page.close()
    return context


def test_sibling_host_cannot_swap_a_session_for_another(chromium: Browser, secure_stage: StageProcess) -> None:
    with (
        contextlib.closing(_logged_in(chromium, secure_stage, "bob")) as attackers,
        contextlib.closing(_logged_in(chromium, secure_stage, "alice")) as victims,
    ):
        theirs = {cookie["name"]: cookie["value"] for cookie in attackers.cookies()}
        session = theirs["__Host-grid_session"]
        tab = victims.new_page()
        tab.route(f"{SIBLING}**", lambda route: route.fulfill(content_type="text/html", body="<title>Evil</title>"))
        tab.goto(SIBLING)
        for name in ("grid_session", "__Host-grid_session", "__host-grid_session", "grid_csrf", "__Host-grid_csrf"):
            for path in ("/", "/executions", "/account"):
                tab.evaluate(
                    "cookie => { document.cookie = cookie; }",
                    f"{name}={session}; domain=grid.localhost; path={path}; secure",
                )
        planted = {cookie["name"] for cookie in victims.cookies() if cookie["domain"] == ".grid.localhost"}
        assert "grid_session" in planted, "the attack itself works"
        assert "__Host-grid_session" not in planted
        for path in ("/", "/executions/", "/account/"):
            tab.goto(secure_stage.url + path)
            expect(tab.locator("body")).to_contain_text("alice")
            expect(tab.locator("body")).not_to_contain_text("bob")
