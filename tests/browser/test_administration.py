"""The admin pages in a real browser: by keyboard alone, without JavaScript, on a phone, in the dark."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import administering
from tests.browser.conftest import Visit
from tests.browser.looks import WIDE_AND_PHONE, faults, look_at
from tests.browser.stage import StageProcess

ADMIN = "ada-admin"
PATHS = ("/tiers/", "/tiers/small/", "/tiers/gpu/", "/tiers/whale/", "/environments/jupyterlab/", "/projects/churn/")
REVISIONS = "/environments/jupyterlab/revisions/"


@pytest.fixture(autouse=True)
def catalogues(stage: StageProcess) -> None:
    stage.play(administering.catalogues)


def tab_to(page: Page, target: Locator) -> None:
    """As somebody without a mouse gets there."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"the Tab key does not reach {target}")


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


def test_tier_that_fits_no_node_is_saved_with_warning(visit: Visit) -> None:
    page = visit(ADMIN, "/tiers/small/")
    expect(page.locator("#in-use")).to_contain_text("3 active executions use it.")
    expect(page.locator("#fit")).to_contain_text("of the pool default")
    page.get_by_label("Cores", exact=True).fill("9")
    expect(page.locator("#fit")).to_contain_text("it asks for 9 cores")  # before it is saved
    save(page)
    expect(page.get_by_role("status")).to_have_text("Small is saved.")
    expect(page.locator("#fit")).to_contain_text("it asks for 9 cores, but the largest node has 8")
    page.get_by_role("link", name="Hardware tiers").click()
    expect(page.get_by_role("row", name="Small too large")).to_contain_text("too large for its nodes")
    page.goto("/tiers/gpu/")
    expect(page.locator("#fit")).to_contain_text("The pool default-gpu has no node now; the autoscaler starts one")


def test_without_scripts_the_fit_is_checked_with_a_button(visit: Visit) -> None:
    page = visit(ADMIN, "/tiers/small/", javascript=False)
    page.get_by_label("Cores", exact=True).fill("5")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#fit")).to_contain_text("1 place on each of 2 nodes")
    page.goto("/tiers/small/")
    expect(page.get_by_label("Cores", exact=True)).to_have_value("1")


def test_kubernetes_details_are_closed_until_they_are_needed(visit: Visit, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/tiers/small/")
    labels = page.get_by_label("Extra labels")
    expect(labels).to_be_hidden()
    tab_to(page, page.locator("summary", has_text="Kubernetes details"))
    page.keyboard.press("Enter")
    expect(labels).to_be_visible()
    labels.fill("team")
    save(page)
    expect(labels).to_be_visible()
    expect(labels).to_have_accessible_description(re.compile("has no “=”"))
    page.goto("/tiers/gpu/")
    expect(page.get_by_label("Tolerations")).to_be_visible()
    forgive_refusals(forgiven)


def test_change_is_in_the_history_and_can_be_reverted(visit: Visit) -> None:
    page = visit(ADMIN, "/environments/jupyterlab/")
    command = page.get_by_label("Command")
    before = command.input_value()
    command.fill(before.replace("--no-browser", "--debug"))
    save(page)
    page.goto("/environments/jupyterlab/")
    newest = page.locator("tbody tr").first
    expect(newest.locator("del")).to_have_text("--no-browser")
    expect(newest.locator("ins")).to_have_text("--debug")
    newest.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("is undone")
    expect(command).to_have_value(before)
    expect(page.locator("tbody tr").first.locator("ins")).to_have_text("--no-browser")


def test_rows_have_one_line_and_three_on_a_phone(visit: Visit) -> None:
    page = visit("ada-admin", "/account/")
    for path in ("/tiers/", "/environments/", "/projects/", "/people/", "/account/"):
        page.goto(path)
        look_at(page, f"rows-{path.strip('/')}")
        for width, most in ((1440, 45), (800, 45), (390, 90)):
            page.set_viewport_size({"width": width, "height": 900})
            heights = page.locator(".table-lines tbody tr").evaluate_all(
                "all => all.map(row => row.getBoundingClientRect().height)"
            )
            assert heights, path
            assert max(heights) < most, (path, width)
            assert faults(page) == [], (path, width)
        page.set_viewport_size({"width": 1440, "height": 900})


def test_archived_project_can_be_restored(visit: Visit) -> None:
    page = visit(ADMIN, "/projects/vision/")
    page.get_by_role("link", name="Archive").click()
    page.get_by_role("button", name="Archive it").click()
    archived = page.get_by_role("region", name="Archived")
    expect(archived.get_by_role("link")).to_have_text(["Product photos"])
    archived.get_by_role("link").click()
    expect(page.locator("main")).to_contain_text("nobody can choose it until you restore it")
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("status")).to_have_text("Product photos is restored.")
    expect(archived).to_have_count(0)


def test_everything_works_without_javascript(visit: Visit, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/tiers/new/", javascript=False)
    entries = {"Id": "tiny", "Name": "Tiny", "Node pool": "defualt", "Cores": "1", "Memory": "1Gi"}
    for label, text in entries.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_label("vision team").check()
    save(page)
    pool = page.get_by_label("Node pool", exact=True)
    expect(pool).to_have_accessible_description(re.compile("There is no node pool “defualt”"))
    expect(page.get_by_label("vision team")).to_be_checked()
    pool.fill("default")
    save(page)
    expect(page.locator(".table-catalogue tr", has_text="Tiny")).to_contain_text("vision team")
    page.get_by_role("link", name="Tiny").click()
    page.locator("summary", has_text="Kubernetes details").click()
    page.get_by_label("Tolerations").fill("spot:NoSchedule")
    save(page)
    page.get_by_role("link", name="Tiny").click()
    expect(page.locator("tbody tr").first).to_contain_text("Tolerations")
    page.get_by_role("button", name="Undo").first.click()
    expect(page.get_by_label("Tolerations")).to_have_value("")
    page.get_by_role("link", name="Archive").click()
    page.get_by_role("button", name="Archive it").click()
    expect(page.get_by_role("region", name="Archived")).to_contain_text("Tiny")
    forgive_refusals(forgiven)


def test_failed_build_is_read_and_its_replacement_deprecated(visit: Visit, forgiven: list[str]) -> None:
    forgiven.append("422")
    page = visit(ADMIN, "/environments/jupyterlab/")
    page.get_by_role("link", name="Revisions", exact=True).click()
    page.get_by_role("link", name="Revision 3", exact=True).click()
    expect(page.get_by_label("Lines of the log")).to_contain_text("Downloading polars.whl")
    page.goto(f"{REVISIONS}new/")
    page.get_by_label("Image", exact=True).fill("lab 5")
    page.get_by_role("button", name="Create revision").click()
    expect(page.get_by_label("Image", exact=True)).to_have_accessible_description(re.compile("without blanks"))
    page.get_by_label("Image", exact=True).fill("lab:5")
    page.get_by_role("button", name="Create revision").click()
    expect(page.locator("h1")).to_have_text("Revision 4")
    page.get_by_role("link", name="Deprecate", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("New launches take revision 2.")
    page.get_by_role("dialog").get_by_label("Why").fill("It was a mistake.")
    page.get_by_role("dialog").get_by_role("button", name="Deprecate it").click()
    expect(page.locator("tbody tr").first).to_contain_text("It was a mistake.")


@WIDE_AND_PHONE
def test_admin_pages_have_no_visible_fault(visit: Visit, width: int, scheme: str, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/tiers/", width=width, scheme=scheme)
    for path in (*PATHS, REVISIONS, f"{REVISIONS}3/", f"{REVISIONS}new/?from=3", f"{REVISIONS}2/deprecate/"):
        page.goto(path)
        look_at(page, f"admin-{path.strip('/').replace('/', '-')}", opened=True)
    page.goto("/tiers/new/")
    save(page)
    look_at(page, "admin-refused", opened=True)
    page.goto("/tiers/small/")
    page.get_by_label("Memory", exact=True).fill("5Gi")
    save(page)
    page.goto("/tiers/small/")
    look_at(page, "admin-history", opened=True)
    forgive_refusals(forgiven)
