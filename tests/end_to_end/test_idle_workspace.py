"""A workspace that nobody uses is announced and stopped; one whose kernel only waits is busy and stays. Real JupyterLab, real CPU."""

import pytest
from playwright.sync_api import Browser, expect

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import PULL, SOON, configure, launch, log_in, open_lab, run_cell

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(900)]
STOPPED = 450_000  # milliseconds; looks come each minute, and a stop waits a minute and a half
WAITS = "import time; print('begun', flush=True); time.sleep(3000)"


def test_idle_workspace_is_stopped_and_waiting_ones_are_not(grid: Grid, browser: Browser) -> None:
    grid.start()
    scientist = log_in(browser, grid, "scientist")
    busy, idle = scientist.new_page(), scientist.new_page()
    launch(busy, tier="Small", title="Waits")
    expect(busy.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    run_cell(open_lab(scientist, busy), WAITS, "begun")
    launch(idle, tier="Small", title="Forgotten")
    expect(idle.locator(".execution-state")).to_contain_text("Running", timeout=SOON)
    run_cell(open_lab(scientist, idle), "print(6 * 7)", "42")  # its tab stays open

    admin = log_in(browser, grid, "admin").new_page()
    configure(admin, "CPU limit for idleness", "60")  # the average of five minutes still has the start in it
    configure(admin, "Idle time of workspaces", "1")
    expect(idle.locator("#stop-notice")).to_contain_text(
        "no kernel busy, no terminal activity, CPU under 60 %", timeout=STOPPED
    )
    expect(idle.get_by_role("button", name="Keep it 2 h longer")).to_be_visible(timeout=STOPPED)
    expect(busy.locator("#stop-notice")).to_contain_text("In use: 1 kernel is busy", timeout=SOON)
    expect(idle.locator(".execution-state")).to_contain_text("Stopped", timeout=STOPPED)
    expect(idle.locator("#timeline")).to_contain_text("Compute Grid, because nobody used it for too long")
    expect(busy.locator(".execution-state")).to_contain_text("Running")
