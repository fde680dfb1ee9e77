"""One whole grid and one browser for the tests that need both."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.conftest import PATIENCE_MS
from tests.end_to_end.grid import Grid, ending
from tests.support.chromium import ARGUMENTS, MISSING, find_chromium

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    """Not started; ended at the end, whatever happened."""
    with ending(Grid(tmp_path / "var")) as grid:
        yield grid


@pytest.fixture
def browser() -> Iterator[Browser]:
    path = find_chromium()
    if not path:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()
