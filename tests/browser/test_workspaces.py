"""A workspace in a real browser: stopped and resumed live at home and without a script, shared, and kept when it is about to stop."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import executing
from tests.browser.conftest import StageProcess, Visit
from tests.browser.looks import follow, look_on_screens, not_reloaded

TITLE = "Explore the churn of 2026"
ID = "idle222222"


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


def test_workspace_is_stopped_resumed_renamed_and_deleted_without_script(stage: StageProcess, visit: Visit) -> None:
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
    launch_and_stop(page)
    card = home.locator("#my-executions .card")
    expect(card.get_by_role("button", name="Resume")).to_have_count(1)
    expect(card.get_by_role("link", name="Other choices")).to_have_count(1)
    page.goto("/")
    page.get_by_role("button", name=f"Resume {TITLE}").click()
    expect(page.locator("#head")).to_contain_text("Queued")
    expect(card.get_by_role("link", name="Stop")).to_have_count(1)
    stage.play(executing.enter, id=page.url.rstrip("/").rsplit("/", 1)[1], state="running")
    expect(card.get_by_role("button", name="Open")).to_be_visible()
    expect(card).to_have_count(1)
    not_reloaded(home)


def test_workspace_pages_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/")
    own = f"/workspaces/{launch_and_stop(page)}/"
    for name in ("", "resume/", "delete/"):
        page.goto(f"{own}{name}")
        look_on_screens(page, f"workspace-{name.strip('/') or 'own'}")


def run(stage: StageProcess, page: Page) -> str:
    """Launch a workspace that runs; returns the path of its page for sharing."""
    page.goto("/launch/")
    page.get_by_role("button", name="Launch").click()
    expect(page.locator("#head")).to_contain_text("Queued")
    id = page.url.rstrip("/").rsplit("/", 1)[1]
    stage.play(executing.enter, id=id, state="running")
    return f"/workspaces/{id}/share/"


def share(page: Page, port: str) -> None:
    page.get_by_label("Port").fill(port)
    page.get_by_label("Name").fill("Who leaves")
    page.get_by_label("bob").check()
    page.get_by_role("button", name="Share").click()


def test_app_of_workspace_is_shared_and_unshared(stage: StageProcess, visit: Visit, forgiven: list[str]) -> None:
    forgiven.append("422")
    stage.play(executing.team)
    page = visit("alice", "/")
    page.goto(run(stage, page).removesuffix("share/"))
    page.get_by_role("link", name="Share an app running in it").click()
    share(page, "80")
    expect(page.locator("#id_port_error")).to_be_visible()
    look_on_screens(page, "workspace-share-refused")
    share(page, "8501")
    expect(page.get_by_text("Who leaves is shared with bob.")).to_be_visible()
    look_on_screens(page, "workspace-share")
    home = visit("bob", "/")
    expect(home.get_by_role("button", name="Open Who leaves")).to_be_visible()
    look_on_screens(home, "home-shared")
    page.get_by_role("button", name="Stop sharing Who leaves").click()
    expect(page.get_by_text("Who leaves is no longer shared.")).to_be_visible()
    home.reload()
    expect(home.get_by_role("heading", name="Shared with you")).to_have_count(0)


@pytest.fixture
def about_to_stop(stage: StageProcess) -> Iterator[None]:
    stage.play(executing.about_to_stop, id=ID)
    yield
    stage.play(executing.no_limits)


def test_execution_is_kept_by_keyboard_and_watchers_see_it(visit: Visit, about_to_stop: None) -> None:
    watching = visit("bob", f"/executions/{ID}/")
    follow(watching)
    expect(watching.locator("#stop-notice")).to_contain_text("CPU under 1 %. It stops in 2")
    expect(watching.get_by_role("button", name="Keep it 2 h longer")).to_have_count(0)
    page = visit("alice", f"/executions/{ID}/")
    page.get_by_role("button", name="Keep it 2 h longer").focus()
    look_on_screens(page, "keeping")
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_contain_text("Forgotten is kept until")
    expect(page.locator("#stop-notice")).to_contain_text("It stops when idle for 1 h 15 min.")
    expect(page.locator("#timeline")).to_contain_text("alice keeps it until")
    expect(watching.locator("#stop-notice")).to_contain_text("It stops when idle for 1 h 15 min.")
