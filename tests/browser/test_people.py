"""People in a real browser: invited by an admin, joined through a link, without JavaScript, on a phone, in the dark."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser import administering
from tests.browser.conftest import Visit
from tests.browser.looks import WIDE_AND_PHONE, look_at
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


@WIDE_AND_PHONE
def test_an_invited_person_joins_once(visit: Visit, forgiven: list[str], width: int, scheme: str) -> None:
    page = visit(ADMIN, "/people/invite/", width=width, scheme=scheme)
    look_at(page, "people-invite")
    link = invite(page)
    look_at(page, "people-link")
    guest = visit("", link, width=width, scheme=scheme)
    expect(guest.locator("h1")).to_have_text("Set your password")
    assert guest.url.endswith("/set-password/"), "the token is not in the address"
    look_at(guest, "people-join")
    set_password(guest)
    forgiven.append("410")
    guest.goto(link)
    expect(guest.locator("h1")).to_have_text("This link no longer works")
    look_at(guest, "people-used")


def test_an_invited_person_joins_without_a_script(visit: Visit) -> None:
    link = invite(visit(ADMIN, "/people/invite/", javascript=False))
    guest = visit("", link, javascript=False)
    set_password(guest)
    expect(guest.get_by_role("navigation", name="Main")).to_contain_text("nina")


@WIDE_AND_PHONE
def test_the_pages_of_people_look_as_they_should(visit: Visit, width: int, scheme: str) -> None:
    page = visit(ADMIN, "/people/", width=width, scheme=scheme)
    look_at(page, "people-people")
    page.goto("/people/?state=deactivated")
    look_at(page, "people-deactivated")
    page.locator("tbody a").first.click()
    look_at(page, "people-closed")
    page.goto("/people/?text=alice")
    page.locator("tbody a").first.click()
    look_at(page, "people-person")
    page.get_by_role("link", name="Deactivate").click()
    expect(page.get_by_role("dialog")).to_contain_text("They stay the owner of Customer churn")
    look_at(page, "people-deactivate")
    page.get_by_role("dialog").get_by_role("link", name="Keep active").click()
    expect(page).to_have_url(re.compile(r"/people/\d+/$"))


@WIDE_AND_PHONE
def test_an_owner_manages_a_project_and_a_member_looks(visit: Visit, width: int, scheme: str) -> None:
    page = visit("alice", "/projects/", width=width, scheme=scheme)
    look_at(page, "people-projects")
    page.get_by_role("link", name="Customer churn").click()
    look_at(page, "people-project")
    page.get_by_label("Username").fill("charlie")
    page.get_by_role("form", name="Add a member").get_by_label("Role", exact=True).select_option("viewer")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".notice-success")).to_have_text("charlie is a viewer now.")
    page.get_by_role("link", name="Make charlie a contributor").click()
    expect(page.get_by_role("dialog")).to_contain_text("charlie can launch in the project")
    look_at(page, "people-project-question")
    page.get_by_role("dialog").get_by_role("button", name="Make contributor").click()
    expect(page.locator(".notice-success")).to_have_text("charlie is a contributor now.")
    look_at(page, "people-project-changed")
    member = visit("charlie", "/projects/churn/", width=width, scheme=scheme)
    look_at(member, "people-project-member")
    member.goto("/account/")
    look_at(member, "people-account")


@pytest.mark.parametrize("javascript", [True, False])
def test_role_is_changed_after_a_question_about_lost_rights(visit: Visit, javascript: bool) -> None:
    page = visit(ADMIN, "/people/?text=olga", javascript=javascript)
    page.locator("tbody a").first.click()
    page.locator("#id_role").select_option("practitioner")
    page.get_by_role("button", name="Change role").click()
    question = page.get_by_role("dialog") if javascript else page.get_by_role("main")
    expect(question).to_contain_text("They can no longer see the infrastructure")
    question.get_by_role("link", name="Keep operator").click()
    expect(page).to_have_url(re.compile(r"/people/\d+/$"))
    expect(page.locator("#id_role")).to_have_value("practitioner" if javascript else "operator")


def test_people_are_filtered_while_somebody_types(visit: Visit) -> None:
    page = visit(ADMIN, "/people/")
    page.fill("#filter-text", "olga")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/people/\?text=olga$"))
    expect(page.locator("#filter-text")).to_be_focused()
    page.select_option("#filter-state", "deactivated")
    expect(page.get_by_text("Nobody matches.")).to_be_visible()
    page.get_by_role("link", name="Remove State: Deactivated").click()
    expect(page.locator("tbody tr")).to_have_count(1)


@pytest.mark.parametrize("javascript", [True, False])
def test_a_secret_is_deleted_after_a_question(visit: Visit, javascript: bool) -> None:
    page = visit("alice", "/secrets/", javascript=javascript)
    page.get_by_label("Name").fill("DB_PASSWORD")
    page.get_by_label("Value", exact=True).fill("s")
    page.get_by_role("button", name="Store").click()
    page.get_by_role("link", name="Delete DB_PASSWORD").click()
    question = page.get_by_role("dialog") if javascript else page.get_by_role("main")
    expect(question).to_contain_text("The value cannot be recovered")
    question.get_by_role("button", name="Delete the secret").click()
    expect(page.locator(".notice-success")).to_contain_text("DB_PASSWORD was deleted.")
