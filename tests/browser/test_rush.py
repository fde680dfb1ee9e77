"""The rush planner in a real browser: an operator asks what it takes, is refused, saves the plan, and removes it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.browser import rushing
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def course(stage: StageProcess) -> Iterator[None]:
    stage.play(rushing.before_a_course)
    yield
    stage.play(rushing.nothing)


def test_an_operator_plans_a_rush_and_removes_the_plan(visit: Visit) -> None:
    page = visit("olga-operator", "/rush/")
    look_on_screens(page, "rush")
    page.get_by_label("Places", exact=True).fill("40")
    page.get_by_label("Tier", exact=True).select_option(label="Medium")
    page.get_by_label("Environment", exact=True).select_option(label="JupyterLab")
    page.get_by_label("Ready at").fill("09:00")
    page.get_by_label("Until", exact=True).fill("12:00")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("On one day").fill(f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d}")
    page.get_by_role("button", name="See what it takes").click()
    expect(page.get_by_role("alert")).to_contain_text("on which 10 places of Medium fit")
    look_on_screens(page, "rush-refused")
    page.get_by_label("Places", exact=True).fill("8")
    page.get_by_role("button", name="See what it takes").click()
    answer = page.locator("section", has=page.locator("#rush-title"))
    expect(answer).to_contain_text("4 of 8 fit on the 2 nodes of the pool default now.")
    expect(answer).to_contain_text("2 nodes must be added, with 2 places each.")
    look_on_screens(page, "rush-answer")
    answer.get_by_role("button", name="Save the plan").dblclick()
    plans = page.get_by_role("region", name="Plans")
    expect(plans.locator("tbody tr")).to_have_count(1)
    expect(plans).to_contain_text("Planned")
    look_on_screens(page, "rush-planned")
    plans.get_by_role("link", name="Remove").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.locator("main")).to_contain_text("There are no plans.")
