"""Every page at three widths: nothing is wider than the window, no word is broken inside, no text is too small, and axe finds nothing."""

import pytest
from playwright.sync_api import expect

from tests.browser import executing
from tests.browser.accessibility import violations
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.looks import faults
from tests.browser.stage import StageProcess

SCREENS = [(1440, "light"), (1024, "dark"), (390, "light")]
PAGES = {
    "alice": [
        "/",
        "/executions/",
        "/executions/?show=ended",
        "/workspaces/",
        "/launch/",
        "/launch/?kind=cluster",
        "/account/",
        "/account/password/",
        "/projects/",
        "/executions/aaaa2222bb/",
        "/executions/aaaa2222bb/stop/",
        "/no-such-page/",
    ],
    "olga-operator": [
        "/",
        "/executions/",
        "/infrastructure/",
        "/executions/aaaa2222bb/?tab=events",
        "/executions/ffff7777gg/",
    ],
    "ada-admin": [
        "/",
        "/tiers/",
        "/tiers/new/",
        "/environments/",
        "/projects/",
        "/people/",
        "/people/invite/",
        "/configuration/",
        "/logins/",
    ],
}


@pytest.mark.parametrize("person", PAGES)
@pytest.mark.parametrize(("width", "scheme"), SCREENS, ids=["wide", "middle", "phone"])
def test_pages_look_as_they_should(
    stage: StageProcess, visit: Visit, forgiven: list[str], person: str, width: int, scheme: str
) -> None:
    stage.play(executing.working_day)
    forgiven.append("404")  # the page that is not there
    page = visit(person, "/", width=width, scheme=scheme)
    wrong = []
    for path in PAGES[person]:
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        if page.locator("#live").count():
            follow(page)
        found = [*faults(page), *(f"{rule}: {elements}" for rule, elements in violations(page))]
        wrong += [f"{path}: {each}" for each in found]
    assert not wrong, "\n".join(wrong)
