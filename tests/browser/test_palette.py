"""The command palette and the keyboard shortcuts in a real browser: by keyboard alone, and on a phone."""

import re

from playwright.sync_api import Page, expect

from tests.browser import executing
from tests.browser.conftest import Visit, on_stage
from tests.browser.looks import look_on_screens

day = on_stage(executing.working_day)


def chosen(page: Page) -> str:
    """The title of the option that a screen reader is told of."""
    id = page.get_by_role("combobox", name="Search").get_attribute("aria-activedescendant")
    option = page.locator(f"#{id}[aria-selected=true] .palette-title")
    expect(option).to_be_visible()
    return option.inner_text()


def type_into(page: Page, text: str) -> None:
    with page.expect_response(lambda response: f"q={text.replace(' ', '+')}" in response.url):
        page.keyboard.type(text)
    expect(page.locator("#palette-sentence")).to_contain_text("result")


def settle(page: Page) -> None:
    """Wait for the first options of an opened palette."""
    expect(page.locator("#palette [role=option][aria-selected=true]")).to_be_visible()


def test_palette_opens_by_key_and_enter_follows_typed_text(visit: Visit) -> None:
    page = visit("alice", "/")
    for key in ("/", "Control+k", "Meta+k"):
        page.keyboard.press(key)
        settle(page)
        page.keyboard.press("Escape")
    page.keyboard.press("/")
    settle(page)
    type_into(page, "launch")
    options = page.locator("#palette .palette-title").all_inner_texts()
    walked = []
    for key in ("ArrowDown", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
        walked.append(chosen(page))
    assert walked == [options[1], options[0], options[-1]], "the arrow keys go round"
    page.keyboard.press("Control+a")
    type_into(page, "churn exp")
    assert chosen(page) == "Churn exploration"
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Churn exploration")


def test_escape_returns_the_focus_and_fields_take_no_shortcut(visit: Visit) -> None:
    page = visit("alice", "/executions/")
    link = page.locator("main tbody a").first
    link.focus()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    expect(link).to_be_focused()
    field = page.locator("main input[name=text]")
    field.focus()
    page.keyboard.type("/?gh")
    expect(field).to_have_value("/?gh")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_the_list_of_shortcuts_opens_and_its_keys_work(visit: Visit) -> None:
    page = visit("olga-operator", "/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    for key, path in (("q", "/queue/"), ("i", "/infrastructure/"), ("e", "/executions/"), ("h", "/")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(f":[0-9]+{path}$"))
        page.wait_for_load_state()  # the address is the new page's before its keys work


def test_keys_j_and_k_go_through_rows_of_table(visit: Visit) -> None:
    page = visit("alice", "/executions/")
    links = [row.locator("a").first for row in page.locator("main tbody tr").all()]
    assert len(links) > 2
    for key, place in (("j", 0), ("j", 1), ("k", 0), ("k", 0)):
        page.keyboard.press(key)
        expect(links[place]).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/executions/[a-z0-9]+/$"))


def test_single_key_shortcuts_can_be_turned_off(visit: Visit) -> None:
    page = visit("alice", "/")
    page.keyboard.press("?")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.reload()
    page.keyboard.press("/")
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Control+k")
    settle(page)  # or the list that arrives moves the button away beneath the pointer
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Single-key shortcuts").check()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#palette")).to_be_visible()


def test_palette_has_no_visible_fault(visit: Visit) -> None:
    page = visit("ada-admin", "/executions/")
    looks = {"empty": "", "results": "de", "none": "no such thing"}
    for name, text in looks.items():
        page.keyboard.press("Control+k")
        settle(page)
        if text:
            with page.expect_response(lambda response: "options=1" in response.url):
                page.keyboard.type(text)
            expect(page.locator("#palette-sentence")).to_contain_text(re.compile("result|Nothing"))
        look_on_screens(page, f"palette-{name}", part="#palette")
        assert page.locator("#palette").evaluate("each => each.scrollWidth <= each.clientWidth"), name
        page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_be_visible()
    look_on_screens(page, "palette-shortcuts", part="#shortcuts")
    page.goto("/palette/?q=e")
    look_on_screens(page, "palette-page")


def test_execution_is_stopped_from_the_palette_after_a_question(visit: Visit) -> None:
    page = visit("alice", "/")
    page.keyboard.press("/")
    settle(page)
    type_into(page, "stop churn exp")
    assert chosen(page) == "Stop Churn exploration"
    page.keyboard.press("Enter")
    question = page.get_by_role("dialog", name="Stop Churn exploration")
    expect(question).to_be_visible()
    expect(page.locator("#palette")).to_be_hidden()
    question.get_by_role("link", name="Keep it running").click()
    expect(question).to_be_hidden()
