"""One's account and the locked logins in a real browser: by keyboard, on a phone, in the dark; and sessions that end at once."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import administering
from tests.browser.conftest import Visit
from tests.browser.looks import WIDE_AND_PHONE, look_at
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


def test_password_against_the_rules_is_refused_at_its_field(visit: Visit) -> None:
    page = visit("charlie", "/account/")
    page.get_by_role("link", name="Change password").press("Enter")
    page.get_by_label("Old password").fill("charlie-password")
    for label in ("New password", "New password confirmation"):
        page.get_by_label(label, exact=True).fill("short")
    page.get_by_role("button", name="Change password").click()
    expect(page.locator(".field-wrong .field-error")).to_contain_text("at least 12 characters")


def lock_out(page: Page) -> None:
    for _ in range(10):
        page.get_by_label("Username").fill("alice")
        page.get_by_label("Password").fill("wrong")
        with page.expect_navigation():
            page.get_by_role("button", name="Log in").click()


@WIDE_AND_PHONE
def test_account_pages_have_no_visible_fault(visit: Visit, forgiven: list[str], width: int, scheme: str) -> None:
    visit(ADMIN, "/account/")
    page = visit(ADMIN, "/account/", width=width, scheme=scheme)
    guesser = visit("bob", "/account/", width=width, scheme=scheme)
    guesser.locator("main").get_by_role("button", name="Log out").click()
    lock_out(guesser)
    expect(guesser.get_by_role("alert")).to_contain_text("Try again in 15 minutes, or ask an admin to unlock it.")
    look_at(guesser, "account-locked")
    for path in ("/account/", "/logins/"):
        page.goto(path)
        look_at(page, f"account-{path.strip('/')}")
    page.get_by_role("button", name="Unlock alice at 127.0.0.1").click()
    expect(page.get_by_role("status")).to_have_text("Unlocked: logging in is possible again.")
    look_at(page, "account-unlocked")
    forgiven.append("429")
