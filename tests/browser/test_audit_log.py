"""The audit log in a real browser: filtered as one types, read page by page, and exported."""

from playwright.sync_api import expect

from tests.browser import administering
from tests.browser.conftest import Visit, on_stage
from tests.browser.looks import look_on_screens

recorded = on_stage(administering.audit_entries, end=administering.no_audit_entries, autouse=False)


def test_audit_log_is_filtered_read_on_and_exported(visit: Visit, recorded: None) -> None:
    page = visit("ada-admin", "/audit-log/")
    expect(page.get_by_text("1 entry is not sealed yet")).to_be_visible()
    look_on_screens(page, "audit-log")
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_role("link", name="Newest")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(10)
    page.get_by_label("Action").select_option("Unlocked")
    expect(page.locator("tbody tr")).to_have_count(15)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as CSV").click()
    assert len(download.value.path().read_text().splitlines()) == 16
    page.get_by_label("Username").fill("nobody")
    expect(page.get_by_text("No entry matches.")).to_be_visible()
