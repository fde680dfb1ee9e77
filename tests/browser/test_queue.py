"""The queue page in a real browser: what an operator decides about one person's launch, another person sees at once."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import queueing
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import LINE, highest_row, look_on_screens
from tests.browser.queueing import OURS, THEIRS
from tests.browser.stage import StageProcess

_MINUTES = re.compile(r"About (\d+) min")


@pytest.fixture(autouse=True)
def waiting(stage: StageProcess) -> Iterator[None]:
    stage.play(queueing.two_people_wait)
    yield
    stage.play(queueing.end)


def row(page: Page, id: str) -> Locator:
    return page.locator(f"#wait-{id}")


def position(page: Page, id: str) -> Locator:
    return row(page, id).locator("[data-name='No.']")


def expected_wait(page: Page, id: str) -> Locator:
    return row(page, id).locator(".queue-expected")


def expected_minutes(page: Page, id: str) -> int:
    expect(expected_wait(page, id)).to_contain_text(_MINUTES)
    match = _MINUTES.search(expected_wait(page, id).inner_text())
    assert match is not None
    return int(match[1])


def decide(page: Page, title: str, button: str, *, reason: str = "") -> None:
    page.get_by_role("link", name=f"Change the place of {title}").click()
    if reason:
        page.get_by_label("Reason, which the owner reads").fill(reason)
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.locator("h1")).to_have_text("Queue")
    follow(page)


def test_open_page_of_owner_shows_operator_decision_by_itself(visit: Visit) -> None:
    page = visit("alice", "/queue/")
    follow(page)
    expect(page.locator("#queue-head")).to_contain_text(
        "1 execution waits for a slot that you may see, and 1 of others."
    )
    expect(position(page, OURS)).to_have_text("1")
    as_first = expected_minutes(page, OURS)

    operator = visit("olga-operator", "/queue/")
    follow(operator)
    decide(operator, "Theirs", "To the front")
    expect(position(operator, THEIRS)).to_have_text("1")
    expect(position(page, OURS)).to_have_text("2")
    assert expected_minutes(page, OURS) >= as_first + 15, "another launch is before it now"

    decide(operator, "Theirs", "Hold", reason="The licence server is down")
    expect(position(page, OURS)).to_have_text("1")
    assert expected_minutes(page, OURS) <= as_first
    expect(row(operator, THEIRS)).to_contain_text("Held by olga-operator: The licence server is down.")
    expect(expected_wait(operator, THEIRS)).to_have_text("When an operator releases it.")
    owner = visit("bob", "/queue/")
    follow(owner)
    expect(row(owner, THEIRS)).to_contain_text("Held by olga-operator: The licence server is down.")

    decide(operator, "Theirs", "Release")
    expect(position(page, OURS)).to_have_text("2")
    expect(row(owner, THEIRS)).to_contain_text("Released by olga-operator")

    operator.get_by_role("link", name="Change the place of Theirs").click()
    operator.get_by_role("link", name="Cancel the execution").click()
    operator.get_by_role("button", name="Stop").click()
    expect(position(page, OURS)).to_have_text("1")
    expect(page.locator("#queue-head")).to_contain_text("1 execution waits for a slot.")
    expect(row(owner, THEIRS)).to_have_count(0)
    not_reloaded(page)
    not_reloaded(owner)


def test_queue_pages_have_no_visible_fault(visit: Visit) -> None:
    page = visit("olga-operator", "/queue/")
    follow(page)
    expect(position(page, OURS)).to_have_text("1")
    look_on_screens(page, "queue")
    assert highest_row(page) <= LINE
    page.get_by_role("link", name="Change the place of Ours").click()
    expect(page.get_by_role("heading", name="Move it before another execution")).to_be_visible()
    look_on_screens(page, "queue-order")


def test_several_are_held_and_released_after_one_question_each(visit: Visit) -> None:
    page = visit("olga-operator", "/queue/")
    follow(page)
    for id in (OURS, THEIRS):
        row(page, id).get_by_role("checkbox").check()
    bar = page.locator("#selected")
    expect(bar).to_contain_text("2 selected")
    look_on_screens(page, "queue-selected")
    bar.get_by_role("button", name="Hold").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Hold 2 executions?")
    question.get_by_label("Reason, which each owner reads").fill("The licence server is down")
    look_on_screens(page, "queue-hold-several")
    question.get_by_role("button", name="Hold 2 executions").click()
    expect(page.locator("body")).to_contain_text("2 executions held.")
    expect(row(page, THEIRS)).to_contain_text("Held by olga-operator: The licence server is down.")
    follow(page)
    row(page, OURS).get_by_role("checkbox").check()
    bar.get_by_role("button", name="Release").click()
    question.get_by_role("button", name="Release 1 execution").click()
    expect(page.locator("body")).to_contain_text("1 execution released.")
