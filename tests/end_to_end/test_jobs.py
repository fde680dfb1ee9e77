"""A job in a real browser on the embedded cluster: it reads its secrets, fails once and succeeds, measures something, is swept, and
two of its runs are compared."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import PULL, SOON, fill_launch_form, log_in, press_launch

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(900)]
# Exit code 9 at both attempts without its secrets.
SECRETS = 'test "$E2E_KEY" = s3cret && test "$(cat "$GRID_SECRETS_PATH/e2e.txt")" = s3cret || exit 9; '
ONCE = 'if [ -e tried ]; then echo "rate is $rate"; seq -f \'{"step": %.0f, "loss": 0.25}\' 3; else touch tried; echo not yet; exit 3; fi'


def test_failing_job_succeeds_at_second_attempt_and_is_swept(grid: Grid, browser: Browser) -> None:
    grid.start()
    page = log_in(browser, grid, "scientist").new_page()
    store(page, "E2E_KEY")
    store(page, "e2e.txt", is_file=True)
    fill_launch_form(page, tier="Tiny", title="Twice", environment="Dask script", kind="job")
    page.locator("#id_command").fill(SECRETS + ONCE)
    page.get_by_text("Options", exact=True).click()
    page.locator("#id_retries").fill("1")
    page.locator("#id_retry_wait").fill("2s")
    press_launch(page)
    expect(page.locator(".execution-state")).to_contain_text("Failed", timeout=PULL)
    expect(page.locator("#facts div", has_text="Exit code").locator("dd")).to_have_text("3")
    page.locator("#facts").get_by_role("link", name="Twice").click()
    until(page, "Succeeded")
    expect(page.locator("tbody tr").first).to_contain_text("2 of 2")
    expect(page.locator("tbody tr .run-metric")).to_have_text("0.25")

    page.get_by_role("link", name="Sweep", exact=True).click()
    page.locator("#id_table").fill("rate,depth\n0.1,3\n$(touch evil),5\n1,7")
    page.get_by_role("button", name="Start the sweep").click()
    until(page, "3 of 3 done")
    page.locator("#runs tr").first.locator("a").first.click()
    page.wait_for_url("**/executions/**")
    expect(page.locator("#metrics-rows")).to_contain_text("loss")
    page.goto(f"{page.url.partition('?')[0]}?tab=log")
    expect(page.locator("body")).to_contain_text("rate is 1", timeout=SOON)
    page.goto(page.locator("#facts").get_by_role("link", name="Twice").get_attribute("href") or "")
    page.goto(f"{page.url}compare/?a=2&b=3")
    expect(page.locator("section").first).to_contain_text("$(touch evil)")
    expect(page.locator(".chart-grid .u-legend")).to_contain_text("Run 3")


def store(page: Page, name: str, *, is_file: bool = False) -> None:
    """Store a secret of one's own."""
    page.goto("/secrets/")
    page.locator("#id_name").fill(name)
    page.locator("#id_value").fill("s3cret")
    page.locator("#id_is_file").set_checked(is_file)
    page.get_by_role("button", name="Store", exact=True).click()
    expect(page.locator("main")).to_contain_text(name)


def until(page: Page, words: str) -> None:
    """Reload the page, which is not live, until it says the words."""
    for _ in range(60):
        if words in page.locator("main").inner_text():
            return
        page.wait_for_timeout(2000)
        page.reload()
    raise AssertionError(f"{words} is not on {page.url}: {page.locator('main').inner_text()}")
