"""An execution that is about to be stopped, in a real browser: the evidence, and the button that keeps it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import keeping
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess

ID = "idle222222"
PATH = f"/executions/{ID}/"


@pytest.fixture(autouse=True)
def about_to_stop(stage: StageProcess) -> Iterator[None]:
    stage.play(keeping.about_to_stop, id=ID)
    yield
    stage.play(keeping.no_limits)


def test_execution_is_kept_by_keyboard_and_watchers_see_it(stage: StageProcess, visit: Visit) -> None:
    watching = visit("bob", PATH)
    follow(watching)
    expect(watching.locator("#stop-notice")).to_contain_text("CPU under 1 %. It stops in 2")
    expect(watching.get_by_role("button", name="Keep it 2 h longer")).to_have_count(0)
    page = visit("alice", PATH)
    page.get_by_role("button", name="Keep it 2 h longer").focus()
    look_on_screens(page, "keeping")
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_contain_text("Forgotten is kept until")
    expect(page.locator("#stop-notice")).to_contain_text("It stops when idle for 1 h 15 min.")
    expect(page.locator("#timeline")).to_contain_text("alice keeps it until")
    expect(watching.locator("#stop-notice")).to_contain_text("It stops when idle for 1 h 15 min.")
