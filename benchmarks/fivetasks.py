"""What five tasks take somebody who has just logged in: clicks, keys and seconds, counted in a real browser on a demo of its own.

    .venv/bin/python -m benchmarks.fivetasks

The demo has 40 nodes and 900 pods that change twice a second; it needs a Chromium. Each task begins on the first page after the login, and
ends when what was asked for is on the screen. *Hand and eye* is the keystroke-level model (Card, Moran and Newell, 1980), *pages* is how
long the browser took to show what the next step needs. Prints a table for docs/design.md.
"""

import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import PULL, enter_password, press_launch, stop
from tests.pictures.__main__ import running_grid
from tests.support.chromium import ARGUMENTS, MISSING, find_chromium

DECIDE, CLICK, KEY, HOMING = 1.35, 1.3, 0.28, 0.4  # seconds
PATIENCE_MS = 120_000
GPU_USER = "colleague"
OWN = 4  # workspaces of the person who stops all of them
LIMIT, VALUE = "Maximum executions per user", "2"


@dataclass(slots=True)
class Person:
    """Somebody at a browser. Each step waits for what it needs: `pages` are the seconds of that. `decisions` is how often he thinks."""

    page: Page
    clicks: int = 0
    keys: int = 0
    decisions: int = 0
    homings: int = 0  # between mouse and keyboard, one way
    pages: float = 0.0
    start_up: float = 0.0

    def click(self, what: Locator) -> None:
        """Decide, point and click; whoever was at the keyboard has to reach for the mouse."""
        self.clicks += 1
        self.decisions += 1
        self._wait(lambda: what.click())

    def replace(self, field: Locator, text: str) -> None:
        """Click into the field, select what is there (two keys), and type; then reach for the mouse again."""
        self.click(field)
        self.homings += 2
        self.keys += 2 + len(text)
        field.press("Control+a")
        self.page.keyboard.type(text)

    def read(self, what: Locator, text: str | re.Pattern[str]) -> None:
        """See the answer, and understand it."""
        self.decisions += 1
        self._wait(lambda: expect(what).to_contain_text(text))

    def await_start(self, what: Locator) -> None:
        """Wait for a program's start, which is the cluster's time and no page's."""
        began = time.perf_counter()
        expect(what).to_be_enabled(timeout=PULL)
        self.start_up += time.perf_counter() - began

    @property
    def hand_and_eye(self) -> float:
        """Seconds by the keystroke-level model."""
        return self.decisions * DECIDE + self.clicks * CLICK + self.keys * KEY + self.homings * HOMING

    def _wait(self, until: Callable[[], object]) -> None:
        began = time.perf_counter()
        until()
        self.pages += time.perf_counter() - began


def menu(page: Page, name: str) -> Locator:
    return page.get_by_role("navigation").get_by_role("link", name=name, exact=True).first


def launch_and_open(person: Person) -> None:
    """A workspace as the form proposes it."""
    page = person.page
    person.click(page.get_by_role("main").get_by_role("link", name="Launch", exact=True).first)
    person.read(page.locator("#fit-summary"), re.compile(r"\w"))
    person.click(page.get_by_role("button", name="Launch"))
    person.read(page.locator(".execution-head"), re.compile(r"\w"))
    open_it = page.get_by_role("button", name="Open", exact=True)
    person.await_start(open_it)
    with page.context.expect_page() as opened:
        person.click(open_it)
    workspace = opened.value
    began = time.perf_counter()
    expect(workspace.locator("#jp-main-dock-panel, .jp-LauncherBody").first).to_be_visible(timeout=PATIENCE_MS)
    person.start_up += time.perf_counter() - began  # JupyterLab's own page
    workspace.close()


def see_why_it_failed(person: Person) -> None:
    """A sentence with the cause, below the name of what is in trouble."""
    person.read(person.page.locator("#troubles li").first, re.compile("memory|exit code|image"))


def stop_all(person: Person) -> None:
    page = person.page
    person.click(menu(page, "Executions"))
    person.click(page.locator("thead").get_by_role("checkbox"))
    person.click(page.locator("#selected").get_by_role("button", name="Stop"))
    person.click(page.get_by_role("dialog").get_by_role("button", name=f"Stop {OWN} executions"))
    person.read(page.get_by_role("main"), re.compile("Stop requested|Stopping|stopping"))


def see_who_uses_gpus(person: Person) -> None:
    """The executions with the most GPUs, with their owners."""
    page = person.page
    person.click(menu(page, "Executions"))
    person.click(page.locator("thead").get_by_role("link", name="GPUs"))
    person.read(page.locator("#executions tr").first, GPU_USER)


def change_a_limit(person: Person) -> None:
    page = person.page
    person.click(menu(page, "Configuration"))
    person.replace(page.get_by_label(LIMIT, exact=True), VALUE)
    person.click(page.get_by_role("button", name="Review changes"))
    person.read(page.locator(".setting-review tbody td").last, re.compile(r"\w"))
    person.click(page.get_by_role("button", name="Save 1 change"))
    person.read(page.locator("body"), f"{LIMIT} is now {VALUE}")


TASKS: dict[str, tuple[str, Callable[[Person], None]]] = {
    "launch a workspace, and open it": ("scientist", launch_and_open),
    "find out why something failed (an operator)": ("operator", see_why_it_failed),
    "see who uses the GPUs": ("operator", see_who_uses_gpus),
    f"stop all of one's things ({OWN})": ("scientist", stop_all),
    "change a limit, and see what it does": ("admin", change_a_limit),
}


def walk(browser: Browser, grid: Grid) -> None:
    """Do the tasks in this order, each in a new window, and print a line for each."""
    expect.set_options(timeout=PATIENCE_MS)
    # It runs before anybody is counted, so that its image, which is also theirs, has been pulled.
    on_gpu = _logged_in(browser, grid, GPU_USER)
    _launch(on_gpu, tier="GPU")
    expect(on_gpu.locator(".execution-state")).to_contain_text("Running", timeout=2 * PULL)
    print("| task | clicks | keys | hand and eye | pages | start-up |\n|---|---|---|---|---|---|")
    for task, (name, do) in TASKS.items():
        if do is stop_all:
            _let_all_be_ones_own(browser, grid, name, on_gpu)
        page = _logged_in(browser, grid, name)
        expect(page.locator("#freshness")).to_contain_text("Live")
        person = Person(page)
        do(person)
        start_up = f"{person.start_up:.0f} s" if person.start_up else ""
        figures = f"{person.hand_and_eye:.1f} s | {person.pages:.1f} s | {start_up}"
        print(f"| {task} | {person.clicks} | {person.keys} | {figures} |", flush=True)
        page.context.close()


def _logged_in(browser: Browser, grid: Grid, name: str) -> Page:
    """Return the first page after the login."""
    context = browser.new_context(base_url=grid.url)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    enter_password(page, name, grid.password(name))
    return page


def _let_all_be_ones_own(browser: Browser, grid: Grid, name: str, of_another: Page) -> None:
    """The first task has launched one; a team-mate's, which its project's owner could stop as well, ends."""
    stop(of_another)
    expect(of_another.locator(".execution-state")).to_contain_text("Stopped")
    page = _logged_in(browser, grid, name)
    for _ in range(1, OWN):
        _launch(page, tier="Tiny")
    page.context.close()


def _launch(page: Page, *, tier: str) -> None:
    page.goto("/launch/")
    page.get_by_role("radio", name=re.compile(rf"^{tier}")).check()
    press_launch(page)


def main() -> int:
    chromium = find_chromium()
    if chromium is None:
        sys.stderr.write(f"Nothing was counted: {MISSING}.\n")
        return 1
    with tempfile.TemporaryDirectory() as folder, running_grid(Path(folder)) as grid, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        walk(browser, grid)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
