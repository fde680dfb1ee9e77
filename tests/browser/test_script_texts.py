"""What our scripts say: in the language of the texts that the page loads, and in English when it cannot load them."""

import re

import pytest
from django.views.i18n import JavaScriptCatalog
from playwright.sync_api import Page, expect

from tests.browser import executing
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.stage import StageProcess

PATH = "/executions/"
TEXTS = re.compile("/script-texts/")
TRANSLATED = {f"%(count)s {unit}": f"%(count)s ({unit})" for unit in ("d", "h", "min", "s")}


@pytest.fixture
def page(stage: StageProcess, visit: Visit) -> Page:
    stage.play(executing.working_day)
    return visit("olga-operator", "/account/")


def test_the_texts_come_in_their_language(page: Page) -> None:
    response = JavaScriptCatalog().render_to_response({"catalog": TRANSLATED, "formats": {}, "plural": None})
    page.route(TEXTS, lambda route: route.fulfill(body=response.content, content_type="text/javascript"))
    page.goto(PATH)
    expect(page.locator("time[data-age]").first).to_have_text(re.compile(r"^\d+ \((d|h|min|s)\)$"))


def test_the_texts_are_english_when_they_cannot_be_loaded(page: Page, forgiven: list[str]) -> None:
    forgiven.append("net::ERR_FAILED")
    page.route(TEXTS, lambda route: route.abort())
    page.goto(PATH)
    follow(page)
    page.evaluate("document.querySelector('time[data-age]').textContent = ''")
    expect(page.locator("time[data-age]").first).to_have_text(re.compile(r"^\d+ (d|h|min|s)$"))
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Search")).to_be_visible()
