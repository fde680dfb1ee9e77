"""The frame of all pages and what comes over them, in a real browser: the navigation, questions as dialogs, tables."""

import pytest
from playwright.sync_api import expect

from tests.browser import executing
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.looks import look_at
from tests.browser.stage import StageProcess

PATH = "/executions/"


@pytest.fixture
def working(stage: StageProcess) -> StageProcess:
    stage.play(executing.working_day)
    return stage


@pytest.mark.parametrize("javascript", [True, False])
def test_the_menu_of_a_phone_opens_without_a_script_too(visit: Visit, working: StageProcess, javascript: bool) -> None:
    page = visit("olga-operator", "/", width=390, javascript=javascript)
    link = page.get_by_role("navigation", name="Main").get_by_role("link", name="Infrastructure")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    link.click()
    expect(page.locator("h1")).to_have_text("Infrastructure")


def test_a_question_is_a_dialog_that_escape_closes_and_that_is_a_page_without_a_script(
    visit: Visit, working: StageProcess
) -> None:
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


def test_several_executions_are_selected_and_stopped_after_one_question(visit: Visit, working: StageProcess) -> None:
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


def test_a_row_opens_to_its_whole_cause_and_stays_open_while_it_changes(visit: Visit, working: StageProcess) -> None:
    page = visit("olga-operator", PATH)
    follow(page)
    row = page.locator("#executions tr:has(summary)").first
    before = _height(row.evaluate("row => row.getBoundingClientRect().height"))
    row.locator("summary").click()
    expect(row.locator("details")).to_have_attribute("open", "")
    page.wait_for_timeout(1500)  # a tick of the page, which renders it again
    expect(row.locator("details")).to_have_attribute("open", "")
    assert _height(row.evaluate("row => row.getBoundingClientRect().height")) >= before


@pytest.mark.parametrize("width", [1440, 1024, 390])
@pytest.mark.parametrize("path", [PATH, "/infrastructure/"])
def test_rows_are_one_line_and_on_a_phone_three(visit: Visit, working: StageProcess, path: str, width: int) -> None:
    page = visit("olga-operator", path, width=width)
    follow(page)
    rows = page.locator("main table.table-lines tbody tr:has(th)")
    assert rows.count() > 1
    highest = max(
        _height(rows.nth(each).evaluate("row => row.getBoundingClientRect().height")) for each in range(rows.count())
    )
    assert highest <= (96 if width == 390 else 44)


def _height(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
