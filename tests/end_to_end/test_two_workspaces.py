"""Two workspaces of one person in one project: they share files and settings, and neither opens with the other's layout."""

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import PULL, SOON, launch, log_in, open_lab, run_cell

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(600)]


def test_second_workspace_has_own_layout_and_no_news_prompt(grid: Grid, browser: Browser) -> None:
    grid.start()
    scientist = log_in(browser, grid, "scientist")
    first = launched_lab(scientist, "First")
    # JupyterLab saves its layout a moment after each change.
    with first.expect_response(lambda answer: "/api/workspaces" in answer.url and answer.request.method == "PUT"):
        run_cell(first, "print(6 * 7)", "42")
    second = launched_lab(scientist, "Second")
    expect(second.locator(".jp-DirListing-item", has_text="Untitled.ipynb")).to_be_visible(timeout=SOON)
    expect(second.locator(".jp-NotebookPanel")).to_have_count(0)
    for lab in (first, second):
        expect(lab.get_by_text("official Jupyter news")).to_have_count(0)
    first.reload()
    expect(first.locator(".jp-NotebookPanel")).to_be_visible(timeout=SOON)


def launched_lab(scientist: BrowserContext, title: str) -> Page:
    page = scientist.new_page()
    launch(page, tier="Small", title=title)
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    return open_lab(scientist, page)
