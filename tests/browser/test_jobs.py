"""Jobs in a real browser, also without a script: launched, swept, measured, scheduled, compared, stopped and deleted."""

import re

from playwright.sync_api import Page, expect

from tests.browser import executing, running
from tests.browser.conftest import StageProcess, Visit
from tests.browser.looks import ROWS, WIDE, follow, highest_row, look_on_screens, not_reloaded, show_on

TITLE = "Train the churn model"
LONG = "validation/precision at rank 10 of the customers who left within 30 days"


def launch(page: Page) -> str:
    """Launch a job of which one run may be active; return the path of its page."""
    page.goto("/launch/?kind=job")
    page.fill("#id_title", TITLE)
    page.fill("#id_command", 'python train.py --rate "$rate"')
    page.locator(".job-options > summary").click()
    page.fill("#id_timeout", "2h")
    page.fill("#id_retries", "2")
    page.fill("#id_at_once", "1")
    page.get_by_role("button", name="Launch").click()
    expect(page.locator("h1")).to_have_text(TITLE)
    return f"/jobs/{page.url.rstrip('/').rsplit('/', 1)[1]}/"


def sweep(page: Page, job: str) -> None:
    page.goto(f"{job}sweep/")
    page.fill("#id_table", "rate,depth\n0.1,3\n0.01,5\n1,7")
    page.get_by_role("button", name="Start the sweep").click()
    expect(page.locator("main")).to_contain_text("0 of 3 done")


def test_a_job_is_launched_swept_compared_stopped_and_deleted(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/", javascript=False)
    job = launch(page)
    expect(page.locator("#facts")).to_contain_text("Attempt 1 of 3")
    sweep(page, job)
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page.locator("main")).to_contain_text("at most 1 may be at once")
    page.get_by_label("Compare run 2").check()
    page.get_by_label("with run 3").check()
    page.get_by_role("button", name="Compare two runs").click()
    expect(page.locator("tbody").first).to_contain_text("0.01")
    page.goto("/jobs/")
    expect(page.locator("tbody tr")).to_contain_text("0 of 3 done")
    page.goto(job)
    page.get_by_role("link", name="Stop all").click()
    page.get_by_role("button", name="Stop 4 runs").click()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.locator("main")).to_contain_text("You have no jobs.")


def test_open_list_and_job_follow_the_run_by_themselves(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/")
    follow(page)
    job = launch(page)
    id = job.strip("/").rsplit("/", 1)[1]
    page.goto(job)
    follow(page)
    jobs = visit("alice", "/jobs/")
    follow(jobs)
    shown = (page.locator("#run-1"), jobs.locator(f"#job-{id}"))
    stage.play(running.begin_run, job=id, number=1)
    for row in shown:
        expect(row.locator(".status")).to_have_text("Running")
    expect(page.get_by_role("link", name="Stop run 1")).to_be_visible()
    stage.play(running.end_run, job=id, number=1)
    for row in shown:
        expect(row.locator(".status")).to_have_text("Succeeded")
    expect(page.get_by_role("link", name="Stop run 1")).to_have_count(0)
    expect(page.get_by_role("link", name="Delete", exact=True)).to_be_visible()
    not_reloaded(page)
    not_reloaded(jobs)
    jobs.get_by_role("button", name=f"Run {TITLE} again").click()
    expect(jobs.locator("#facts")).to_contain_text("Run 2")


def test_job_pages_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/")
    follow(page)
    job = launch(page)
    id = job.strip("/").rsplit("/", 1)[1]
    stage.play(running.end_run, job=id, number=1, state="failed", message="The program ended with exit code 1. " * 5)
    launch(page)
    sweep(page, job)
    for path in ("/jobs/", job, page.url):
        page.goto(path)
        follow(page)
        for width, most in ROWS:
            page.set_viewport_size({"width": width, "height": 900})
            assert highest_row(page) <= most, (path, width)
        show_on(page, *WIDE)
        look_on_screens(page, "job-rows")
    pages = {"launch": "/launch/?kind=job&retries=2"}
    pages |= {name: f"{job}{name}/" for name in ("run", "sweep", "edit", "stop", "delete")}
    pages |= {"again": f"{job}again/2/", "compare": f"{job}compare/?a=1&b=3"}
    for name, path in pages.items():
        page.goto(path)
        look_on_screens(page, f"job-{name}")


def swept(stage: StageProcess, page: Page, *, more: str = "") -> str:
    """A job whose first run and whose sweep of three have measured something; return the job's page."""
    job = launch(page)
    id = job.strip("/").rsplit("/", 1)[1]
    stage.play(running.end_run, job=id, number=1)
    sweep(page, job)
    stage.play(running.measure, job=id, number=1, more=more)
    for number in (2, 3, 4):
        stage.play(running.measure, job=id, number=number)
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
    stage.play(running.measure, job=id, number=1)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".chart-grid canvas")).to_have_count(2)
    expect(page.locator("#metrics-rows th")).to_have_text(["loss", "accuracy"])
    stage.play(running.measure, job=id, number=1, more=LONG)
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


def test_schedule_is_explained_saved_paused_and_deleted(stage: StageProcess, visit: Visit, forgiven: list[str]) -> None:
    forgiven.append("422")
    stage.play(executing.team)
    page = visit("alice", "/")
    job = launch(page)
    page.goto(f"{job}schedules/new/")
    zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    expect(page.locator("#id_time_zone")).to_have_value(zone)
    page.locator("#id_cron").press_sequentially("*/15 * * * *")
    meaning = page.locator("#schedule-meaning")
    expect(meaning).to_contain_text("Every 15 minutes")
    page.fill("#id_cron", "61 * * * *")
    expect(meaning).to_contain_text("above maximum (59)")
    page.get_by_role("button", name="Save").click()
    look_on_screens(page, "schedule-wrong")
    page.fill("#id_cron", "0 6 * * 1-5")
    page.fill("#id_time_zone", "Asia/Kathmandu")
    expect(meaning).to_contain_text("06:00 +0545")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#schedules h3")).to_contain_text("Monday to Friday at 06:00")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#schedules")).to_contain_text("Paused by alice.")
    look_on_screens(page, "schedule-of-job")
    page.get_by_role("link", name="Edit Monday to Friday").click()
    look_on_screens(page, "schedule-edit")
    page.goto("/jobs/")
    look_on_screens(page, "schedule-list")
    page.goto(job)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#schedules li")).to_have_count(5)
    page.get_by_role("link", name="Delete Monday to Friday").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.locator("#schedules")).to_contain_text("No schedule: the job runs on request only.")
