"""The pages of usage in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import using
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture
def used(stage: StageProcess) -> Iterator[StageProcess]:
    stage.play(using.two_months)
    yield stage
    stage.play(using.nothing)


def test_way_leads_from_home_to_month_and_to_person(visit: Visit, used: StageProcess) -> None:
    page = visit("olga-operator", "/")
    page.get_by_role("button", name="olga-operator").click()
    page.get_by_role("link", name="Your usage").click()
    expect(page.get_by_role("img", name="Used on")).to_be_visible()
    look_on_screens(page, "usage")
    page.get_by_role("table").last.get_by_role("link").nth(1).click()
    expect(page.get_by_text("Nothing was used in").first).to_be_visible()
    page.get_by_role("link", name="Everybody’s usage").click()
    page.get_by_role("link", name="GPU hours").first.click()
    expect(page.locator("th[aria-sort]").first).to_have_text("GPU hours")
    look_on_screens(page, "usage-everybody")
    page.get_by_role("link", name="alice").click()
    expect(page.locator("h1")).to_have_text("Usage of alice")
