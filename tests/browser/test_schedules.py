"""Schedules of a job in a real browser: explained while they are typed, saved, paused and deleted."""

from playwright.sync_api import expect

from tests.browser import executing
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess
from tests.browser.test_jobs import launch


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
