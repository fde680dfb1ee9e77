"""Schedules of a job in a real browser: checked and saved without a script, and told while they are typed with one."""

from playwright.sync_api import Page, expect

from tests.browser import executing
from tests.browser.conftest import Visit
from tests.browser.looks import WIDE_AND_PHONE, look_at
from tests.browser.stage import StageProcess
from tests.browser.test_jobs import launch


def save(page: Page, job: str, cron: str) -> None:
    page.goto(f"{job}schedules/new/")
    page.fill("#id_cron", cron)
    page.fill("#id_time_zone", "Europe/Berlin")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#schedules")).to_contain_text(cron)


def test_schedule_is_checked_saved_paused_and_deleted_without_script(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/", javascript=False)
    job = launch(page)
    page.goto(f"{job}schedules/new/")
    page.fill("#id_cron", "0 0 30 2 *")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#schedule-meaning")).to_contain_text("No such date")
    page.fill("#id_cron", "0 6 * * 1-5")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#schedule-meaning")).to_contain_text("Monday to Friday at 06:00")
    expect(page.locator("#schedule-meaning li")).to_have_count(5)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#schedules h3")).to_contain_text("Monday to Friday at 06:00")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#schedules")).to_contain_text("Paused by alice.")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#schedules li")).to_have_count(5)
    page.get_by_role("link", name="Delete Monday to Friday").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.locator("#schedules")).to_contain_text("No schedule: the job runs on request only.")


def test_words_and_times_follow_what_is_typed(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/")
    job = launch(page)
    page.goto(f"{job}schedules/new/")
    zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    expect(page.locator("#id_time_zone")).to_have_value(zone)
    page.locator("#id_cron").press_sequentially("*/15 * * * *")
    expect(page.locator("#schedule-meaning")).to_contain_text("Every 15 minutes")
    page.fill("#id_cron", "61 * * * *")
    expect(page.locator("#schedule-meaning")).to_contain_text("above maximum (59)")
    page.fill("#id_cron", "0 9 * * *")
    page.fill("#id_time_zone", "Asia/Kathmandu")
    expect(page.locator("#schedule-meaning")).to_contain_text("09:00 +0545")


@WIDE_AND_PHONE
def test_schedule_pages_have_no_visible_fault(
    stage: StageProcess, visit: Visit, forgiven: list[str], width: int, scheme: str
) -> None:
    forgiven.append("422")
    stage.play(executing.team)
    page = visit("alice", "/", width=width, scheme=scheme)
    job = launch(page)
    save(page, job, "0 6 * * 1-5")
    save(page, job, "7,11 0-11 1-20/3 * *")
    page.get_by_role("button", name="Pause").first.click()
    look_at(page, "schedule-of-job")
    page.get_by_role("link", name="Edit Monday to Friday").click()
    look_at(page, "schedule-edit")
    page.goto(f"{job}schedules/new/")
    page.fill("#id_cron", "0 0 30 2 *")
    page.get_by_role("button", name="Save").click()
    look_at(page, "schedule-wrong")
    page.goto("/jobs/")
    look_at(page, "schedule-list")
