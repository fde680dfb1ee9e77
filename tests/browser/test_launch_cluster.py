"""The launch form's cluster in a real browser: numbers that follow the typing, refusals at their fields, by keyboard, on a phone."""

import os
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Locator, Page, expect

from tests.browser import launching
from tests.browser.conftest import Visit
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def team(stage: StageProcess) -> None:
    stage.play(launching.team)


def estimate(page: Page) -> Locator:
    return page.locator(".estimate")


def row(page: Page, name: str) -> Locator:
    return estimate(page).get_by_role("row", name=name).get_by_role("cell")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing_serious(visit: Visit, width: int, scheme: str) -> None:
    """Pictures are kept where GRID_SCREENSHOTS says."""
    page = visit("alice", "/launch/", width=width, scheme=scheme)
    look_at(page, "workspace", width, scheme)
    page.get_by_label("Attach a cluster").check()
    look_at(page, "attached", width, scheme)
    page.get_by_role("radio", name="Spark").check()
    expect(page.get_by_label("Environment of the cluster")).to_contain_text("Data lake tools (Spark 4.3.0)")
    page.get_by_label("Workers at most").fill("60")
    page.get_by_label("Local storage").fill("lots")
    expect(page.locator("#id_workers_maximum_error")).to_contain_text("one user may hold 25")
    look_at(page, "refused", width, scheme)
    page.goto("/launch/?kind=cluster")
    look_at(page, "cluster", width, scheme)


def look_at(page: Page, name: str, width: int, scheme: str) -> None:
    expect(page.locator("h1")).to_be_visible()
    if folder := os.environ.get("GRID_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}-{width}-{scheme}.png", full_page=True)
    found = Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], (name, [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in serious])
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
