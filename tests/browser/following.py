"""What tests of live pages ask of each of them, and how somebody without a mouse gets about."""

import re

from playwright.sync_api import Locator, Page, expect


def follow(page: Page) -> None:
    """Wait until the page is live, and leave a mark that a reload would take away. A page must be live before it is left, too: Chromium
    complains in its console when a websocket that still connects is closed."""
    expect(page.locator("#freshness")).to_have_class(re.compile("freshness-live"))
    page.evaluate("document.body.dataset.loaded = 'once'")


def not_reloaded(page: Page) -> None:
    assert page.evaluate("document.body.dataset.loaded") == "once"


def tab_to(page: Page, target: Locator) -> None:
    for _ in range(80):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"the Tab key does not reach {target}")
