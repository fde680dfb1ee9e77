"""Alerts, announcements, notifications and messages in a real browser: open pages have them by themselves; a webhook is posted to."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import alerting, notifying, queueing
from tests.browser.conftest import StageProcess, Visit, on_stage
from tests.browser.looks import follow, look_on_screens, not_reloaded

none = on_stage(notifying.none, autouse=False)
alerts = on_stage(alerting.quick, end=alerting.end, autouse=False)


def test_new_notification_is_counted_and_toasted_on_open_page(none: None, stage: StageProcess, visit: Visit) -> None:
    page = visit("alice", "/")
    expect(page.locator("#freshness")).to_contain_text("Live")
    expect(page.locator("#bell .bell-count")).to_have_count(0)
    stage.play(notifying.one_more)
    expect(page.locator("#bell .bell-count")).to_have_text("1")
    toast = page.locator("#toast .toast")
    expect(toast).to_contain_text("Failed")
    expect(toast).to_contain_text("One more")
    page.locator("#bell").click()
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.locator("#bell .bell-count")).to_have_count(0)


def test_notification_pages_have_no_visible_fault(none: None, stage: StageProcess, visit: Visit) -> None:
    page = visit("alice", "/notifications/")
    look_on_screens(page, "notifications-none")
    stage.play(notifying.notifications)
    for path in ("/notifications/", "/account/"):
        page.goto(path)
        look_on_screens(page, f"notifications-{path.strip('/')}")


@pytest.fixture
def receiver(stage: StageProcess) -> Iterator[str]:
    yield str(stage.play(notifying.sending))
    stage.play(notifying.sends_no_more)


def test_a_webhook_is_set_tested_and_chosen(
    none: None, stage: StageProcess, visit: Visit, receiver: str, forgiven: list[str]
) -> None:
    forgiven.append("422")
    page = visit("alice", "/account/")
    page.get_by_role("link", name="Set a webhook").click()
    page.get_by_label("Address").fill("http://example.com/")
    page.get_by_role("button", name="Save and create a secret").click()
    expect(page.locator(".field-error")).to_have_text("Use an address that begins with https://.")
    page.get_by_label("Address").fill(f"{receiver}/fails")
    page.get_by_role("button", name="Save and create a secret").click()
    expect(page.locator("#secret")).not_to_be_empty()
    page.get_by_role("link", name="Done").click()

    page.get_by_role("button", name="Send a test by Webhook").click()
    expect(page.get_by_role("status")).to_contain_text("The test was not sent. localhost answered with status 500.")
    expect(page.locator("#channel-webhook")).to_contain_text(
        "The latest was given up. localhost answered with status 500."
    )

    page.get_by_role("link", name="Change webhook").click()
    page.get_by_label("Address").fill(f"{receiver}/takes")
    page.get_by_role("button", name="Save and create a secret").click()
    page.get_by_role("link", name="Done").click()
    page.get_by_role("button", name="Send a test by Webhook").click()
    expect(page.get_by_role("status")).to_contain_text("The test was sent. The webhook's server took it.")

    page.get_by_role("checkbox", name="Webhook, when it has failed").check()
    page.locator("#notifications").get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("checkbox", name="Webhook, when it has failed")).to_be_checked()
    stage.play(notifying.fails)
    expect(page.locator("#channel-webhook")).to_contain_text("The latest")
    for _ in range(40):
        events = [json.loads(body)["event"] for body in stage.play(notifying.posted)]
        if "failed" in events:
            break
        page.wait_for_timeout(250)
    assert events == ["test", "test", "failed"]


launches_wait = on_stage(queueing.two_people_wait, end=queueing.end, autouse=False)


def test_owners_of_ticked_executions_are_written_to_at_once(none: None, visit: Visit, launches_wait: None) -> None:
    page = visit("olga-operator", "/executions/")
    follow(page)
    for name in ("Ours", "Theirs"):
        page.locator("#executions tr", has_text=name).get_by_role("checkbox").check()
    bar = page.locator("#selected")
    expect(bar).to_contain_text("2 selected")
    look_on_screens(page, "executions-selected")
    bar.get_by_role("button", name="Message").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Write to the owners of 2 executions?")
    question.get_by_label("Text, which each owner reads").fill("Save your work before noon")
    look_on_screens(page, "executions-message")
    question.get_by_role("button", name="Write to the owners of 2 executions").click()
    expect(page.locator("body")).to_contain_text("The message is sent to 2 owners.")
    owner = visit("bob", "/notifications/")
    follow(owner)
    expect(owner.locator("#notifications")).to_contain_text("Message from olga-operator")
    expect(owner.locator("#notifications")).to_contain_text("Save your work before noon. This is about Theirs.")


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
