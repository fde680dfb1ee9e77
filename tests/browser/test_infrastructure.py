"""The Infrastructure page in a real browser, live; the charts of pools and pods; and from an incident at the overview to its cause."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser import incidents, overviewing, scenes
from tests.browser.conftest import AWAY, StageProcess, Visit
from tests.browser.looks import follow, look_on_screens, not_reloaded
from tests.browser.server import Stage

PATH = "/infrastructure/"
MOST_CLICKS = 3
EXECUTION = incidents.TITLE


def names(page: Page) -> list[str]:
    return page.locator("#nodes tr th").all_inner_texts()


def test_row_changes_appears_moves_and_goes_without_reload(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.put_node, name="node-a", pool="b-pool")
    stage.play(scenes.put_node, name="node-b", pool="b-pool", ready=False)
    page = visit("olga-operator", PATH)
    follow(page)
    row = page.locator("#node-node-b")
    expect(row).to_contain_text("Not ready")
    assert names(page) == ["node-a", "node-b"]

    row.locator("th a").focus()
    stage.play(scenes.put_node, name="node-b", pool="b-pool", ready=True)
    expect(row.locator(".status-ok")).to_have_text("Ready")
    expect(row.locator("th a")).to_be_focused()
    page.locator("h1").click()  # what has the focus holds the rows

    stage.play(scenes.put_node, name="node-c", pool="b-pool")
    expect(page.locator("#nodes tr")).to_have_count(3)
    stage.play(scenes.put_node, name="node-c", pool="a-pool")
    expect(page.locator("#nodes tr th").first).to_have_text("node-c")
    assert names(page) == ["node-c", "node-a", "node-b"]
    assert page.locator("#pools article h3").all_inner_texts() == ["a-pool", "b-pool"]

    stage.play(scenes.remove_node, name="node-a")
    expect(page.locator("#node-node-a")).to_have_count(0)
    assert names(page) == ["node-c", "node-b"]
    stage.play(scenes.empty)
    expect(page.locator("#nodes")).to_contain_text("No nodes.")
    not_reloaded(page)


def test_unreachable_cluster_is_said_in_words_and_recovers(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.put_node, name="node-a")
    page = visit("olga-operator", PATH)
    follow(page)
    stage.play(scenes.answer, available=False)
    freshness = page.locator("#freshness")
    expect(freshness).to_contain_text(re.compile(r"has not answered for \d+ s; what you see is from \d\d:\d\d:\d\d"))
    expect(page.locator("#nodes")).to_contain_text("node-a")
    stage.play(scenes.answer, available=True)
    expect(freshness).to_have_text("Live", timeout=30_000)
    not_reloaded(page)


def test_page_goes_on_after_the_server_was_restarted(stage: StageProcess, visit: Visit, forgiven: list[str]) -> None:
    forgiven += AWAY
    stage.play(scenes.put_node, name="before")
    page = visit("olga-operator", PATH)
    follow(page)
    stage.kill()
    expect(page.locator("#freshness")).to_contain_text("Connection lost")
    expect(page.locator("#nodes")).to_contain_text("before")
    stage.start()
    stage.play(scenes.put_node, name="after")
    expect(page.locator("#nodes tr")).to_have_count(1, timeout=60_000)
    expect(page.locator("#nodes")).to_contain_text("after", timeout=60_000)
    expect(page.locator("#freshness")).to_have_text("Live")
    not_reloaded(page)


def test_cluster_pages_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.working_day)
    used = {"default-7f4k2": [12, 20, 61, 55, 30, 40], "default-9x2mc": [2], "platform-1": [5, 90, 95, 20]}
    stage.play(overviewing.half_an_hour_of_use, nodes=used)
    page = visit("olga-operator", PATH)
    follow(page)
    cpu = re.compile("^CPU of the last 30 min: 12 % to 61 %, now 40 %$")
    expect(page.locator("#node-default-7f4k2").get_by_role("img", name=cpu)).to_have_count(1)
    look_on_screens(page, "infrastructure")
    page.goto("/nodes/default-7f4k2/")
    follow(page)
    expect(page.locator("#facts").get_by_role("img", name=cpu)).to_be_visible()
    look_on_screens(page, "node")
    page.goto("/pods/compute-grid/job-waiting/")
    follow(page)
    look_on_screens(page, "pod")


def test_the_keyboard_reaches_the_content_first(visit: Visit) -> None:
    page = visit("olga-operator", PATH)
    expect(page.locator("h1")).to_have_text("Infrastructure")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def labels(page: Page) -> list[str]:
    return page.locator(".chart-grid .chart").first.locator(".u-legend .u-label").all_inner_texts()


def test_charts_of_a_page_are_drawn_and_move_together(stage: StageProcess, visit: Visit) -> None:
    stage.play(overviewing.sampled_day)
    page = visit("olga-operator", "/overview/")
    charts = page.locator(".chart-grid .chart")
    expect(page.locator(".chart-grid canvas")).to_have_count(5)
    assert labels(page) == ["UTC", "requested", "used", "allocatable"]
    cpu, memory = charts.nth(0), charts.nth(1)
    newest = memory.locator(".u-legend").inner_text()
    cpu.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    expect(cpu.locator("[aria-live]")).to_have_text(
        re.compile(r"^\d\d:\d\d UTC: requested [\d.,]+, used [\d.,]+, allocatable [\d.,]+$")
    )
    expect(memory.locator(".u-legend")).not_to_have_text(newest)
    time = cpu.locator(".u-value").first.inner_text()
    expect(memory.locator(".u-value").first).to_have_text(time)
    memory.locator(".u-over").hover(position={"x": 40, "y": 40})
    expect(cpu.locator(".u-value").first).not_to_have_text(time)
    expect(cpu.locator(".u-value").first).to_have_text(memory.locator(".u-value").first.inner_text())


def test_range_holds_for_all_charts_and_tables_of_page(stage: StageProcess, visit: Visit) -> None:
    stage.play(overviewing.sampled_day)
    page = visit("olga-operator", "/infrastructure/?state=ready")
    expect(page.locator("#pool-history-title")).to_have_text("The last day")
    page.get_by_role("navigation", name="Time range").get_by_role("link", name="1 hour").click()
    expect(page.locator("#pool-history-title")).to_have_text("The last hour")
    expect(page).to_have_url(re.compile(r"state=ready&range=1h"))
    expect(page.locator(".chart-grid canvas")).to_have_count(5)
    page.get_by_role("link", name="default-gpu", exact=True).last.click()
    expect(page.locator("#pool-history-title")).to_have_text("The last hour, pool default-gpu")
    page.get_by_role("link", name="State", exact=True).click()
    expect(page.locator("#pool-history-title")).to_have_text("The last hour, pool default-gpu")
    expect(page.locator(".chart-grid canvas")).to_have_count(5)
    page.get_by_text("The same as a table").click()
    expect(page.locator("#pool-history-rows tr")).to_have_count(24)


@pytest.mark.parametrize(
    ("scene", "path"),
    [(overviewing.unsampled_day, "/overview/"), (overviewing.used_pod, "/pods/compute-grid/hungry/?range=1h")],
    ids=["nothing sampled", "a pod"],
)
def test_layout_does_not_move_when_values_come_late(
    stage: StageProcess, visit: Visit, scene: Callable[..., Awaitable[None]], path: str
) -> None:
    stage.play(scene)
    page = visit("olga-operator", "/help/", width=390)
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.headers.get("accept") == "application/json":
            held.append(route)
        else:
            route.continue_()

    page.route(re.compile("/(history|use)/"), hold)
    page.goto(path)
    charts = page.locator("main .chart")
    where = "all => all.flatMap((one) => [one.offsetTop, one.offsetHeight, one.closest('figure').offsetHeight])"
    expect(charts.first).to_be_visible()
    page.wait_for_function("document.fonts.ready.then(() => true)")
    before = charts.evaluate_all(where)
    for route in held:
        route.continue_()
    expect(page.locator("main .chart:not(:has(*))")).to_have_count(0)
    assert held and charts.evaluate_all(where) == before


@pytest.mark.parametrize(("path", "scheme"), [("/overview/", "light"), ("/infrastructure/", "dark")])
def test_chart_lines_have_theme_colours_and_fit_the_width(
    stage: StageProcess, visit: Visit, path: str, scheme: str
) -> None:
    stage.play(overviewing.sampled_day)
    page = visit("olga-operator", path, scheme=scheme)
    seen = page.evaluate(
        """() => ["--requested", "--used"].map((name) => {
            const probe = document.body.appendChild(document.createElement("i"));
            probe.style.color = `var(${name})`;
            return getComputedStyle(probe).color;
        })"""
    )
    drawn = page.locator(".chart[data-name=cpu] .chart-line line")
    expect(drawn).to_have_count(3)
    assert drawn.evaluate_all("lines => lines.map((line) => line.getAttribute('stroke'))")[:2] == seen
    page.evaluate("window.lookedAt = performance.now()")  # what moves by itself, the pages' own tests tell
    look_on_screens(page, f"charts{path.replace('/', '-')}")


def test_pod_charts_are_drawn_with_the_moment_of_kill(stage: StageProcess, visit: Visit) -> None:
    stage.play(overviewing.used_pod)
    page = visit("olga-operator", "/pods/compute-grid/hungry/?range=1h")
    expect(page.locator("#use canvas")).to_have_count(4)
    expect(page.locator("#use .chart-event").first).to_contain_text("run of hungry ended: OOMKilled, exit code 137")
    page.locator("#use summary").click()
    expect(page.locator("#use .samples-table tbody tr")).to_have_count(24)
    look_on_screens(page, "charts-pod")


@dataclass(frozen=True)
class Way:
    """`clicks`: the names of the links that lead from the overview to a page which says the cause."""

    scene: Callable[[Stage], Awaitable[None]]
    clicks: tuple[str, ...]
    cause: str


WAYS = {
    "the disk of a node is full": Way(
        incidents.disk_filled, (EXECUTION,), r"The node ran short of disk and evicted this: it used 70 GiB"
    ),
    "a node is lost": Way(incidents.node_lost, (EXECUTION, incidents.NODE), r"Kubelet stopped posting node status"),
    "the controller has stopped": Way(incidents.controller_stopped, (), r"It has stopped: nothing is admitted"),
    "CPU is stolen by a neighbour": Way(
        incidents.cpu_stolen,
        (incidents.NODE,),
        r"“Hyperparameter search” of bob uses 3 cores, 1 more than it requested\. “Churn exploration” of alice may get less",
    ),
}


@pytest.mark.parametrize("incident", WAYS)
def test_the_cause_is_read_after_three_clicks_at_most(stage: StageProcess, visit: Visit, incident: str) -> None:
    way = WAYS[incident]
    stage.play(way.scene)
    page = visit("olga-operator", "/overview/")
    assert len(way.clicks) <= MOST_CLICKS
    for name in way.clicks:
        page.get_by_role("main").get_by_role("link", name=name).first.click()
    expect(page.get_by_role("main")).to_contain_text(re.compile(way.cause), timeout=30_000)


def test_cpu_contention_has_no_fault_to_the_eye(stage: StageProcess, visit: Visit) -> None:
    stage.play(incidents.cpu_stolen)
    page = visit("olga-operator", "/help/")
    for path in ("/overview/", f"/nodes/{incidents.NODE}/", f"/executions/{incidents.ID}/"):
        page.goto(path)
        expect(page.locator("#contention")).to_contain_text("CPU")
        look_on_screens(page, "contention")
