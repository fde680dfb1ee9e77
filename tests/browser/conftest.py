"""A real browser and a real server: fixtures of all browser tests.

    def test_...(stage, visit):
        stage.play(scenes.working_day)
        page = visit("olga-operator", "/infrastructure/")

`stage` is the server, its cluster emptied for each test; `visit(person, path)` opens a page as somebody logged in, or
with "" as nobody. A test fails when its pages logged an error in the browser's console.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser import scenes
from tests.browser.looks import ACTS
from tests.browser.stage import StageProcess
from tests.support.chromium import ARGUMENTS, MISSING, find_chromium

ANYTHING = ""  # to be forgiven
# What a browser says of a server that was killed: of the socket, and of a file or a question that was on its way.
AWAY = ("WebSocket", "htmx:ws:error", "net::ERR_")
Visit = Callable[..., Page]
PATIENCE_MS = 20_000  # a machine of two cores runs other tests beside these

# What `make test` tries of the pages: the frame, a live list and a launch. They share one browser; the rest is slow.
IN_EACH_RUN = ("test_executions.py", "test_frame.py")

expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.browser)
            if item.path.name not in IN_EACH_RUN:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def chromium_path() -> str:
    path = find_chromium()
    if not path:
        pytest.skip(MISSING)
    return path


@pytest.fixture(scope="session")
def server(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageProcess]:
    process = StageProcess(tmp_path_factory.mktemp("stage"))
    try:
        process.start()
        yield process
    finally:
        process.kill()


@pytest.fixture(scope="package")
def chromium(chromium_path: str) -> Iterator[Browser]:
    """For this folder only: Playwright's loop must be gone before other folders' asynchronous tests run."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def stage(server: StageProcess) -> StageProcess:
    server.ensure_started()
    server.play(scenes.empty)
    return server


@pytest.fixture
def forgiven() -> list[str]:
    """Parts of what a test's pages may complain of; kept to its end, because a browser may complain when all else is done."""
    return []


@pytest.fixture
def visit(chromium: Browser, stage: StageProcess, forgiven: list[str]) -> Iterator[Visit]:
    contexts = []
    console_errors: list[str] = []

    def visiting(
        person: str, path: str, *, width: int = 1440, height: int = 900, scheme: str = "light", javascript: bool = True
    ) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            base_url=stage.url,
            java_script_enabled=javascript,
        )
        context.set_default_timeout(PATIENCE_MS)
        if person:
            session = stage.play(scenes.session_of, person=person)
            context.add_cookies([{"name": "grid_session", "value": session, "url": stage.url}])
        contexts.append(context)
        context.add_init_script(ACTS)
        page = context.new_page()
        page.on("console", lambda message: console_errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: console_errors.append(str(error)))
        page.goto(path)
        return page

    yield visiting
    for context in contexts:
        context.close()
    excused = [*forgiven, "AbortError: signal is aborted"]  # htmx tells of each question that a newer one replaced
    assert [text for text in console_errors if not any(part in text for part in excused)] == []
