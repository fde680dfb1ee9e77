"""People in a real browser: invited by an admin, joined through a link, on a phone, in the dark."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser import administering
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess

ADMIN = "ada-admin"
PASSWORD = "a long and new passphrase"


@pytest.fixture(autouse=True)
def catalogues(stage: StageProcess) -> None:
    stage.play(administering.catalogues)
    stage.play(administering.people)


def invite(page: Page) -> str:
    """Return the path of the link, whose origin is that of the settings."""
    page.get_by_label("Username").fill("nina")
    page.get_by_label("Role", exact=True).select_option("operator")
    page.get_by_role("button", name="Create the account and a link").click()
    return urlsplit(page.locator("#link").inner_text()).path


def set_password(page: Page) -> None:
    page.get_by_label("New password", exact=True).fill(PASSWORD)
    page.get_by_label("New password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Set password and log in").click()
    expect(page.locator(".notice-success")).to_have_text("Your password is set, and you are logged in.")


def test_an_invited_person_joins_once(visit: Visit, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/people/invite/")
    look_on_screens(page, "people-invite")
    link = invite(page)
    look_on_screens(page, "people-link")
    guest = visit("", link)
    expect(guest.locator("h1")).to_have_text("Set your password")
    assert guest.url.endswith("/set-password/"), "the token is not in the address"
    look_on_screens(guest, "people-join")
    set_password(guest)
    forgiven.append("410")
    guest.goto(link)
    expect(guest.locator("h1")).to_have_text("This link no longer works")
    look_on_screens(guest, "people-used")


def test_the_pages_of_people_look_as_they_should(visit: Visit) -> None:
    page = visit(ADMIN, "/people/?state=deactivated")
    look_on_screens(page, "people-deactivated")
    page.locator("tbody a").first.click()
    look_on_screens(page, "people-closed")
    page.goto("/people/")
    page.fill("#filter-text", "alice")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/people/\?text=alice$"))
    expect(page.locator("#filter-text")).to_be_focused()
    page.locator("tbody a").first.click()
    look_on_screens(page, "people-person")
    page.get_by_role("link", name="Deactivate").click()
    expect(page.get_by_role("dialog")).to_contain_text("They stay the owner of Customer churn")
    look_on_screens(page, "people-deactivate")
    page.get_by_role("dialog").get_by_role("link", name="Keep active").click()
    expect(page).to_have_url(re.compile(r"/people/\d+/$"))


def test_an_owner_manages_a_project_and_a_member_looks(visit: Visit) -> None:
    page = visit("alice", "/projects/")
    look_on_screens(page, "people-projects")
    page.get_by_role("link", name="Customer churn").click()
    look_on_screens(page, "people-project")
    page.get_by_label("Username").fill("charlie")
    page.get_by_role("form", name="Add a member").get_by_label("Role", exact=True).select_option("viewer")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".notice-success")).to_have_text("charlie is a viewer now.")
    page.get_by_role("link", name="Make charlie a contributor").click()
    expect(page.get_by_role("dialog")).to_contain_text("charlie can launch in the project")
    look_on_screens(page, "people-project-question")
    page.get_by_role("dialog").get_by_role("button", name="Make contributor").click()
    expect(page.locator(".notice-success")).to_have_text("charlie is a contributor now.")
    look_on_screens(page, "people-project-changed")
    member = visit("charlie", "/projects/churn/")
    look_on_screens(member, "people-project-member")
    member.goto("/account/")
    look_on_screens(member, "people-account")
