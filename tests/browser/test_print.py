"""An execution's page on paper, as a report."""

from playwright.sync_api import expect

from tests.browser import executing
from tests.browser.conftest import Visit
from tests.browser.stage import StageProcess


def test_execution_is_printed_without_controls_and_with_its_times(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    page = visit("alice", "/executions/ffff7777gg/", scheme="dark")
    when = page.locator(".on-paper", has_text="UTC").first
    expect(when).to_be_hidden()
    page.emulate_media(media="print")
    expect(when).to_be_visible()
    for controls in (".sidebar", ".appbar", "main .actions", ".tabs", "#freshness"):
        expect(page.locator(controls).first).to_be_hidden()
    expect(page.locator(".timeline > li").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(26, 33, 44)", "dark ink only"
