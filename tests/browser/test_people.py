"""People in a real browser: invited by an admin, joined through a link, without JavaScript, on a phone, in the dark."""

import os
import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser import administering
from tests.browser.accessibility import violations
from tests.browser.conftest import Visit
from tests.browser.looks import faults
from tests.browser.stage import StageProcess

ADMIN = "ada-admin"
PASSWORD = "a long and new passphrase"
SCREENS = [(1440, "light"), (390, "dark")]


@pytest.fixture(autouse=True)
def catalogues(stage: StageProcess) -> None:
    stage.play(administering.catalogues)
    stage.play(administering.people)


def look_at(page: Page, name: str) -> None:
    expect(page.locator("h1").first).to_be_visible()
    if folder := os.environ.get("GRID_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/people-{name}-{page.evaluate('innerWidth')}.png", full_page=True)
    assert [*faults(page), *violations(page)] == [], name


def invite(page: Page) -> str:
    """Return the path of the link, whose origin is that of the settings."""
    page.get_by_label("Username").fill("nina")
    page.get_by_label("Role").select_option("operator")
    page.get_by_role("button", name="Make the account and a link").click()
    return urlsplit(page.locator("#link").inner_text()).path


def set_password(page: Page) -> None:
    page.get_by_label("New password", exact=True).fill(PASSWORD)
    page.get_by_label("New password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Set password and log in").click()
    expect(page.locator(".notice-success")).to_have_text("Your password is set, and you are logged in.")


@pytest.mark.parametrize(("width", "scheme"), SCREENS, ids=["wide", "phone"])
def test_an_invited_person_joins_once(visit: Visit, forgiven: list[str], width: int, scheme: str) -> None:
    page = visit(ADMIN, "/people/invite/", width=width, scheme=scheme)
    look_at(page, "invite")
    link = invite(page)
    look_at(page, "link")
    guest = visit("", link, width=width, scheme=scheme)
    expect(guest.locator("h1")).to_have_text("Set your password")
    assert guest.url.endswith("/set-password/"), "the token is not in the address"
    look_at(guest, "join")
    set_password(guest)
    forgiven.append("410")
    guest.goto(link)
    expect(guest.locator("h1")).to_have_text("This link does not work any more")
    look_at(guest, "used")


def test_an_invited_person_joins_without_a_script(visit: Visit) -> None:
    link = invite(visit(ADMIN, "/people/invite/", javascript=False))
    set_password(visit("", link, javascript=False))


@pytest.mark.parametrize(("width", "scheme"), SCREENS, ids=["wide", "phone"])
def test_the_pages_of_people_look_as_they_should(visit: Visit, width: int, scheme: str) -> None:
    page = visit(ADMIN, "/people/", width=width, scheme=scheme)
    look_at(page, "people")
    page.goto("/people/?state=deactivated")
    look_at(page, "deactivated")
    page.locator("table a").first.click()
    look_at(page, "closed")
    page.goto("/people/?text=alice")
    page.locator("table a").first.click()
    look_at(page, "person")
    page.get_by_role("link", name="Deactivate").click()
    expect(page.get_by_role("dialog")).to_contain_text("They stay the owner of Customer churn")
    look_at(page, "deactivate")
    page.get_by_role("dialog").get_by_role("link", name="Keep active").click()
    expect(page).to_have_url(re.compile(r"/people/\d+/$"))


@pytest.mark.parametrize(("width", "scheme"), SCREENS, ids=["wide", "phone"])
def test_an_owner_manages_a_project_and_a_member_looks(visit: Visit, width: int, scheme: str) -> None:
    page = visit("alice", "/projects/", width=width, scheme=scheme)
    look_at(page, "projects")
    page.get_by_role("link", name="Customer churn").click()
    look_at(page, "project")
    page.get_by_label("Username").fill("charlie")
    page.get_by_role("form", name="Add a member").get_by_label("Role").select_option("viewer")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".notice-success")).to_have_text("charlie is a viewer now.")
    page.get_by_role("button", name="Make contributor of charlie").click()
    expect(page.locator(".notice-success")).to_have_text("charlie is a contributor now.")
    look_at(page, "project-changed")
    member = visit("charlie", "/projects/churn/", width=width, scheme=scheme)
    look_at(member, "project-member")
    member.goto("/account/")
    look_at(member, "account")
