"""An operator taints a node after a preview, takes over the queue, and has more logged."""

import pytest
from playwright.sync_api import expect

from tests.browser import draining
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.looks import WIDE_AND_PHONE, look_at
from tests.browser.stage import StageProcess

pytestmark = pytest.mark.slow


@WIDE_AND_PHONE
def test_a_taint_is_looked_at_and_then_added(stage: StageProcess, visit: Visit, width: int, scheme: str) -> None:
    stage.play(draining.busy_node)
    page = visit("olga-operator", "/nodes/node-a/", width=width, scheme=scheme)
    page.get_by_role("link", name="Taints and labels").click()
    page.locator("#taint-key").fill("example.com/team")
    page.locator("#taint-effect").select_option("NoSchedule")
    page.get_by_role("button", name="See what it would do").first.click()
    expect(page.get_by_role("main")).to_contain_text("Running executions keep running.")
    page.get_by_label("Reason").fill("For team a")
    page.get_by_role("button", name="Add taint").click()
    follow(page)
    stage.play(draining.carry_out)
    expect(page.locator("#node-work")).to_contain_text("Done for olga-operator")
    expect(page.locator("#facts")).to_contain_text("example.com/team:NoSchedule")


@WIDE_AND_PHONE
def test_pages_of_taints_takeover_and_verbose_logs_look_right(
    stage: StageProcess, visit: Visit, width: int, scheme: str
) -> None:
    stage.play(draining.busy_node)
    path = "/nodes/node-a/mark/?do=taint&key=example.com/team&effect=NoSchedule"
    look_at(visit("olga-operator", path, width=width, scheme=scheme), "node-mark")
    look_at(visit("olga-operator", "/queue/take-over/", width=width, scheme=scheme), "queue-takeover")
    page = visit("olga-operator", "/verbose-logs/", width=width, scheme=scheme)
    page.locator("#subject").select_option("web")
    page.get_by_label("Reason").fill("Slow since noon")
    page.get_by_role("button", name="Log in detail").click()
    end = page.get_by_role("button", name="End verbose logs of component web")
    expect(end).to_be_visible()
    look_at(page, "verbose-logs")
    end.click()
    expect(end).to_have_count(0)
