"""VS Code in a real browser, at its own origin behind the proxy: it works in the project's folder, and asks nobody else for anything."""

import contextlib
import re
import shutil
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, TimeoutError, expect

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import SOON, launch, log_in
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(900)]
BUILD = 480_000  # milliseconds; its terminal is compiled


@pytest.mark.skipif(not all(map(shutil.which, ("node", "npm", "g++", "make"))), reason="code-server is made of them")
def test_vscode_opens_project_folder_with_a_working_terminal(grid: Grid, browser: Browser) -> None:
    grid.start()
    scientist = log_in(browser, grid, "scientist")
    page = scientist.new_page()
    execution = launch(page, tier="Small", title="Code", environment="VS Code")
    project = grid.folder_of("project-churn")
    (project / "hello.py").write_text("print(6 * 7)")
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=BUILD)
    asked: set[str] = set()
    scientist.on("request", lambda request: asked.add(urlsplit(request.url).hostname or ""))
    with scientist.expect_page() as opened:
        page.get_by_role("button", name="Open").click()
    ide = opened.value
    expect(ide.get_by_role("treeitem", name="hello.py")).to_be_visible(timeout=SOON)
    # The question of whose files these are comes when it comes, and hears no shortcut until it is answered.
    ide.get_by_role("button", name="Yes, I trust the authors").click(timeout=SOON)
    terminal = ide.locator(".terminal.xterm textarea")

    def is_opened() -> bool:
        """A key that is pressed before the workbench has its shortcuts is lost without a word."""
        ide.keyboard.press("Control+Shift+`")
        with contextlib.suppress(TimeoutError):
            terminal.first.wait_for(state="attached", timeout=15_000)
        return terminal.count() > 0

    wait_until(is_opened, 120, "a terminal")

    def is_said() -> bool:
        """Over the websocket, in the project's folder, with the image's Python. What is typed before the shell is there may be lost."""
        terminal.first.focus()
        ide.keyboard.type("python hello.py > said.txt")
        ide.keyboard.press("Enter")
        with contextlib.suppress(AssertionError):
            wait_until(lambda: output.exists() and output.read_text() == "42\n", 10, "an answer")
            return True
        return False

    output = project / "said.txt"
    wait_until(is_said, 90, "an answer of the shell")
    expect(ide.get_by_role("treeitem", name=re.compile("said.txt"))).to_be_visible(timeout=SOON)
    assert {host for host in asked if host not in ("", "127.0.0.1")} == {f"{execution}.localhost"}
