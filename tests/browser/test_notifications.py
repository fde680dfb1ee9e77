"""The bell, the notifications' page, a webhook against a real server, and a message to the owners of ticked executions."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import notifying, queueing
from tests.browser.conftest import StageProcess, Visit, on_stage
from tests.browser.looks import follow, look_on_screens

none = on_stage(notifying.none)


def test_new_notification_is_counted_and_toasted_on_open_page(stage: StageProcess, visit: Visit) -> None:
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


def test_notification_pages_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
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
    stage: StageProcess, visit: Visit, receiver: str, forgiven: list[str]
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


def test_owners_of_ticked_executions_are_written_to_at_once(visit: Visit, launches_wait: None) -> None:
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
