"""Start-up times in a real browser: from the table to the phases of one tier, and to a slow start's execution."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import starting
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def started(stage: StageProcess) -> Iterator[None]:
    stage.play(starting.a_month_of_starts)
    yield
    stage.play(starting.nothing)


def test_way_leads_from_all_tiers_to_the_slowest_start(visit: Visit) -> None:
    page = visit("olga-operator", "/startup/")
    expect(page.locator("h1")).to_have_text("Start-up times")
    expect(page.locator(".chart-card canvas")).to_have_count(2)
    look_on_screens(page, "startup")
    page.get_by_role("navigation", name="Time range").get_by_role("link", name="30 days").click()
    page.get_by_role("navigation", name="Grouped by").get_by_role("link", name="Environment").click()
    expect(page.locator("#days-title")).to_have_text("The last 30 days")
    first = page.locator("[aria-labelledby=groups-title] tbody").get_by_role("link").first
    name = first.inner_text()
    first.click()
    expect(page.get_by_role("heading", name=f"Phases of {name}")).to_be_visible()
    expect(page.locator("#days-title")).to_have_text(f"The last 30 days of {name}")
    look_on_screens(page, "startup-environment")
    page.locator("tbody").last.get_by_role("link").first.click()
    expect(page.locator(".startup-table caption")).to_contain_text("Started in")
    look_on_screens(page, "startup-execution")


def test_service_levels_show_budget_of_a_month_of_starts(visit: Visit) -> None:
    page = visit("olga-operator", "/service-levels/")
    level = page.get_by_role("region", name="Start-up time")
    expect(level.get_by_role("img")).to_have_count(2)
    expect(level).to_contain_text("starts that ran broke the promise")
    look_on_screens(page, "service-levels")
