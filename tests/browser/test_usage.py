"""Usage and budgets in a real browser: what was used, and what those who spend a budget see of it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import budgeting, using
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture
def used(stage: StageProcess) -> Iterator[StageProcess]:
    stage.play(using.two_months)
    yield stage
    stage.play(using.nothing)


def test_way_leads_from_home_to_month_and_to_person(visit: Visit, used: StageProcess) -> None:
    page = visit("alice", "/usage/")
    expect(page.get_by_role("img", name="Used on")).to_be_visible()
    look_on_screens(page, "usage")
    page = visit("olga-operator", "/")
    page.get_by_role("button", name="olga-operator").click()
    page.get_by_role("link", name="Your usage").click()
    page.get_by_role("table").last.get_by_role("link").nth(1).click()
    expect(page.get_by_text("Nothing was used in").first).to_be_visible()
    page.get_by_role("link", name="Everybody’s usage").click()
    page.get_by_role("link", name="GPU hours").first.click()
    expect(page.locator("th[aria-sort]").first).to_have_text("GPU hours")
    look_on_screens(page, "usage-everybody")
    page.get_by_role("link", name="alice").click()
    expect(page.locator("h1")).to_have_text("Usage of alice")


@pytest.fixture
def spending(stage: StageProcess) -> Iterator[StageProcess]:
    stage.play(budgeting.month)
    yield stage
    stage.play(budgeting.nothing)


def test_those_who_spend_see_a_budget_that_admins_set(visit: Visit, spending: StageProcess) -> None:
    page, member = visit("ada-admin", "/projects/churn/"), visit("alice", "/projects/churn/")
    page.get_by_role("link", name="Budget", exact=True).first.click()
    look_on_screens(page, "budget")
    for path in ("/projects/churn/", "/launch/"):
        member.goto(path)
        expect(member.get_by_text(" of $130.00").first).to_be_visible()
        look_on_screens(member, f"budget-{path.strip('/').replace('/', '-')}")
    page.get_by_label("Amount per calendar month").fill("0.01")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The budget of Customer churn is saved.")).to_be_visible()
    member.reload()
    expect(member.get_by_text("Not accepted now")).to_be_visible()
    look_on_screens(member, "budget-used-up")
