"""Every page on a wide screen and a phone, on a working day and in the states in which designs fail: axe and the eye find nothing."""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import clustering, executing, extremes, scenes
from tests.browser.conftest import StageProcess, Visit
from tests.browser.looks import PHONE, follow, wrong_on_screens

# Those that no test of their own looks at on both screens.
PAGES = {
    "alice": [
        "/",
        "/executions/",
        "/executions/?show=ended",
        "/queue/",
        "/workspaces/",
        "/launch/",
        "/launch/?kind=cluster",
        "/account/password/",
        "/executions/aaaa2222bb/",
        "/executions/aaaa2222bb/stop/",
        "/no-such-page/",
    ],
    "olga-operator": [
        "/",
        "/executions/",
        "/queue/",
        "/platform-health/",
        "/platform-health/api-checks/",
        "/executions/aaaa2222bb/?tab=events",
        "/executions/ffff7777gg/",
    ],
    "ada-admin": [
        "/",
        "/tiers/new/",
        "/environments/",
        "/environments/old-ray/",
        "/platform-health/api-checks/run/",
        "/projects/",
        "/people/",
    ],
}
PAGES_IN_STATES = {
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
# Of each person the pages on which the state shows.
STATES: dict[str, tuple[Scene, dict[str, list[str]]]] = {
    "empty": (extremes.nothing, PAGES_IN_STATES),
    "much": (
        extremes.much,
        {
            **PAGES_IN_STATES,
            "ada-admin": [
                *PAGES_IN_STATES["ada-admin"],
                *("/executions/much000000/", "/executions/much000000/?tab=log", "/executions/much000004/", "/projects/00/"),
                *("/tiers/00/", "/environments/00/", f"/nodes/{'node-' * 12}0/", "/people/?text=guest-07"),
            ],
        },
    ),
    "trouble": (
        extremes.trouble,
        {
            "alice": ["/", "/workspaces/"],
            "ada-admin": [
                *("/overview/", "/infrastructure/", "/executions/", "/platform-health/", "/executions/bbbb3333cc/"),
                *("/executions/dddd5555ee/", f"/executions/{clustering.ID}/", "/nodes/batch-0011/"),
            ],
        },
    ),
    "outage": (
        executing.working_day,
        {
            "alice": ["/", "/launch/"],
            "ada-admin": [
                *("/overview/", "/infrastructure/", "/executions/", "/queue/", "/platform-health/", "/tiers/"),
                *("/executions/aaaa2222bb/", "/executions/aaaa2222bb/?tab=log"),
            ],
        },
    ),
}  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("person", PAGES)
def test_pages_look_as_they_should(stage: StageProcess, visit: Visit, forgiven: list[str], person: str) -> None:
    stage.play(executing.working_day)
    forgiven.append("404")  # the page that is not there
    page = visit(person, "/")
    wrong = []
    for path in PAGES[person]:
        page.goto(path)
        if page.locator("#live").count():
            follow(page)
        wrong += wrong_on_screens(page, f"looks-{person}-{re.sub('[^a-z0-9]+', '-', path)}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def cleared(stage: StageProcess) -> Iterator[None]:
    yield
    stage.play(extremes.nothing)


def settle(page: Page) -> None:
    """Wait until the page has been updated once."""
    if page.locator("#live").count():
        expect(page.locator("#freshness")).not_to_contain_text("As of")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("state", STATES)
def test_pages_have_no_visible_fault_in_any_state(stage: StageProcess, visit: Visit, cleared: None, state: str) -> None:
    """Loaded on the phone, where the pages of a working day are loaded on a wide screen: there moves what comes late."""
    scene, pages = STATES[state]
    stage.play(scene)
    stage.play(scenes.answer, available=state != "outage")
    wrong = []
    for person, paths in pages.items():
        page = visit(person, "/help/", width=PHONE[0], scheme=PHONE[1])
        for path in paths:
            page.goto(path)
            settle(page)
            wrong += wrong_on_screens(page, f"{state}-{person}-{re.sub('[^a-z0-9]+', '-', path)[:60]}")
    assert not wrong, "\n".join(wrong)
