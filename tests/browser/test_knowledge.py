"""The knowledge base in a real browser: an entry is made, tried and found, on a phone and in the dark too."""

import re

from playwright.sync_api import expect

from tests.browser import administering, knowing
from tests.browser.conftest import StageProcess, Visit, on_stage
from tests.browser.looks import look_on_screens

LOG = "INFO loading the solver\nConnectionRefusedError: [Errno 111] Connection refused\nfatal: LIC-17 checkout failed\nbye\n"
known = on_stage(administering.catalogues, knowing.nothing_known, end=knowing.nothing_known)


def test_entry_of_admin_explains_the_next_matching_failed_job(stage: StageProcess, visit: Visit) -> None:
    page = visit("ada-admin", "/knowledge/")
    page.get_by_role("link", name="New entry").click()
    for label, text in (
        *(("Id", "licence"), ("Pattern", r"LIC-(\d+)"), ("Meaning", "All licences of product {} are in use.")),
        *(("Cure", "Wait until one is free, and launch it again."), ("Link", "/help/")),
    ):
        page.get_by_label(label, exact=True).fill(text)
    look_on_screens(page, "knowledge-new")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name="All licences of product … are in use.", exact=True)).to_be_visible()

    page.get_by_label("The end of a log").fill(LOG)
    page.get_by_role("button", name="Search it").click()
    expect(page.locator("#try")).to_contain_text("2 entries match, the last line first:")
    expect(page.locator(".findings li").first).to_contain_text("All licences of product 17 are in use.")
    look_on_screens(page, "knowledge")

    job = stage.play(knowing.fail, log=LOG)
    page.goto(f"/executions/{job}/")
    expect(page.locator("#head")).to_contain_text(
        "exit code 1. All licences of product 17 are in use. Wait until one is free"
    )
    expect(page.locator("#head .finding-line").first).to_have_text("fatal: LIC-17 checkout failed")
    look_on_screens(page, "knowledge-execution")
    page.get_by_role("link", name="see it there").click()
    expect(page.locator("#finding")).to_contain_text("LIC-17 checkout failed")
    expect(page.locator("#finding")).to_be_in_viewport()
    look_on_screens(page, "knowledge-log")

    page.goto("/knowledge/licence/found/")
    expect(page.get_by_role("link", name=re.compile("Nightly training"))).to_be_visible()
    look_on_screens(page, "knowledge-found")
