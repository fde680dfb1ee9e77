"""The queue and the rush planner in a real browser: what an operator decides, another person sees at once; a plan is made and removed."""

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import Locator, Page, expect

from tests.browser import queueing
from tests.browser.conftest import Visit, on_stage
from tests.browser.looks import LINE, follow, highest_row, look_on_screens, not_reloaded
from tests.browser.queueing import OURS, THEIRS

_MINUTES = re.compile(r"About (\d+) min")
waiting = on_stage(queueing.two_people_wait, end=queueing.end, autouse=False)
course = on_stage(queueing.before_a_course, end=queueing.no_rush, autouse=False)


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


def test_open_page_of_owner_shows_operator_decision_by_itself(visit: Visit, waiting: None) -> None:
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


def test_queue_pages_have_no_visible_fault(visit: Visit, waiting: None) -> None:
    page = visit("olga-operator", "/queue/")
    follow(page)
    expect(position(page, OURS)).to_have_text("1")
    look_on_screens(page, "queue")
    assert highest_row(page) <= LINE
    page.get_by_role("link", name="Change the place of Ours").click()
    expect(page.get_by_role("heading", name="Move it before another execution")).to_be_visible()
    look_on_screens(page, "queue-order")


def test_several_are_held_and_released_after_one_question_each(visit: Visit, waiting: None) -> None:
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


def test_an_operator_plans_a_rush_and_removes_the_plan(visit: Visit, course: None) -> None:
    page = visit("olga-operator", "/rush/")
    look_on_screens(page, "rush")
    page.get_by_label("Places", exact=True).fill("40")
    page.get_by_label("Tier", exact=True).select_option(label="Medium")
    page.get_by_label("Environment", exact=True).select_option(label="JupyterLab")
    page.get_by_label("Ready at").fill("09:00")
    page.get_by_label("Until", exact=True).fill("12:00")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("On one day").fill(f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d}")
    page.get_by_role("button", name="See what it takes").click()
    expect(page.get_by_role("alert")).to_contain_text("on which 10 places of Medium fit")
    look_on_screens(page, "rush-refused")
    page.get_by_label("Places", exact=True).fill("8")
    page.get_by_role("button", name="See what it takes").click()
    answer = page.locator("section", has=page.locator("#rush-title"))
    expect(answer).to_contain_text("4 of 8 fit on the 2 nodes of the pool default now.")
    expect(answer).to_contain_text("2 nodes must be added, with 2 places each.")
    look_on_screens(page, "rush-answer")
    answer.get_by_role("button", name="Save the plan").dblclick()
    plans = page.get_by_role("region", name="Plans")
    expect(plans.locator("tbody tr")).to_have_count(1)
    expect(plans).to_contain_text("Planned")
    look_on_screens(page, "rush-planned")
    plans.get_by_role("link", name="Remove").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.locator("main")).to_contain_text("There are no plans.")
