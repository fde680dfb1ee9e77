"""Launching and watching executions in a real browser: by keyboard, live, with the filter in the address."""

import re

from playwright.sync_api import expect

from tests.browser import executing, scenes
from tests.browser.conftest import StageProcess, Visit
from tests.browser.looks import follow, look_at, not_reloaded

PATH = "/executions/"


def test_launch_by_keyboard_is_followed_to_running_without_reload(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    watching = visit("olga-operator", PATH)
    follow(watching)
    page = visit("alice", "/launch/")
    page.locator("input[name=tier]:checked").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("input[name=tier]:checked")).to_have_value("gpu")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("JupyterLab")
    follow(page)
    id = stage.play(executing.latest)
    row = watching.locator(f"#row-{id}")
    expect(row).to_contain_text("Queued")
    expect(page.get_by_role("button", name="Open")).to_be_disabled()

    stage.play(executing.enter, id=id, state="deploying")
    stage.play(executing.place_pod, id=id)
    expect(row).to_contain_text("Deploying")
    stage.play(executing.tell, id=id, name="up", reason="TriggeredScaleUp", message="0->1")
    expect(page.locator("#timeline")).to_contain_text("New node requested")
    stage.play(scenes.put_node, name="gpu-1", pool="default-gpu", age_seconds=0)
    expect(page.locator("#timeline")).to_contain_text("The new node is ready")
    stage.play(executing.place_pod, id=id, node="gpu-1")
    stage.play(executing.enter, id=id, state="preparing")
    expect(row).to_contain_text("gpu-1")
    stage.play(executing.place_pod, id=id, node="gpu-1", ready=True)
    stage.play(executing.enter, id=id, state="running")
    expect(row.locator(".status-ok")).to_have_text("Running")
    expect(page.locator("#head")).to_contain_text("Running")
    expect(page.get_by_role("button", name="Open")).to_be_enabled()
    not_reloaded(page)
    not_reloaded(watching)


def test_two_quick_clicks_launch_once(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    page = visit("alice", "/launch/")
    page.get_by_role("button", name="Launch").dblclick()
    expect(page.locator("h1")).to_contain_text("JupyterLab")
    assert stage.play(executing.count) == 1


def test_filter_survives_a_reload_and_the_page_stays_live(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    stage.play(executing.put, id="run2222222", state="running", title="Runs")
    stage.play(executing.put, id="wait222222", state="queued", title="Waits")
    page = visit("alice", PATH)
    follow(page)
    page.select_option("#filter-status", "running")
    expect(page).to_have_url(re.compile(r"status=running"))
    expect(page.locator("#executions tr")).to_have_count(1)
    not_reloaded(page)
    stage.play(executing.put, id="also222222", state="running", title="Runs too")
    expect(page.locator("#row-also222222")).to_be_visible()
    stage.play(executing.put, id="more222222", state="queued", title="Waits too")
    stage.play(executing.enter, id="wait222222", state="deploying")
    expect(page.locator("#executions tr")).to_have_count(2)
    page.reload()
    expect(page.locator("#filter-status")).to_have_value("running")
    expect(page.locator("#executions tr")).to_have_count(2)
    page.fill("#filter-text", "too")
    expect(page.locator("#executions tr")).to_have_count(1)
    expect(page.locator("#filter-text")).to_be_focused()
    follow(page)
    page.go_back()
    expect(page.locator("#executions tr")).to_have_count(2)


def test_view_is_saved_opened_made_default_and_deleted(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    page = visit("alice", f"{PATH}?kind=job")
    menu = page.locator(".saved-views")
    menu.locator("summary").click()
    page.get_by_label("Save these filters, order and columns as").fill("My <b>jobs</b>")
    menu.get_by_role("button", name="Save").click()
    expect(page.locator(".notice")).to_have_text("Saved as “My <b>jobs</b>”.")
    page.goto(PATH)
    menu.locator("summary").click()
    menu.get_by_role("button", name="Make default view My").click()
    page.get_by_role("link", name="Ended", exact=True).click()
    page.get_by_role("link", name="Running and waiting").click()
    expect(page).to_have_url(re.compile(r"/executions/\?kind=job$"))
    menu.locator("summary").click()
    menu.get_by_role("button", name="Delete My").click()
    expect(page.locator(".notice")).to_contain_text("Deleted the view")
    expect(menu.locator("summary")).to_have_text("Saved views")
    follow(page)


def test_slow_list_says_its_progress_and_completes_itself(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    stage.play(executing.slow_lists, seconds=0.3)
    try:
        page = visit("olga-operator", "/executions/?sort=-name")
        look_at(page, "executions-unfinished")
        follow(page)
        expect(page.locator("#executions-paging")).to_have_text(re.compile(r"^\s*\d+ executions, \d+ rows\s*$"))
        not_reloaded(page)
    finally:
        stage.play(executing.slow_lists, seconds=0)
