"""The demonstration's page in a real browser: it fits a phone, can be used by everybody, and a slider says its value."""

from playwright.sync_api import expect

from tests.browser import administering
from tests.browser.conftest import Visit, on_stage
from tests.browser.looks import look_on_screens

demonstration = on_stage(
    administering.catalogues, administering.begin_demonstration, end=administering.end_demonstration
)


def test_demonstration_page_is_accessible_and_slider_says_its_value(visit: Visit) -> None:
    page = visit("ada-admin", "/demonstration/")
    look_on_screens(page, "demonstration")
    slider = page.get_by_label("Changes a second")
    slider.press("ArrowRight")
    expect(page.locator("output[for=slider-churn]")).to_have_text("21")
    page.get_by_role("button", name="Start The API server is stuck").click()
    expect(page.locator(".notice")).to_contain_text("Every live page says how far behind it is")
    page.goto("/components/")
    expect(page.locator("h1")).to_have_text("Components")
    look_on_screens(page, "components")
