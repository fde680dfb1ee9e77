"""Browsers of several people on one Compute Grid."""

from playwright.sync_api import Browser, BrowserContext, Page

from tests.end_to_end.grid import Grid


def log_in(browser: Browser, grid: Grid, username: str) -> BrowserContext:
    """A browser window of its own, logged in."""
    context = browser.new_context(base_url=grid.url)
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(grid.password(username))
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{grid.url}/**")
    page.close()
    return context


def forbid_reload(page: Page) -> None:
    """Marks the document, so that `was_not_reloaded` can tell whether it is still the same."""
    page.evaluate("document.documentElement.dataset.witness = 'here'")


def was_not_reloaded(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.dataset.witness === 'here'"))
