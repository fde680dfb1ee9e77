"""Announcements in a real browser: what an operator publishes is on open pages by itself, and each person hides it alone."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import announcing
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def announcements(stage: StageProcess) -> Iterator[None]:
    stage.play(announcing.quick)
    yield
    stage.play(announcing.end)


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


def test_announcement_banners_and_list_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
    stage.play(announcing.two)
    page = visit("olga-operator", "/announcements/")
    expect(page.locator(".announcement")).to_have_count(2)
    look_on_screens(page, "announcements")
    page = visit("alice", "/launch/")
    expect(page.locator("main")).to_contain_text("Not accepted now")
    look_on_screens(page, "announcements-launch")
