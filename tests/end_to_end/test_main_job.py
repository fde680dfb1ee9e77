"""The main job, as its people do it: launch on the GPU tier, watch the node come, work in JupyterLab, stop, see the node go.

Everything is real: the processes, the ports, the browser, the kernel behind the cell.
"""

import json
import os
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.end_to_end.grid import NAMESPACE, Grid
from tests.end_to_end.people import (
    PULL,
    SOON,
    configure,
    download,
    forbid_reload,
    kernels,
    launch,
    log_in,
    open_lab,
    resume,
    run_cell,
    run_in_terminal,
    stop,
    upload,
    was_not_reloaded,
)
from tests.support.waiting import wait_until
from tests.support.wheels import wheel

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(900)]


def test_scientist_works_on_gpu_node_that_comes_and_goes(grid: Grid, browser: Browser) -> None:
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
    assert lab.url.startswith(f"http://{execution_id}.localhost:{grid.port + 1}/")
    run_cell(lab, "print(6 * 7)", "42")
    assert "compute-grid" in run_in_terminal(lab, "printenv JUPYTER_TOKEN | wc -c; echo compute-grid")
    lab.keyboard.press("Control+s")
    address = lab.url
    lab.close()

    for somebody in ("operator", "colleague", "admin"):
        stranger = log_in(browser, grid, somebody).new_page()
        assert (refusal := stranger.goto(address)) is not None
        assert refusal.status == 403
    nobody = browser.new_context().new_page().goto(address)
    assert nobody is not None
    assert nobody.status == 403

    stop(page)
    page.goto(f"/executions/{execution_id}/")
    expect(page.locator(".execution-state")).to_contain_text("Stopped", timeout=SOON)
    expect(row).to_have_count(0, timeout=SOON)
    assert grid.kubectl("get", "pods", "-n", "compute-grid", "-o", "name") == ""
    reopened = scientist.new_page()

    def is_said_to_have_ended() -> bool:
        return (answer := reopened.goto(address)) is not None and answer.status == 410

    # The proxy is another process, which follows the pod by a watch of its own.
    wait_until(is_said_to_have_ended, 5, "410 from the proxy")
    expect(gpu_node).to_have_count(0, timeout=2 * SOON)
    assert was_not_reloaded(infrastructure)
    assert was_not_reloaded(executions)


def test_workspace_outlives_all_programs_and_its_files_a_stop(grid: Grid, browser: Browser, tmp_path: Path) -> None:
    """Each of the four programs is killed and comes back; the workspace, its kernel and its page go on. What a kernel writes, what
    somebody sends from his machine and what he installs with pip is there again when it is resumed, and cannot break the IDE."""
    notebook = tmp_path / "sent.ipynb"
    # Longer than any buffer on its way.
    cell = {"cell_type": "raw", "id": "a", "metadata": {}, "source": "more and more\n" * 300_000}
    notebook.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    grid.start()
    scientist = log_in(browser, grid, "scientist")
    page = scientist.new_page()
    id = launch(page, tier="Small", title="Files to keep")
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    lab = open_lab(scientist, page)
    wheels = grid.folder_of("project-churn") / "wheels"
    tiny, broken = wheel(wheels, "tiny", "1"), wheel(wheels, "jupyter_server", "0")
    code = f"open('kept.txt', 'w').write('still here')\n%pip install --no-index {tiny}\nimport tiny; tiny.VERSION"
    run_cell(lab, code, "Successfully installed tiny-1")
    upload(lab, notebook)
    assert "Successfully installed jupyter-server-0" in run_in_terminal(
        lab, f"pip install --no-index --no-deps {broken}"
    )
    if shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"):
        is_reached_only_through_its_nginx(grid, id)

    before = kernels(lab), containers(grid)
    assert len(before[0]) == 1
    forbid_reload(page)
    for part in ("controller", "sandbox", "proxy", "web"):
        grid.kill_part(part)
    expect(page.locator("#freshness")).to_contain_text("Live", timeout=2 * SOON)
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=SOON)
    assert was_not_reloaded(page)
    lab.reload()
    expect(lab.locator("#jp-main-dock-panel").first).to_be_visible(timeout=SOON)
    assert (kernels(lab), containers(grid)) == before
    lab.close()
    stop(page)

    resume(page)
    expect(page.locator("h1")).to_have_text("Files to keep")
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    lab = open_lab(scientist, page)
    # JupyterLab shows again what lay open at the last visit, if it had the time to save that.
    lab.goto(lab.url.partition("/lab")[0] + "/lab?reset")
    run_cell(lab, "import tiny; print(open('kept.txt').read(), tiny.VERSION)", "still here 1")
    assert download(lab, "kept.txt") == b"still here"
    assert download(lab, notebook.name) == notebook.read_bytes()
    removed = run_in_terminal(lab, "pip uninstall --yes tiny jupyter_server")
    assert "Successfully uninstalled tiny-1" in removed
    stop(page)
    expect(page.locator("body")).to_contain_text(re.compile("Stopp"), timeout=SOON)


def containers(grid: Grid) -> str:
    """Ids of the containers that run: another id would be another process."""
    ids = "jsonpath={.items[*].status.containerStatuses[0].containerID}"
    return grid.kubectl("get", "pods", "-n", NAMESPACE, "-o", ids)


def is_reached_only_through_its_nginx(grid: Grid, id: str) -> None:
    """Which writes lines about activity and nothing of what was asked for."""
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


def test_second_workspace_waits_for_quota_and_has_own_layout(grid: Grid, browser: Browser) -> None:
    """The admin lowers the quota, which is in force at once in the web process and in the controller. The two share their files."""
    grid.start()
    admin, scientist = log_in(browser, grid, "admin").new_page(), log_in(browser, grid, "scientist")
    configure(admin, "Maximum executions per user", "1")

    first, second = scientist.new_page(), scientist.new_page()
    launch(first, tier="Small", title="First")
    launch(second, tier="Small", title="Second")
    forbid_reload(second)
    expect(second.locator(".execution-top")).to_contain_text("1 of 1 slots", timeout=SOON)
    expect(first.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    lab = open_lab(scientist, first)
    # JupyterLab saves its layout a moment after each change.
    with lab.expect_response(lambda answer: "/api/workspaces" in answer.url and answer.request.method == "PUT"):
        run_cell(lab, "print(6 * 7)", "42")
    expect(lab.get_by_text("official Jupyter news")).to_have_count(0)
    expect(second.locator(".execution-state")).to_contain_text("Queued")
    stop(first)
    expect(second.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    assert was_not_reloaded(second)
    other = open_lab(scientist, second)
    expect(other.locator(".jp-DirListing-item", has_text="Untitled.ipynb")).to_be_visible(timeout=SOON)
    expect(other.locator(".jp-NotebookPanel")).to_have_count(0)
