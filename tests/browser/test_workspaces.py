"""Stopping and resuming a workspace in a real browser: live at home, and without a script."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import executing
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import WIDE_AND_PHONE, look_at
from tests.browser.stage import StageProcess

TITLE = "Explore the churn of 2026"


def launch_and_stop(page: Page) -> str:
    """While it waits in the queue, so it has ended at once. Returns the workspace's id."""
    page.goto("/launch/")
    page.fill("#id_title", TITLE)
    page.get_by_role("button", name="Launch").click()
    expect(page.locator("h1")).to_have_text(TITLE)
    id = page.url.rstrip("/").rsplit("/", 1)[1]
    page.get_by_role("link", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop it").click()
    expect(page.locator("#head")).to_contain_text("Stopped")
    return id


def test_it_is_stopped_resumed_renamed_and_deleted_without_a_script(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/", javascript=False)
    launch_and_stop(page)
    page.get_by_role("link", name="Resume").click()
    page.get_by_role("radio", name="Large").check()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#head")).to_contain_text("Queued")
    expect(page.locator("#facts")).to_contain_text("Large")
    page.goto("/")
    page.get_by_role("link", name=f"Stop {TITLE}").click()
    page.get_by_role("button", name="Stop it").click()
    page.locator("#facts").get_by_role("link", name=TITLE).click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Title").fill("Deep dive")
    page.get_by_role("button", name="Rename").click()
    expect(page.locator("h1")).to_have_text("Deep dive")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.locator("main")).to_contain_text("You have no workspace.")


def test_home_follows_it_live(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    home, page = visit("alice", "/"), visit("alice", "/")
    follow(home)
    id = launch_and_stop(page)
    card = home.locator("#my-executions .card")
    expect(card.get_by_role("link", name="Resume")).to_have_count(1)
    page.goto(f"/workspaces/{id}/resume/")
    page.get_by_role("button", name="Resume").click()
    expect(card.get_by_role("link", name="Stop")).to_have_count(1)
    stage.play(executing.enter, id=page.url.rstrip("/").rsplit("/", 1)[1], state="running")
    expect(card.get_by_role("button", name="Open")).to_be_visible()
    expect(card).to_have_count(1)
    not_reloaded(home)


@pytest.mark.slow
@WIDE_AND_PHONE
def test_no_page_of_a_workspace_has_a_fault_to_the_eye(
    stage: StageProcess, visit: Visit, width: int, scheme: str
) -> None:
    stage.play(executing.team)
    page = visit("alice", "/", width=width, scheme=scheme)
    own = f"/workspaces/{launch_and_stop(page)}/"
    for name in ("", "resume", "delete"):
        page.goto(f"{own}{name}/" if name else own)
        look_at(page, f"workspace-{name or 'own'}")
