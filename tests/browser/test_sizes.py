"""The right-size hint in a real browser: chosen with one click, and after running out of memory one link away."""

import pytest
from playwright.sync_api import expect

from tests.browser import sizing
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def runs(stage: StageProcess) -> None:
    stage.play(sizing.runs)


def test_a_smaller_tier_is_chosen_with_one_click(visit: Visit) -> None:
    page = visit("alice", f"/launch/?from={sizing.LAST}")
    small = page.get_by_role("radio", name="Small")
    expect(small).not_to_be_checked()
    expect(page.locator(".size-hint")).to_contain_text(
        "Your last 3 runs of “train” peaked at 3 of 28 GiB and 0.7 of 7 cores"
    )
    look_on_screens(page, "size-launch")
    page.locator(".size-hint label").click()
    expect(small).to_be_checked()


def test_larger_tier_is_chosen_after_running_out_of_memory(visit: Visit) -> None:
    page = visit("alice", f"/executions/{sizing.SHORT}/")
    expect(page.locator(".size-note")).to_be_visible()
    look_on_screens(page, "size-short")
    page.get_by_role("link", name="Launch again on Large (28 GiB)").click()
    expect(page.get_by_role("radio", name="Large")).to_be_checked()
    expect(page.get_by_label("Title")).to_have_value("merge")
