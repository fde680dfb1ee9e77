"""The "?" beside words and the help page in a real browser: by keyboard, without a script, on a phone, in the dark."""

import pytest
from playwright.sync_api import expect

from tests.browser import launching
from tests.browser.conftest import StageProcess, Visit
from tests.browser.looks import PHONE, WIDE, look_at, look_on_screens

LEAST_TARGET = 24  # px, of WCAG 2.2


def test_question_mark_opens_by_keyboard_and_leads_to_glossary(visit: Visit, stage: StageProcess) -> None:
    stage.play(launching.team)
    page = visit("alice", "/projects/")
    question = page.get_by_role("button", name="What does “Project” mean?")
    note = page.locator("#term-project")
    expect(note).to_be_hidden()
    question.focus()
    page.keyboard.press("Enter")
    expect(note).to_be_visible()
    expect(note).to_contain_text("People, their executions and their files.")
    page.keyboard.press("Escape")
    expect(note).to_be_hidden()
    expect(question).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    expect(note.get_by_role("link")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{stage.url}/help/#project")
    expect(page.locator("#project")).to_be_in_viewport()
    look_on_screens(page, "help")


@pytest.mark.parametrize(("width", "scheme"), [WIDE, PHONE])
def test_open_question_mark_is_beside_its_word_in_window(
    visit: Visit, stage: StageProcess, width: int, scheme: str
) -> None:
    stage.play(launching.team)
    page = visit("alice", "/launch/", width=width, scheme=scheme)
    question = page.get_by_role("button", name="What does “Attached cluster” mean?")
    question.click()
    note = page.locator(".term-note:popover-open")
    expect(note).to_have_count(1)
    button, inside = question.bounding_box(), note.bounding_box()
    assert button and inside
    assert min(button["width"], button["height"]) >= LEAST_TARGET
    assert inside["x"] >= 0
    assert inside["x"] + inside["width"] <= width
    gap = max(inside["y"] - button["y"] - button["height"], button["y"] - inside["y"] - inside["height"])
    assert 0 <= gap < 10
    look_at(page, "help-question")


def test_first_steps_lead_to_a_launch_and_stay_hidden(visit: Visit, stage: StageProcess) -> None:
    stage.play(launching.team)
    page = visit("alice", "/")
    card = page.get_by_role("region", name="First steps")
    expect(card.locator("[aria-current=step]")).to_contain_text("Launch a workspace")
    look_on_screens(page, "first-steps")
    card.get_by_role("link", name="Launch").click()
    expect(page.locator("h1")).to_have_text("Launch")
    page.goto("/")
    card.get_by_role("button", name="Hide").click()
    expect(card).to_have_count(0)
    page.goto("/")
    expect(page.get_by_role("heading", name="Slots")).to_be_visible()
    expect(card).to_have_count(0)
