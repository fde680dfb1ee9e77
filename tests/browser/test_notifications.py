"""The bell and the notifications' page in a real browser."""

import pytest
from playwright.sync_api import expect

from tests.browser import notifying
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import WIDE_AND_PHONE, look_at
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


def test_bell_is_a_link_with_the_number_without_script(stage: StageProcess, visit: Visit) -> None:
    stage.play(notifying.notifications)
    page = visit("alice", "/", javascript=False)
    page.get_by_role("link", name="Notifications, 4 unread").click()
    expect(page.locator(".notification-unread")).to_have_count(4)
    page.get_by_role("button", name="Mark as read Train model 0").click()
    expect(page.locator(".notification-unread")).to_have_count(3)


@WIDE_AND_PHONE
def test_notification_pages_have_no_visible_fault(stage: StageProcess, visit: Visit, width: int, scheme: str) -> None:
    page = visit("alice", "/notifications/", width=width, scheme=scheme)
    look_at(page, "notifications-none")
    stage.play(notifying.notifications)
    page.reload()
    look_at(page, "notifications")
    page.goto("/account/")
    look_at(page, "notifications-account")
