"""The admin pages in a real browser: by keyboard alone, on a phone, in the dark."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import administering
from tests.browser.conftest import Visit
from tests.browser.following import tab_to
from tests.browser.looks import faults, look_on_screens
from tests.browser.stage import StageProcess

ADMIN = "ada-admin"
PATHS = ("/tiers/", "/tiers/small/", "/tiers/gpu/", "/environments/jupyterlab/", "/projects/churn/")
REVISIONS = "/environments/jupyterlab/revisions/"


@pytest.fixture(autouse=True)
def catalogues(stage: StageProcess) -> None:
    stage.play(administering.catalogues)


def type_into(page: Page, label: str, text: str) -> None:
    tab_to(page, page.get_by_label(label, exact=True))
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def forgive_refusals(forgiven: list[str]) -> None:
    """The browser writes an answer of 400 into its console; here it is what the test asks for."""
    forgiven.append("400")


def test_tier_is_made_by_keyboard_and_typing_error_found(visit: Visit, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/tiers/")
    tab_to(page, page.get_by_role("link", name="New hardware tier"))
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("New hardware tier")
    for label, text in (
        *(("Id", "tiny"), ("Name", "Tiny"), ("Price", "0.02"), ("Description", "To look around.")),
        *(("Node pool", "default"), ("Cores", "50Om"), ("Memory", "1Gi")),
    ):
        type_into(page, label, text)
    page.keyboard.press("Enter")

    summary = page.get_by_role("alert")
    expect(summary).to_be_focused()
    expect(summary).to_contain_text("“50Om” is not a quantity")
    cores = page.get_by_label("Cores", exact=True)
    expect(cores).to_have_attribute("aria-invalid", "true")
    expect(cores).to_have_accessible_description(re.compile("is not a quantity"))
    expect(page.get_by_label("Memory", exact=True)).to_have_value("1Gi")

    tab_to(page, summary.get_by_role("link", name="Cores"))
    page.keyboard.press("Enter")
    expect(cores).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("500m")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Tiny is saved.")
    row = page.locator(".table-catalogue tr", has_text="Tiny")
    for words in ("0.5 cores", "1 GiB", "2 GiB", "same as request", "$0.02 an hour", "everybody"):
        expect(row).to_contain_text(words)
    forgive_refusals(forgiven)


def test_fit_of_a_tier_follows_what_is_typed(visit: Visit) -> None:
    page = visit(ADMIN, "/tiers/small/")
    expect(page.locator("#fit")).to_contain_text("of the pool default")
    page.get_by_label("Cores", exact=True).fill("9")
    expect(page.locator("#fit")).to_contain_text("it asks for 9 cores")  # before it is saved
    save(page)
    expect(page.get_by_role("status")).to_have_text("Small is saved.")
    expect(page.locator("#fit")).to_contain_text("it asks for 9 cores, but the largest node has 8")


def test_rows_have_one_line_and_three_on_a_phone(visit: Visit) -> None:
    page = visit(ADMIN, "/account/")
    for path in ("/tiers/", "/environments/", "/projects/", "/people/", "/account/"):
        page.goto(path)
        for width, most in ((1440, 45), (800, 45), (390, 90)):
            page.set_viewport_size({"width": width, "height": 900})
            heights = page.locator(".table-lines tbody tr").evaluate_all(
                "all => all.map(row => row.getBoundingClientRect().height)"
            )
            assert heights, path
            assert max(heights) < most, (path, width)
            assert faults(page) == [], (path, width)


def test_failed_build_is_read_and_its_replacement_deprecated(visit: Visit, forgiven: list[str]) -> None:
    forgiven.append("422")
    page = visit(ADMIN, "/environments/jupyterlab/")
    page.get_by_role("link", name="Revisions", exact=True).click()
    page.get_by_role("link", name="Revision 3", exact=True).click()
    expect(page.get_by_label("Lines of the log")).to_contain_text("Downloading polars.whl")
    page.goto(f"{REVISIONS}new/")
    page.get_by_label("Image", exact=True).fill("lab 5")
    page.get_by_role("button", name="Create revision").click()
    expect(page.get_by_label("Image", exact=True)).to_have_accessible_description(re.compile("no name of an image"))
    page.get_by_label("Image", exact=True).fill("lab:5")
    page.get_by_role("button", name="Create revision").click()
    expect(page.locator("h1")).to_have_text("Revision 4")
    page.get_by_role("link", name="Deprecate", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("New launches take revision 2.")
    page.get_by_role("dialog").get_by_label("Why").fill("It was a mistake.")
    page.get_by_role("dialog").get_by_role("button", name="Deprecate it").click()
    expect(page.locator("tbody tr").first).to_contain_text("It was a mistake.")


def test_admin_pages_have_no_visible_fault(visit: Visit, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/tiers/new/")
    save(page)
    look_on_screens(page, "admin-refused", opened=True)
    page.goto("/tiers/small/")
    page.get_by_label("Memory", exact=True).fill("5Gi")
    save(page)
    for path in (*PATHS, REVISIONS, f"{REVISIONS}3/", f"{REVISIONS}new/?from=3", f"{REVISIONS}2/deprecate/"):
        page.goto(path)
        look_on_screens(page, f"admin-{path.strip('/').replace('/', '-')}", opened=True)
    forgive_refusals(forgiven)
