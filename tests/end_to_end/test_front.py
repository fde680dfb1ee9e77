"""A workspace through the real nginx in front of it: opened, used, stopped; and what somebody gets who asks it from beside."""

import os
import shutil
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import Browser, expect

from tests.end_to_end.grid import NAMESPACE, Grid
from tests.end_to_end.people import PULL, SOON, launch, log_in, open_lab, run_cell, stop
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin") is None,
        reason="nginx is not installed (Debian: nginx-light)",
    ),
]


def test_workspace_is_reachable_only_through_its_nginx_until_end(grid: Grid, browser: Browser) -> None:
    grid.start()
    scientist = log_in(browser, grid, "scientist")
    page = scientist.new_page()
    id = launch(page, tier="Small", title="Guarded")
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    lab = open_lab(scientist, page)
    run_cell(lab, "print(6 * 7)", "42")

    pod = f"workspace-{id}"
    front = "{.status.podIP}:{.spec.initContainers[0].ports[0].containerPort}"
    address = grid.kubectl("get", "pod", pod, "-n", NAMESPACE, "-o", f"jsonpath={front}")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://{address}/lab", timeout=10)
    assert (refused.value.code, refused.value.read()) == (403, b"Open this from the dashboard.")

    def activity() -> str:
        return grid.kubectl("logs", pod, "-c", "nginx", "-n", NAMESPACE)

    wait_until(lambda: " GET 101 " in activity() or " GET 200 " in activity(), 30, "a line of nginx's")
    assert "/lab" not in activity()
    page.bring_to_front()
    stop(page)
    expect(page.locator(".execution-state")).to_contain_text("Stopped", timeout=SOON)
