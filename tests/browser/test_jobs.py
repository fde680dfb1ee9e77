"""Jobs in a real browser without a script: launched with options, swept, compared, stopped and deleted."""

from playwright.sync_api import Page, expect

from tests.browser import executing, running
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import ROWS, WIDE, highest_row, look_on_screens, show_on
from tests.browser.stage import StageProcess

TITLE = "Train the churn model"


def launch(page: Page) -> str:
    """Launch a job of which one run may be active; return the path of its page."""
    page.goto("/launch/?kind=job")
    page.fill("#id_title", TITLE)
    page.fill("#id_command", 'python train.py --rate "$rate"')
    page.locator(".job-options > summary").click()
    page.fill("#id_timeout", "2h")
    page.fill("#id_retries", "2")
    page.fill("#id_at_once", "1")
    page.get_by_role("button", name="Launch", exact=True).last.click()
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
