"""A program on a sibling host name sets cookies for the parent domain, in a real browser and over https: the dashboard heeds none."""

import contextlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.server import password_of
from tests.browser.stage import StageProcess
from tests.support.certificates import certificate

SIBLING = "https://evil.grid.localhost/"


@pytest.fixture(scope="module")
def secure_stage(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageProcess]:
    """The dashboard at `https://dash.grid.localhost`, which browsers find on this machine."""
    folder = tmp_path_factory.mktemp("secure")
    certificate(folder, "dash.grid.localhost")
    stage = StageProcess(folder, host="dash.grid.localhost", tls=folder / "certificate.pem")
    try:
        stage.start()
        yield stage
    finally:
        stage.kill()


def _logged_in(chromium: Browser, stage: StageProcess, person: str) -> BrowserContext:
    context = chromium.new_context(base_url=stage.url, ignore_https_errors=True)
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("Username").fill(person)
    page.get_by_label("Password").fill(password_of(person))
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda url: "/login/" not in url)
    page.close()
    return context


def test_sibling_host_cannot_swap_a_session_for_another(chromium: Browser, secure_stage: StageProcess) -> None:
    with (
        contextlib.closing(_logged_in(chromium, secure_stage, "bob")) as attackers,
        contextlib.closing(_logged_in(chromium, secure_stage, "alice")) as victims,
    ):
        theirs = {cookie["name"]: cookie["value"] for cookie in attackers.cookies()}
        session = theirs["__Host-grid_session"]
        tab = victims.new_page()
        tab.route(f"{SIBLING}**", lambda route: route.fulfill(content_type="text/html", body="<title>Evil</title>"))
        tab.goto(SIBLING)
        for name in ("grid_session", "__Host-grid_session", "__host-grid_session", "grid_csrf", "__Host-grid_csrf"):
            for path in ("/", "/executions", "/account"):
                tab.evaluate(
                    "cookie => { document.cookie = cookie; }",
                    f"{name}={session}; domain=grid.localhost; path={path}; secure",
                )
        planted = {cookie["name"] for cookie in victims.cookies() if cookie["domain"] == ".grid.localhost"}
        assert "grid_session" in planted, "the attack itself works"
        assert "__Host-grid_session" not in planted
        for path in ("/", "/executions/", "/account/"):
            tab.goto(secure_stage.url + path)
            expect(tab.locator("body")).to_contain_text("alice")
            expect(tab.locator("body")).not_to_contain_text("bob")
