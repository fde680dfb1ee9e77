"""A workspace with a Dask cluster, as its scientist sees it: it grows with the work, loses none of it, and shrinks when idle.

Everything is real: the pods are processes, their usage is measured, the HorizontalPodAutoscaler decides on it, and the nodes come and
go with the workers. Only the patience before shrinking is shortened, by the admin, from five minutes to twenty seconds.
"""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import (
    PULL,
    SOON,
    attach_cluster,
    configure,
    fill_launch_form,
    forbid_reload,
    log_in,
    open_lab,
    press_launch,
    run_cell,
    stop,
    was_not_reloaded,
)
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(1200)]

GROWTH = 480_000  # milliseconds; the autoscaler looks every 15 s, and a new node takes some more
TASKS, ROUNDS = 400, 3_000_000
# The sum of squares modulo 7 of a whole number of sevens is known: each seven adds 0+1+4+2+2+4+1 = 14.
EACH = ROUNDS // 7 * 14 + sum(k * k % 7 for k in range(ROUNDS % 7))
COMPUTATION = f"""
from distributed import Client
client = Client()
def burn(number, rounds={ROUNDS}):
    return sum(k * k % 7 for k in range(rounds)) + number
futures = client.map(burn, range({TASKS}), pure=False)
print("computing")
print("result", sum(client.gather(futures)))
"""
RESULT = TASKS * EACH + TASKS * (TASKS - 1) // 2


def make_wide_tier(admin: Page) -> None:
    """Little work makes it busy, idle it uses less than half of its target, and each fills a node: growing needs new ones."""
    admin.goto("/tiers/new/")
    for label, text in {"Id": "wide", "Name": "Wide", "Cores": "150m", "Memory": "18Gi"}.items():
        admin.get_by_label(label, exact=True).fill(text)
    admin.get_by_label("Node pool", exact=True).fill("default")
    admin.get_by_role("button", name="Save").click()
    expect(admin.locator("body")).to_contain_text("Wide")


def test_dask_cluster_grows_to_three_workers_and_shrinks(grid: Grid, browser: Browser) -> None:
    grid.node_idle_seconds = 20
    grid.start()
    admin = log_in(browser, grid, "admin").new_page()
    make_wide_tier(admin)
    configure(admin, "Worker scale-down delay", "20")
    scientist = log_in(browser, grid, "scientist")
    page = scientist.new_page()
    fill_launch_form(page, tier="Small", title="Churn by region", environment="Dask notebook")
    attach_cluster(page, framework="Dask", worker="wide", maximum=3)
    expect(page.locator("#fit-details")).to_contain_text("5 at maximum", timeout=SOON)
    press_launch(page)
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    cluster = scientist.new_page()
    cluster.goto(page.url)
    cluster.locator(".companion a").click()
    expect(cluster.locator(".execution-state")).to_contain_text("Running", timeout=SOON)
    expect(cluster.locator("#workers .cell")).to_have_count(1)
    forbid_reload(cluster)

    lab = open_lab(scientist, page)
    run_cell(lab, COMPUTATION.strip(), "computing")
    expect(cluster.locator("#workers .cell-ready")).to_have_count(3, timeout=GROWTH)
    nodes_at_most = pool_nodes(grid)
    assert len(nodes_at_most) >= 3
    expect(lab.locator(".jp-OutputArea-output").first).to_contain_text(f"result {RESULT}", timeout=GROWTH)
    expect(cluster.locator("#timeline")).to_contain_text("The number of workers changes")
    expect(cluster.locator(".chart canvas")).to_be_visible()
    table = cluster.locator(".samples-table")
    table.locator("summary").click()
    expect(table).to_contain_text(re.compile("above (its )?target"), timeout=SOON)

    ui = open_ui(cluster)
    expect(ui.locator("body")).to_contain_text("Task Stream", timeout=SOON)
    ui.close()

    expect(cluster.locator("#workers .cell")).to_have_count(1, timeout=GROWTH)
    expect(cluster.locator("#timeline")).to_contain_text(re.compile("below (its |their )?target"), timeout=SOON)
    eventually_fewer(grid, nodes_at_most)
    assert was_not_reloaded(cluster)

    stop(page)
    expect(cluster.locator(".execution-state")).to_contain_text("Stopped", timeout=2 * SOON)
    left = ("get", "pods,deployments,services,hpa", "-n", "compute-grid", "-o", "name")
    wait_until(lambda: grid.kubectl(*left) == "", 60, "the workspace's pod to go, too")


def open_ui(cluster: Page) -> Page:
    with cluster.context.expect_page() as opened:
        cluster.get_by_role("button", name="Open").click()
    return opened.value


def pool_nodes(grid: Grid) -> list[str]:
    return grid.kubectl("get", "nodes", "-l", "dominodatalab.com/node-pool=default", "-o", "name").split()


def eventually_fewer(grid: Grid, before: list[str]) -> None:
    wait_until(lambda: len(pool_nodes(grid)) < len(before), 120, "the extra nodes to go")
