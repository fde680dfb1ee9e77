"""An operator writes to the owners of ticked executions in a real browser, and each of them has it at the bell."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import notifying, queueing
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def waiting(stage: StageProcess) -> Iterator[None]:
    stage.play(notifying.none)
    stage.play(queueing.two_people_wait)
    yield
    stage.play(queueing.end)


def test_owners_of_ticked_executions_are_written_to_at_once(visit: Visit) -> None:
    page = visit("olga-operator", "/executions/")
    follow(page)
    for name in ("Ours", "Theirs"):
        page.locator("#executions tr", has_text=name).get_by_role("checkbox").check()
    bar = page.locator("#selected")
    expect(bar).to_contain_text("2 selected")
    look_on_screens(page, "executions-selected")
    bar.get_by_role("button", name="Message").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Write to the owners of 2 executions?")
    question.get_by_label("Text, which each owner reads").fill("Save your work before noon")
    look_on_screens(page, "executions-message")
    question.get_by_role("button", name="Write to the owners of 2 executions").click()
    expect(page.locator("body")).to_contain_text("The message is sent to 2 owners.")
    owner = visit("bob", "/notifications/")
    follow(owner)
    expect(owner.locator("#notifications")).to_contain_text("Message from olga-operator")
    expect(owner.locator("#notifications")).to_contain_text("Save your work before noon. This is about Theirs.")
