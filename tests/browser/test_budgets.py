"""Budgets in a real browser: an admin sets one, and those who spend it see where it stands."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import budgeting
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture
def spending(stage: StageProcess) -> Iterator[StageProcess]:
    stage.play(budgeting.month)
    yield stage
    stage.play(budgeting.nothing)


def test_admin_sets_a_budget_and_those_who_spend_see_it(visit: Visit, spending: StageProcess) -> None:
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
