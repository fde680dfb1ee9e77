"""A member of a project against its owner, in the real JupyterLab: what he plants, and what is left to him when he is removed."""

import base64
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocket, expect

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import PULL, SOON, launch, log_in, open_lab, run_cell, run_in_terminal
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(600)]

PLANTED = (
    ".jupyter/jupyter_server_config.py",
    "jupyter_server_config.py",
    "sitecustomize.py",
    ".ipython/profile_default/startup/a.py",
)
# With what JupyterLab has installed: a page, and a websocket.
APP = """
import asyncio, sys
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler

class Page(RequestHandler):
    def get(self):
        self.write("who leaves")

class Echo(WebSocketHandler):
    def on_message(self, message):
        self.write_message("echo " + message)

async def serve():
    Application([("/", Page), ("/ws", Echo)]).listen(int(sys.argv[1]), "0.0.0.0")
    await asyncio.Event().wait()

asyncio.run(serve())
"""
CUT_WITHIN = 2_000  # milliseconds


def test_removed_member_is_cut_off_and_takes_nothing_over(grid: Grid, browser: Browser) -> None:
    grid.start()
    member, owner = log_in(browser, grid, "colleague"), log_in(browser, grid, "scientist")
    members_lab = launch_and_open(member, "Plants")
    plant(grid, members_lab)

    owners_lab = launch_and_open(owner, "Opened with planted files beside it")
    run_cell(owners_lab, "open('result.txt', 'w').write('done')", "4")
    run_in_terminal(owners_lab, "bash -l -i -c true")
    assert not (project(grid) / "witness").exists(), (project(grid) / "witness").read_text()
    keeps_no_secret_of(grid, members_lab, owners_lab)

    app = opens_a_shared_app(owner, owners_lab, member)
    terminal = open_terminal(members_lab)
    remove_colleague(log_in(browser, grid, "admin").new_page())
    if not terminal.is_closed():
        terminal.wait_for_event("close", timeout=CUT_WITHIN)
    for page in (members_lab, app):
        refusal = page.reload()
        assert refusal is not None
        assert refusal.status == 403
    assert "owner goes on" in run_in_terminal(owners_lab, "echo owner goes on")


def project(grid: Grid) -> Path:
    """What its members share."""
    return grid.folder_of("project-churn")


def launch_and_open(person: BrowserContext, title: str) -> Page:
    page = person.new_page()
    launch(page, tier="Small", title=title)
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    return open_lab(person, page)


def plant(grid: Grid, lab: Page) -> None:
    """From a terminal of his own, which is all that he has: whatever runs one of them adds its name to a file."""
    for name in PLANTED:
        code = f"open('{project(grid)}/witness', 'a').write('{name}')"
        folder = name.rpartition("/")[0] or "."
        run_in_terminal(lab, f"""cd {project(grid)} && mkdir -p {folder} && echo "{code}" > {name}""")
    assert all((project(grid) / name).read_text().startswith("open(") for name in PLANTED)


def keeps_no_secret_of(grid: Grid, *labs: Page) -> None:
    """Neither a token nor what a server writes while it runs lies among the shared files."""
    files = [path for path in project(grid).rglob("*") if path.is_file()]
    kept = {str(path.relative_to(project(grid))) for path in files} - set(PLANTED)
    assert {name for name in kept if "ipynb" not in name} == {"result.txt"}
    for lab in labs:
        token = re.search(r"token=(\w{20,})", run_in_terminal(lab, "echo token=$JUPYTER_TOKEN"))
        assert token
        assert not any(token[1].encode() in path.read_bytes() for path in files)


def opens_a_shared_app(owner: BrowserContext, lab: Page, member: BrowserContext) -> Page:
    """A port of the owner's workspace, shared before anything listens there: the member is told how to start it, and then uses it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    id = urlsplit(lab.url).netloc.partition(".")[0]
    page = owner.new_page()
    page.goto(f"/workspaces/{id}/share/")
    page.get_by_label("Port").fill(str(port))
    page.get_by_label("Name").fill("Who leaves")
    page.get_by_label("colleague").check()
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_text("Who leaves is shared with colleague.")).to_be_visible()

    home = member.new_page()
    home.goto("/")
    with member.expect_page() as opened:
        home.get_by_role("button", name="Open Who leaves").click()
    app = opened.value
    expect(app.get_by_text(f"Nothing answers on port {port}")).to_be_visible(timeout=SOON)
    code = base64.b64encode(APP.encode()).decode()
    run_in_terminal(lab, f"echo {code} | base64 -d > ~/app.py; (python ~/app.py {port} > ~/app.log 2>&1 &)")

    def answers() -> bool:
        app.reload()
        return "who leaves" in app.locator("body").inner_text()

    wait_until(answers, SOON / 1000, "the app's page")
    echoed = """() => new Promise((resolve, reject) => {
        const socket = new WebSocket(`ws://${location.host}/ws`);
        socket.onopen = () => socket.send("to and fro");
        socket.onmessage = (message) => resolve(message.data);
        socket.onerror = () => reject(new Error("no websocket"));
    })"""
    assert app.evaluate(echoed) == "echo to and fro"
    return app


def open_terminal(lab: Page) -> WebSocket:
    """As people do, from the launcher; its shell has answered."""
    with lab.expect_websocket(lambda socket: "/terminals/websocket/" in socket.url, timeout=SOON) as opened:
        lab.locator(".jp-LauncherCard", has_text="Terminal").first.click()
    opened.value.wait_for_event("framereceived", lambda frame: "stdout" in str(frame), timeout=SOON)
    assert not opened.value.is_closed()
    return opened.value


def remove_colleague(admin: Page) -> None:
    """Returns when the page says that it is saved."""
    admin.goto("/projects/churn/settings/")
    contributors = admin.get_by_role("group", name="Contributors")
    contributors.get_by_role("checkbox", name="colleague").uncheck()
    admin.get_by_role("button", name="Save", exact=True).click()
    expect(admin.get_by_role("heading", name="Save changes to")).to_be_visible()  # it says what stops
    admin.get_by_role("button", name="Save", exact=True).last.click()
    expect(admin.locator("body")).to_contain_text("saved")
