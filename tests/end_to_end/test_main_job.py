"""The main job, as its people do it: launch on the GPU tier, watch the node come, work in JupyterLab, stop, see the node go.

Everything is real: the processes, the ports, the browser, the kernel behind the cell.
"""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import (
    PULL,
    SOON,
    forbid_reload,
    launch,
    log_in,
    open_lab,
    run_cell,
    stop,
    was_not_reloaded,
)

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(900)]


def test_a_scientist_works_on_a_gpu_node_that_comes_and_goes(grid: Grid, browser: Browser) -> None:
    grid.node_idle_seconds = 20
    grid.start()
    scientist, operator = log_in(browser, grid, "scientist"), log_in(browser, grid, "operator")
    infrastructure, executions, page = operator.new_page(), operator.new_page(), scientist.new_page()
    infrastructure.goto("/infrastructure/?pool=default-gpu")
    executions.goto("/executions/")
    gpu_node = infrastructure.get_by_role("row").filter(has_text=re.compile("default-gpu-"))
    expect(gpu_node).to_have_count(0)
    for watched in (infrastructure, executions):
        forbid_reload(watched)

    execution_id = launch(page, tier="GPU", title="Train a small model")
    forbid_reload(page)
    row = executions.get_by_role("row").filter(has_text="Train a small model")
    expect(row).to_have_count(1, timeout=SOON)
    expect(page.locator("body")).to_contain_text(re.compile("new node", re.I), timeout=SOON)
    expect(gpu_node).to_have_count(1, timeout=SOON)
    expect(gpu_node).to_contain_text("Ready", timeout=SOON)
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    expect(row).to_contain_text("Running", timeout=SOON)
    expect(row).to_contain_text("default-gpu-")
    timeline = page.locator("#timeline")
    for step in ("TriggeredScaleUp", "Scheduled", "Pull", "Started"):
        expect(timeline).to_contain_text(step)
    assert was_not_reloaded(page)

    lab = open_lab(scientist, page)
    assert lab.url.startswith(f"http://localhost:{grid.port + 1}/w/{execution_id}/")
    run_cell(lab, "print(6 * 7)", "42")
    lab.keyboard.press("Control+s")
    address = lab.url
    lab.close()

    for somebody in ("operator", "colleague", "admin"):
        stranger = log_in(browser, grid, somebody).new_page()
        assert (refusal := stranger.goto(address)) is not None
        assert refusal.status == 403

    stop(page)
    page.goto(f"/executions/{execution_id}/")
    expect(page.locator(".execution-state")).to_contain_text("Stopped", timeout=SOON)
    expect(row).to_have_count(0, timeout=SOON)
    assert grid.kubectl("get", "pods", "-n", "compute-grid", "-o", "name") == ""
    gone = scientist.new_page().goto(address)
    assert gone is not None
    assert gone.status == 403
    expect(gpu_node).to_have_count(0, timeout=2 * SOON)
    assert was_not_reloaded(infrastructure)
    assert was_not_reloaded(executions)


def test_files_of_a_workspace_are_there_at_the_next_launch(grid: Grid, browser: Browser) -> None:
    grid.start()
    scientist = log_in(browser, grid, "scientist")
    page = scientist.new_page()
    for turn in (1, 2):
        launch(page, tier="Small", title=f"Turn {turn}")
        expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
        lab = open_lab(scientist, page)
        if turn == 1:
            run_cell(lab, "open('kept.txt', 'w').write('still here')", "10")
        else:
            run_cell(lab, "print(open('kept.txt').read())", "still here")
        lab.close()
        stop(page)
        expect(page.locator("body")).to_contain_text(re.compile("Stopp"), timeout=SOON)
