"""What a person installs with pip in the real JupyterLab: it is there after stop and resume, and cannot break the IDE."""

import pytest
from playwright.sync_api import Browser, expect

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import PULL, launch, log_in, open_lab, resume, run_cell, run_in_terminal, stop
from tests.support.wheels import wheel

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(600)]


def test_own_packages_survive_resume_and_cannot_break_jupyterlab(grid: Grid, browser: Browser) -> None:
    grid.start()
    scientist = log_in(browser, grid, "scientist")
    page = scientist.new_page()
    launch(page, tier="Small", title="Installs")
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    lab = open_lab(scientist, page)
    wheels = grid.folder_of("project-churn") / "wheels"
    tiny, broken = wheel(wheels, "tiny", "1"), wheel(wheels, "jupyter_server", "0")

    run_cell(lab, f"%pip install --no-index {tiny}\nimport tiny; tiny.VERSION", "Successfully installed tiny-1")
    assert "Successfully installed jupyter-server-0" in run_in_terminal(
        lab, f"pip install --no-index --no-deps {broken}"
    )
    lab.close()
    stop(page)
    resume(page)
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    again = open_lab(scientist, page)
    assert "is 1 and 0" in run_in_terminal(
        again, """python -c "import tiny, jupyter_server as j; print('is', tiny.VERSION, 'and', j.VERSION)" """
    )
    removed = run_in_terminal(again, "pip uninstall --yes tiny jupyter_server")
    assert "Successfully uninstalled tiny-1" in removed
