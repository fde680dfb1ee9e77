"""A real browser and a real server: fixtures of all browser tests.

    def test_...(stage, visit):
        stage.play(scenes.working_day)
        page = visit("olga-operator", "/infrastructure/")

`stage` is the server, its cluster emptied for each test; `visit(person, path)` opens a page as somebody logged in, or
with "" as nobody. A test fails when its pages logged an error in the browser's console.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser import scenes
from tests.browser.looks import ACTS
from tests.support.chromium import ARGUMENTS, MISSING, find_chromium
from tests.support.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 100.0
SCENE_SECONDS = 30.0
ANYTHING = ""  # to be forgiven
# What a browser says of a server that was killed: of the socket, and of a file or a question that was on its way.
AWAY = ("WebSocket", "htmx:ws:error", "net::ERR_")
Visit = Callable[..., Page]
PATIENCE_MS = 20_000  # a machine of two cores runs other tests beside these

# What `make test` tries of the pages: the frame, a live list and a launch. They share one browser; the rest is slow.
IN_EACH_RUN = ("test_executions.py", "test_frame.py")

expect.set_options(timeout=PATIENCE_MS)


class StageProcess:
    """One server at one address; its database outlives a restart, its cluster in memory does not."""

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        tls: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """With `tls`, a file with a key and its certificate, it is reached by https and under another `host`."""
        self._folder, self._environment = folder, environment or {}
        self._port = free_ports()
        self._host, self._tls = host, tls
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self._port}"

    def start(self) -> None:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "GRID_TEST_VAR": str(self._folder),
            "GRID_DASHBOARD_ORIGIN": self.url,
            "GRID_ALLOWED_HOSTS": self._host,
            **({"GRID_TEST_TLS": str(self._tls)} if self._tls else {}),
            **self._environment,
            "GRID_WORKSPACE_ORIGIN": f"http://localhost:{self._port}",
        }
        with (self._folder / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.browser.server", str(self._port)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._answer(START_SECONDS)

    def ensure_started(self) -> None:
        """Also after a test that failed while its server was killed."""
        if self._process is None or self._process.poll() is not None:
            self.kill()
            self.start()

    def kill(self) -> None:
        """At once, as when a machine fails."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def play(self, scene: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        """Run the scene in the server's process and return what it returns."""
        assert self._process is not None, "start it first"
        assert self._process.stdin is not None
        order = {"scene": f"{scene.__module__}:{scene.__qualname__}", "arguments": arguments}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._answer(SCENE_SECONDS)
        if "error" in answer:
            raise AssertionError(f"scene {order['scene']} failed: {answer['error']}")
        return answer["result"]

    def log(self) -> str:
        return (self._folder / "server.log").read_text()

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if readable else ""
        if not line:
            self.kill()  # an answer that comes late would be taken for the next scene's
            raise AssertionError(f"the server said nothing in {seconds:g} s; its log ends:\n{self.log()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


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


def on_stage(
    *scenes_before: Callable[..., Awaitable[None]],
    end: Callable[..., Awaitable[None]] | None = None,
    autouse: bool = True,
) -> Any:
    """Return a fixture that plays the scenes before each test of its module, or that asks for it, and `end` after it."""

    @pytest.fixture(autouse=autouse)
    def played(stage: StageProcess) -> Iterator[None]:
        for scene in scenes_before:
            stage.play(scene)
        yield
        if end:
            stage.play(end)

    return played


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
