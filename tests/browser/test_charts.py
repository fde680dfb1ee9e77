"""The charts of the node pools in a real browser: drawn, read by keyboard, over one range, and on a phone in the dark."""

import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser import charting
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


def labels(page: Page) -> list[str]:
    return page.locator(".chart-grid .chart").first.locator(".u-legend .u-label").all_inner_texts()


def test_charts_of_a_page_are_drawn_and_move_together(stage: StageProcess, visit: Visit) -> None:
    stage.play(charting.sampled_day)
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
    stage.play(charting.sampled_day)
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
    [(charting.unsampled_day, "/overview/"), (charting.used_pod, "/pods/compute-grid/hungry/?range=1h")],
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
    stage.play(charting.sampled_day)
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
    stage.play(charting.used_pod)
    page = visit("olga-operator", "/pods/compute-grid/hungry/?range=1h")
    expect(page.locator("#use canvas")).to_have_count(4)
    expect(page.locator("#use .chart-event").first).to_contain_text("run of hungry ended: OOMKilled, exit code 137")
    page.locator("#use summary").click()
    expect(page.locator("#use .samples-table tbody tr")).to_have_count(24)
    look_on_screens(page, "charts-pod")
