"""Budgets in a real browser: an admin sets one, and those who spend it see where it stands."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import budgeting
from tests.browser.conftest import Visit
from tests.browser.looks import look_at
from tests.browser.stage import StageProcess


@pytest.fixture
def spending(stage: StageProcess) -> Iterator[StageProcess]:
    stage.play(budgeting.month)
    yield stage
    stage.play(budgeting.nothing)


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1440, "light"),
        (1024, "dark"),
        (390, "light"),
        (390, "dark"),
    ],
    ids=["wide", "middle", "phone", "phone-dark"],
)
def test_budget_looks_as_it_should_where_it_is_shown(
    visit: Visit, spending: StageProcess, width: int, scheme: str
) -> None:
    for person, path in (
        ("alice", "/projects/churn/"),
        ("ada-admin", "/projects/churn/budget/"),
        ("ada-admin", "/projects/churn/"),
        ("alice", "/launch/"),
    ):
        page = visit(person, path, width=width, scheme=scheme)
        expect(page.get_by_text(" of $130.00").first).to_be_visible()
        look_at(page, f"budget-{person}-{path.strip('/').replace('/', '-')}")


def test_admin_changes_it_and_the_owner_is_refused(visit: Visit, spending: StageProcess) -> None:
    page = visit("ada-admin", "/projects/churn/", width=390, javascript=False)
    page.get_by_role("link", name="Budget", exact=True).first.click()
    page.get_by_label("Amount per calendar month").fill("0.01")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The budget of Customer churn is saved.")).to_be_visible()
    expect(page.get_by_text("New launches are refused until").last).to_be_visible()
    page = visit("alice", "/launch/", width=1440)
    expect(page.get_by_text("Not accepted now")).to_be_visible()
    look_at(page, "budget-used-up")
