"""The bell and the notifications' page in a real browser."""

import pytest
from playwright.sync_api import expect

from tests.browser import notifying
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def none(stage: StageProcess) -> None:
    stage.play(notifying.none)


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


def test_open_list_shows_new_notification_and_marks_it_read(stage: StageProcess, visit: Visit) -> None:
    page = visit("alice", "/notifications/")
    follow(page)
    expect(page.locator("#notifications")).to_contain_text("No notifications.")
    stage.play(notifying.one_more)
    expect(page.locator("#notifications .notification-unread")).to_contain_text("One more")
    expect(page.locator("#notifications-lead")).to_have_text("1 unread notification.")
    not_reloaded(page)
    page.get_by_role("button", name="Mark as read One more").click()
    expect(page.locator("#notifications-lead")).to_have_text("Everything is read.")
    expect(page.locator(".notification-unread")).to_have_count(0)


def test_notification_pages_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
    page = visit("alice", "/notifications/")
    look_on_screens(page, "notifications-none")
    stage.play(notifying.notifications)
    for path in ("/notifications/", "/account/"):
        page.goto(path)
        look_on_screens(page, f"notifications-{path.strip('/')}")
