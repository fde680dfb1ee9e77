"""The configuration page in a real browser: by keyboard, on a phone, in the dark."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser import administering
from tests.browser.conftest import Visit, on_stage
from tests.browser.looks import look_on_screens

ADMIN = "ada-admin"
PAGE = "/configuration/"
settings = on_stage(administering.changed_settings)


def field(page: Page, title: str) -> Locator:
    return page.get_by_label(title, exact=True)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=re.compile(f"^{name}")).click()


def lines(page: Page) -> Locator:
    return page.locator(".setting-review tbody tr")


def test_settings_are_changed_mistyped_reviewed_and_saved_together(visit: Visit, forgiven: list[str]) -> None:
    forgiven.append("400")
    page = visit(ADMIN, PAGE)
    field(page, "Preparing timeout").fill("7200")
    field(page, "Deploying timeout").fill("an hour")
    field(page, "Deploying timeout").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("1 value is not allowed")
    timeout = field(page, "Deploying timeout")
    expect(timeout).to_be_focused()
    expect(timeout).to_have_accessible_description(re.compile("not a whole number of seconds. In force is 3600"))
    timeout.fill("60")
    press(page, "Back to the default of Queue limit")
    expect(page.locator("h1")).to_have_text("Review 3 changes")
    expect(lines(page).nth(0)).to_contain_text("3 executions would end now: 3 of alice.")
    expect(lines(page).nth(2).locator("del")).to_have_text("500 executions")
    expect(lines(page).nth(2).locator("ins")).to_have_text("1000 executions (default)")
    press(page, "Go back")
    expect(timeout).to_have_value("60")
    expect(field(page, "Queue limit")).to_have_value("")
    field(page, "Preparing timeout").fill("3600")
    press(page, "Review changes")
    press(page, "Save 2 changes")
    expect(page.get_by_role("status")).to_have_text("2 settings changed; they are in force already.")
    expect(field(page, "Queue limit")).to_have_value("1000")
    expect(page.locator("tbody tr", has_text="3600 → 60")).to_have_count(1)


def test_filter_is_instant_and_loses_nothing_that_was_typed(visit: Visit) -> None:
    page = visit(ADMIN, PAGE)
    field(page, "Audit log").fill("30")
    expect(page.get_by_role("button", name="Review changes")).to_have_text("Review changes (1)")
    search = page.get_by_label("Search the settings")
    search.press_sequentially("Drain TIME")
    expect(page.locator(".setting:visible label").first).to_have_text("Drain time")
    expect(field(page, "Drain time of Dask clusters")).to_be_visible()
    expect(field(page, "Audit log")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"\?q=Drain\+TIME$"))
    search.fill("nothing like this")
    expect(page.get_by_text("No setting matches.")).to_be_visible()
    search.fill("")
    page.get_by_label("Changed only").check()
    shown = ["Queue limit", "Idle limit", "Audit log", "Drain time of Dask clusters"]
    expect(page.locator(".setting:visible label")).to_have_text(shown)
    press(page, "Review changes")
    expect(lines(page)).to_have_count(1)
    press(page, "Go back")
    expect(field(page, "Audit log")).to_have_value("30")
    expect(page.get_by_label("Changed only")).to_be_checked()
    expect(page.get_by_role("button", name="Review changes")).to_have_text("Review changes (1)")


def test_configuration_states_have_no_visible_fault(visit: Visit, forgiven: list[str]) -> None:
    forgiven.append("400")
    page = visit(ADMIN, PAGE)
    look_on_screens(page, "configuration-page", opened=True)
    field(page, "Deploying timeout").fill("60")
    field(page, "Maximum executions per user").fill("0")
    field(page, "Maximum workers").fill("ten")
    press(page, "Review changes")
    expect(page.get_by_role("alert")).to_be_visible()
    look_on_screens(page, "configuration-wrong", opened=True)
    field(page, "Maximum workers").fill("10")
    press(page, "Review changes")
    expect(lines(page)).to_have_count(3)
    look_on_screens(page, "configuration-review")
