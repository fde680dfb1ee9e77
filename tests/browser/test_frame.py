"""The frame of all pages and what comes over them, in a real browser: the navigation, questions as dialogs, tables."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import executing
from tests.browser.conftest import Visit, on_stage
from tests.browser.looks import ROWS, follow, highest_row, look_at

PATH = "/executions/"
working = on_stage(executing.working_day, autouse=False)


def test_phone_menu_opens_and_leads_to_a_page(visit: Visit, working: None) -> None:
    page = visit("olga-operator", "/", width=390)
    link = page.get_by_role("navigation", name="Main").get_by_role("link", name="Infrastructure")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    link.click()
    expect(page.locator("h1")).to_have_text("Infrastructure")
    follow(page)


def test_question_is_a_dialog_that_escape_closes(visit: Visit, working: None) -> None:
    page = visit("olga-operator", "/executions/aaaa2222bb/")
    follow(page)
    page.get_by_role("link", name="Stop").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It belongs to alice.")
    expect(dialog.get_by_role("link", name="Keep it running")).to_be_focused()
    look_at(page, "frame-question")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#head")).to_contain_text("Running")
    page.get_by_role("link", name="Stop").click()
    dialog.get_by_role("button", name="Stop it").click()
    expect(page.locator("#head")).to_contain_text("Stop")
    expect(dialog).to_be_hidden()


def test_several_executions_are_selected_and_stopped_after_one_question(visit: Visit, working: None) -> None:
    page = visit("olga-operator", PATH)
    follow(page)
    bar = page.locator(".selected")
    expect(bar).to_be_hidden()
    boxes = page.locator("#executions .select")
    wanted = boxes.count()
    assert wanted > 2
    every = page.get_by_role("checkbox", name="Select all rows of this page")
    every.check()
    expect(bar).to_contain_text(f"{wanted} selected")
    bar.get_by_role("button", name="Clear").click()
    expect(bar).to_be_hidden()
    boxes.first.check()
    assert every.evaluate("box => box.indeterminate && !box.checked"), "some are selected"
    bar.get_by_role("button", name="Select all").click()
    expect(bar).to_contain_text(f"{wanted} selected")
    expect(every).to_be_checked()
    look_at(page, "frame-selected")
    bar.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.locator(".notice")).to_contain_text("are stopping.")


@pytest.mark.parametrize("path", [PATH, "/infrastructure/"])
def test_rows_are_one_line_and_on_a_phone_three(visit: Visit, working: None, path: str) -> None:
    page = visit("olga-operator", path)
    follow(page)
    for width, most in ROWS:
        page.set_viewport_size({"width": width, "height": 900})
        assert highest_row(page) <= most, width


def cut_cell(page: Page) -> Locator:
    """A status whose cause has more words than its cell has room for; its row gives way to it."""
    page.evaluate(
        """() => {
            const row = document.querySelector("#executions tr:has(summary)"), note = row.querySelector(".why-note");
            note.textContent = "The program has ended again and again since its tier has less memory than it needs. ".repeat(3);
            row.id = "cut";
        }"""
    )
    return page.locator("#cut")


def test_cut_text_of_row_is_shown_on_keyboard_focus(visit: Visit, working: None) -> None:
    page = visit("olga-operator", PATH)
    follow(page)
    row, whole = cut_cell(page), page.locator(".cell-whole")
    before = row.bounding_box()
    row.locator("th").click(position={"x": 2, "y": 2})
    expect(whole).to_be_hidden()  # it was a mouse
    page.keyboard.press("Tab")  # to the head of the table
    row.locator("a").first.focus()
    expect(whole).to_contain_text("since its tier has less memory than it needs. The program")
    expect(whole.locator("dt").first).to_have_text("Status")
    assert row.bounding_box() == before, "nothing has moved"
    look_at(page, "frame-cell-whole")
    page.keyboard.press("Escape")
    expect(whole).to_be_hidden()
