"""An operator taints a node after a preview, takes over the queue, and has more logged."""

from playwright.sync_api import expect

from tests.browser import draining
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


def test_a_taint_is_looked_at_and_then_added(stage: StageProcess, visit: Visit) -> None:
    stage.play(draining.busy_node)
    page = visit("olga-operator", "/nodes/node-a/")
    page.get_by_role("link", name="Taints and labels").click()
    page.locator("#taint-key").fill("example.com/team")
    page.locator("#taint-effect").select_option("NoSchedule")
    page.get_by_role("button", name="See what it would do").first.click()
    expect(page.get_by_role("main")).to_contain_text("Running executions keep running.")
    look_on_screens(page, "node-mark")
    page.get_by_label("Reason").fill("For team a")
    page.get_by_role("button", name="Add taint").click()
    follow(page)
    stage.play(draining.carry_out)
    expect(page.locator("#node-work")).to_contain_text("Done for olga-operator")
    expect(page.locator("#facts")).to_contain_text("example.com/team:NoSchedule")


def test_pages_of_takeover_and_verbose_logs_look_right(stage: StageProcess, visit: Visit) -> None:
    stage.play(draining.busy_node)
    page = visit("olga-operator", "/queue/take-over/")
    look_on_screens(page, "queue-takeover")
    page.goto("/verbose-logs/")
    page.locator("#subject").select_option("web")
    page.get_by_label("Reason").fill("Slow since noon")
    page.get_by_role("button", name="Log in detail").click()
    end = page.get_by_role("button", name="End verbose logs of component web")
    expect(end).to_be_visible()
    look_on_screens(page, "verbose-logs")
    end.click()
    expect(end).to_have_count(0)
