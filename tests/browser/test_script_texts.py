"""What our scripts say when a page cannot load their texts."""

import re

from playwright.sync_api import expect

from tests.browser import executing
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.stage import StageProcess


def test_the_texts_are_english_when_they_cannot_be_loaded(
    stage: StageProcess, visit: Visit, forgiven: list[str]
) -> None:
    forgiven.append("net::ERR_FAILED")
    stage.play(executing.working_day)
    page = visit("olga-operator", "/account/")
    page.route(re.compile("/script-texts/"), lambda route: route.abort())
    page.goto("/executions/")
    follow(page)
    page.evaluate("document.querySelector('time[data-age]').textContent = ''")
    expect(page.locator("time[data-age]").first).to_have_text(re.compile(r"^\d+ (d|h|min|s)$"))
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Search")).to_be_visible()
