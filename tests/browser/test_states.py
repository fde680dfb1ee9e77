"""Every page in the states in which designs fail: nothing there yet, far too much, all in trouble, and a cluster that does not answer."""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import clustering, executing, extremes, scenes
from tests.browser.conftest import Visit
from tests.browser.looks import WIDE_AND_PHONE, wrong_with
from tests.browser.stage import StageProcess

PAGES = {
    "alice": [
        *("/", "/executions/", "/executions/?show=ended", "/workspaces/", "/launch/", "/launch/?kind=cluster", "/projects/"),
        *("/jobs/", "/notifications/", "/usage/", "/secrets/", "/help/", "/account/"),
    ],
    "ada-admin": [
        *("/overview/", "/infrastructure/", "/executions/", "/tiers/", "/environments/", "/projects/", "/people/"),
        *("/logins/", "/configuration/", "/palette/?q=e", "/queue/", "/startup/", "/service-levels/", "/knowledge/", "/usage/everybody/"),
        "/platform-health/",
    ],
}  # fmt: skip
Scene = Callable[..., Awaitable[Any]]
STATES: dict[str, tuple[Scene, list[str]]] = {
    "empty": (extremes.nothing, []),
    "much": (
        extremes.much,
        [
            *("/executions/much000000/", "/executions/much000000/?tab=log", "/executions/much000004/", "/projects/00/"),
            *("/tiers/00/", "/environments/00/", f"/nodes/{'node-' * 12}0/", "/people/?text=guest-07"),
        ],
    ),
    "trouble": (
        extremes.trouble,
        [
            *("/executions/bbbb3333cc/", "/executions/dddd5555ee/", "/executions/ffff7777gg/"),
            *(f"/executions/{clustering.ID}/", "/nodes/batch-0011/"),
        ],
    ),
    "outage": (executing.working_day, ["/executions/aaaa2222bb/", "/executions/aaaa2222bb/?tab=log"]),
}


@pytest.fixture(autouse=True)
def cleared(stage: StageProcess) -> Iterator[None]:
    yield
    stage.play(extremes.nothing)


def settle(page: Page) -> None:
    """Wait until the page has been updated once."""
    if page.locator("#live").count():
        expect(page.locator("#freshness")).not_to_contain_text("As of")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("state", STATES)
@WIDE_AND_PHONE
def test_pages_have_no_visible_fault_in_any_state(
    stage: StageProcess, visit: Visit, state: str, width: int, scheme: str
) -> None:
    scene, more = STATES[state]
    stage.play(scene)
    stage.play(scenes.answer, available=state != "outage")
    wrong = []
    for person, paths in PAGES.items():
        page = visit(person, paths[0], width=width, scheme=scheme)
        settle(page)
        for path in [*paths, *(more if person == "ada-admin" else [])]:
            page.goto(path)
            settle(page)
            wrong += wrong_with(page, f"{state}-{person}-{re.sub('[^a-z0-9]+', '-', path)[:60]}")
    assert not wrong, "\n".join(wrong)
