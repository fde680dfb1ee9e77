"""One whole grid and one browser for the tests that need both."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.conftest import PATIENCE_MS
from tests.end_to_end.grid import Grid
from tests.support.chromium import ARGUMENTS, MISSING, find_chromium

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    """Not started; ended at the end, whatever happened."""
    grid = Grid(tmp_path / "var")
    yield grid
    if grid.process is not None and not grid.has_ended:
        try:
            grid.interrupt()
        except subprocess.TimeoutExpired:
            grid.kill()  # its programs end with it
            raise


@pytest.fixture
def browser() -> Iterator[Browser]:
    path = find_chromium()
    if not path:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()
