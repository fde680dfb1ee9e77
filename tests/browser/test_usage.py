"""The pages of usage in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import using
from tests.browser.accessibility import violations
from tests.browser.conftest import Visit
from tests.browser.looks import WIDE_AND_PHONE, faults
from tests.browser.stage import StageProcess


@pytest.fixture
def used(stage: StageProcess) -> Iterator[StageProcess]:
    stage.play(using.two_months)
    yield stage
    stage.play(using.nothing)


@WIDE_AND_PHONE
def test_pages_of_usage_look_as_they_should(visit: Visit, used: StageProcess, width: int, scheme: str) -> None:
    for person, path in (("alice", "/usage/"), ("olga-operator", "/usage/everybody/?sort=gpus")):
        page = visit(person, path, width=width, scheme=scheme)
        expect(page.get_by_role("img", name="Used on")).to_be_visible()
        assert violations(page) == []
        assert faults(page) == []


@pytest.mark.parametrize("javascript", [True, False])
def test_way_leads_from_home_to_month_and_to_person(visit: Visit, used: StageProcess, javascript: bool) -> None:
    page = visit("olga-operator", "/", width=390, javascript=javascript)
    page.get_by_role("button", name="You").click()
    page.get_by_role("link", name="Your usage").click()
    page.get_by_role("table").last.get_by_role("link").nth(1).click()
    expect(page.get_by_text("Nothing was used in").first).to_be_visible()
    page.get_by_role("link", name="Everybody’s usage").click()
    page.get_by_role("link", name="GPU hours").first.click()
    expect(page.locator("th[aria-sort]").first).to_have_text("GPU hours")
    page.get_by_role("link", name="alice").click()
    expect(page.locator("h1")).to_have_text("Usage of alice")
