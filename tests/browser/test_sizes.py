"""The right-size hint in a real browser: chosen with one click, and after running out of memory one link away."""

import pytest
from playwright.sync_api import expect

from tests.browser import sizing
from tests.browser.conftest import Visit
from tests.browser.looks import WIDE_AND_PHONE, look_at
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def runs(stage: StageProcess) -> None:
    stage.play(sizing.runs)


@pytest.mark.parametrize("javascript", [True, False])
def test_a_smaller_tier_is_chosen_with_one_click(visit: Visit, javascript: bool) -> None:
    page = visit("alice", f"/launch/?from={sizing.LAST}", javascript=javascript)
    small = page.get_by_role("radio", name="Small")
    expect(small).not_to_be_checked()
    expect(page.locator(".size-hint")).to_contain_text(
        "Your last 3 runs of “train” peaked at 3 of 28 GiB and 0.7 of 7 cores"
    )
    page.locator(".size-hint label").click()
    expect(small).to_be_checked()


def test_larger_tier_is_chosen_after_running_out_of_memory(visit: Visit) -> None:
    page = visit("alice", f"/executions/{sizing.SHORT}/")
    page.get_by_role("link", name="Launch again on Large (28 GiB)").click()
    expect(page.get_by_role("radio", name="Large")).to_be_checked()
    expect(page.get_by_label("Title")).to_have_value("merge")


@WIDE_AND_PHONE
def test_hints_have_no_fault_to_the_eye(visit: Visit, width: int, scheme: str) -> None:
    page = visit("alice", f"/launch/?from={sizing.LAST}", width=width, scheme=scheme)
    look_at(page, "size-launch")
    for id in (sizing.LAST, sizing.SHORT):
        page.goto(f"/executions/{id}/")
        expect(page.locator(".size-note")).to_be_visible()
        look_at(page, f"size-{id}")
