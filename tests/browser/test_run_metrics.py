"""What runs measure in a real browser: drawn as it comes, read by keyboard, and compared over runs."""

import re

from playwright.sync_api import Page, expect

from tests.browser import executing, measuring, running
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess
from tests.browser.test_jobs import launch, sweep

LONG = "validation/precision at rank 10 of the customers who left within 30 days"


def swept(stage: StageProcess, page: Page, *, more: str = "") -> str:
    """A job whose first run and whose sweep of three have measured something; return the job's page."""
    job = launch(page)
    id = job.strip("/").rsplit("/", 1)[1]
    stage.play(running.end_run, job=id, number=1)
    sweep(page, job)
    stage.play(measuring.measure, job=id, number=1, more=more)
    for number in (2, 3, 4):
        stage.play(measuring.measure, job=id, number=number)
        stage.play(running.end_run, job=id, number=number)
    return job


def test_metrics_are_drawn_as_they_come_with_new_charts(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/")
    id = launch(page).strip("/").rsplit("/", 1)[1]
    page.goto(f"/executions/{id}/")
    follow(page)
    expect(page.locator("#metrics-rows")).to_contain_text("Nothing measured yet.")
    expect(page.locator(".chart-grid canvas")).to_have_count(0)
    stage.play(measuring.measure, job=id, number=1)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".chart-grid canvas")).to_have_count(2)
    expect(page.locator("#metrics-rows th")).to_have_text(["loss", "accuracy"])
    stage.play(measuring.measure, job=id, number=1, more=LONG)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".chart-grid figcaption").last).to_have_text(LONG)
    expect(page.locator("#metrics-rows")).to_contain_text("3 values were no finite number")
    chart = page.locator(".chart-grid .chart").first
    chart.focus()
    page.keyboard.press("Home")
    expect(chart.locator("[aria-live]")).to_have_text(re.compile(r"^Step 0: [\w ]+ -?[\d.,]+$"))
    page.keyboard.press("End")
    expect(chart.locator("[aria-live]")).to_have_text(re.compile(r"^Step 3,999: "))
    not_reloaded(page)


def test_sweep_is_sorted_and_its_runs_are_drawn_together(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/")
    job = swept(stage, page, more=LONG)
    page.goto(f"{job}?sweep=2")
    page.get_by_label("Metric").select_option("loss")
    page.get_by_label("Order").select_option("Lowest first")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#runs th")).to_have_text(["Run 2", "Run 3", "Run 4"])
    expect(page.locator(".chart-grid .u-legend .u-label")).to_have_text(["Step", "Run 2", "Run 3", "Run 4"])
    look_on_screens(page, "metrics-sweep")
    page.get_by_label("Compare run 2").check()
    page.get_by_label("with run 4").check()
    page.get_by_role("button", name="Compare two runs").click()
    expect(page.locator(".chart-grid canvas")).to_have_count(2)
    expect(page.locator(".chart-grid .u-legend").first).to_contain_text("Run 4")
    expect(page.locator("tbody").first).to_contain_text("Metric loss")
    look_on_screens(page, "metrics-compare")
    id = job.strip("/").rsplit("/", 1)[1]
    pages = {"run": (f"/executions/{id}/", 3), "job": (job, 0), "record": (f"/executions/{id}/record/", 0)}
    for name, (path, charts) in pages.items():
        page.goto(path)
        if name != "record":
            follow(page)
        expect(page.locator(".chart-grid canvas")).to_have_count(charts)
        look_on_screens(page, f"metrics-{name}")
