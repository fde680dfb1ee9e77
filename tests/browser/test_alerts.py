"""Alerts and announcements in a real browser: open pages have them by themselves, until they are silenced or each person hides them."""

import pytest
from playwright.sync_api import expect

from tests.browser import alerting
from tests.browser.conftest import StageProcess, Visit, on_stage
from tests.browser.looks import follow, look_on_screens, not_reloaded

alerts = on_stage(alerting.quick, end=alerting.end, autouse=False)


@pytest.mark.usefixtures("alerts")
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


@pytest.mark.usefixtures("alerts")
def test_alerts_page_and_lines_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
    stage.play(alerting.several)
    page = visit("olga-operator", "/alerts/")
    expect(page.locator("#alert-silences")).to_contain_text("Alertmanager did not answer")
    expect(page.locator("#alert-lines .announcement")).to_have_count(3)
    look_on_screens(page, "alerts")


announcements = on_stage(alerting.quick_announcements, end=alerting.end_announcements, autouse=False)


@pytest.mark.usefixtures("announcements")
def test_announcement_is_live_on_open_pages_and_hidden_individually(visit: Visit) -> None:
    page = visit("alice", "/executions/")
    follow(page)
    operator = visit("olga-operator", "/announcements/")
    operator.get_by_role("link", name="New announcement").click()
    operator.get_by_label("Text", exact=True).fill("Kubernetes is upgraded")
    operator.get_by_label("Severity").select_option(label="Warning")
    operator.get_by_label("Shown until (UTC)").fill("2999-01-02T06:00")
    operator.get_by_label("No new launches from (UTC)").fill("2999-01-01T18:00")
    look_on_screens(operator, "announcement-new")
    operator.get_by_role("button", name="Publish").click()
    banner = page.locator("#announcements")
    expect(banner).to_contain_text("Warning: Kubernetes is upgraded No new launches from 1 January, 18:00 UTC.")
    not_reloaded(page)
    banner.get_by_role("button", name="Hide").click()
    expect(page.locator(".announcement")).to_have_count(0)
    expect(operator.locator("#announcements")).to_contain_text("Kubernetes is upgraded")
    follow(page)
    operator.get_by_role("link", name="End now").click()
    operator.get_by_role("button", name="End it now").click()
    expect(operator.locator(".announcement")).to_have_count(0)
    expect(operator.locator("main")).to_contain_text("Ended")


@pytest.mark.usefixtures("announcements")
def test_announcement_banners_and_list_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
    stage.play(alerting.two_announcements)
    page = visit("olga-operator", "/announcements/")
    expect(page.locator(".announcement")).to_have_count(2)
    look_on_screens(page, "announcements")
    page = visit("alice", "/launch/")
    expect(page.locator("main")).to_contain_text("Not accepted now")
    look_on_screens(page, "announcements-launch")
