"""One's account and the locked logins in a real browser: by keyboard, on a phone, in the dark; and sessions that end at once."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import administering
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess

ADMIN = "ada-admin"


@pytest.fixture(autouse=True)
def catalogues(stage: StageProcess) -> None:
    stage.play(administering.catalogues)


def test_open_page_says_that_its_session_ended_elsewhere(visit: Visit) -> None:
    there = visit("bob", "/executions/")
    expect(there.locator("#freshness")).to_contain_text("Live")
    here = visit("bob", "/account/")
    here.get_by_role("button", name="End all others").click()
    expect(here.get_by_role("status")).to_have_text("All your other sessions were ended.")
    expect(there.locator("#live")).to_contain_text("Your session has ended")
    there.goto("/executions/")
    expect(there.locator("h1")).to_have_text("Log in")


def lock_out(page: Page) -> None:
    for _ in range(10):
        page.get_by_label("Username").fill("alice")
        page.get_by_label("Password").fill("wrong")
        with page.expect_navigation():
            page.get_by_role("button", name="Log in").click()


def test_account_pages_have_no_visible_fault(visit: Visit, forgiven: list[str]) -> None:
    visit(ADMIN, "/account/")
    page, guesser = visit(ADMIN, "/account/"), visit("bob", "/account/")
    guesser.locator("main").get_by_role("button", name="Log out").click()
    lock_out(guesser)
    expect(guesser.get_by_role("alert")).to_contain_text("Try again in 15 minutes, or ask an admin to unlock it.")
    look_on_screens(guesser, "account-locked")
    for path in ("/account/", "/logins/"):
        page.goto(path)
        look_on_screens(page, f"account-{path.strip('/')}")
    page.get_by_role("button", name="Unlock alice at 127.0.0.1").click()
    expect(page.get_by_role("status")).to_have_text("Unlocked: logging in is possible again.")
    forgiven.append("429")
