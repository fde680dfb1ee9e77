"""Every page on a wide screen and on a phone: nothing is too wide, broken or too small, and axe finds nothing."""

import re

import pytest

from tests.browser import executing
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.looks import wrong_on_screens
from tests.browser.stage import StageProcess

PAGES = {
    "alice": [
        "/",
        "/executions/",
        "/executions/?show=ended",
        "/queue/",
        "/workspaces/",
        "/jobs/",
        "/notifications/",
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
        "/queue/",
        "/infrastructure/",
        "/startup/",
        "/service-levels/",
        "/platform-health/",
        "/platform-health/api-checks/",
        "/executions/aaaa2222bb/?tab=events",
        "/executions/ffff7777gg/",
    ],
    "ada-admin": [
        "/",
        "/tiers/",
        "/tiers/new/",
        "/environments/",
        "/environments/old-ray/",
        "/platform-health/api-checks/run/",
        "/projects/",
        "/people/",
        "/people/invite/",
        "/configuration/",
        "/logins/",
    ],
}


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
