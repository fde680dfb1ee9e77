"""One whole grid and one browser for the tests that need both."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import ARGUMENTS
from tests.end_to_end.grid import Grid


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    """Not started; ended at the end, whatever happened."""
    grid = Grid(tmp_path / "var")
    yield grid
    if grid.process is not None and not grid.has_ended:
        grid.interrupt()


@pytest.fixture
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium")
    if not found:
        pytest.skip("no Chromium here: install the package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()
