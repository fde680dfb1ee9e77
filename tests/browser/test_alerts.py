"""Alerts in a real browser: a critical one is on the open pages of those who operate by itself, and is gone once it is silenced."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import alerting
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def alerts(stage: StageProcess) -> Iterator[None]:
    stage.play(alerting.quick)
    yield
    stage.play(alerting.end)


def test_critical_alert_comes_to_open_pages_until_silenced(stage: StageProcess, visit: Visit) -> None:
    page, list_page = visit("olga-operator", "/executions/"), visit("ada-admin", "/alerts/")
    others = visit("alice", "/executions/")
    follow(page)
    follow(list_page)
    stage.play(alerting.critical)
    line = page.locator("#alert-lines")
    expect(line).to_contain_text("Alert: NoControllerLeads: No controller leads.")
    expect(list_page.locator("#alerts-firing")).to_contain_text("No controller leads.")
    not_reloaded(page)
    expect(others.locator("#alert-lines")).to_have_count(0)
    list_page.get_by_role("link", name="Silence NoControllerLeads").click()
    list_page.get_by_label("Reason, which other operators read").fill("A known upgrade")
    look_on_screens(list_page, "alert-silence")
    list_page.get_by_role("button", name="Silence").click()
    expect(list_page.locator("#alerts-firing")).to_contain_text("Silenced by ada-admin until")
    expect(line.locator(".notice")).to_have_count(0)
    not_reloaded(page)
    follow(list_page)
    list_page.get_by_role("link", name="End now the silence of NoControllerLeads").click()
    list_page.get_by_role("button", name="End it now").click()
    expect(line).to_contain_text("No controller leads.")
    line.get_by_role("link", name="What to do about NoControllerLeads").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("No controller leads: what to do")


def test_alerts_page_and_lines_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
    stage.play(alerting.several)
    page = visit("olga-operator", "/alerts/")
    expect(page.locator("#alert-silences")).to_contain_text("Alertmanager did not answer")
    expect(page.locator("#alert-lines .announcement")).to_have_count(3)
    look_on_screens(page, "alerts")
