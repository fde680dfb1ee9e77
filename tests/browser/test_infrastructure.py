"""The Infrastructure page in a real browser: it follows the cluster without a reload, and says so when it cannot."""

import re

from playwright.sync_api import Page, expect

from tests.browser import charting, scenes
from tests.browser.conftest import AWAY, Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess

PATH = "/infrastructure/"


def names(page: Page) -> list[str]:
    return page.locator("#nodes tr th").all_inner_texts()


def test_row_changes_appears_moves_and_goes_without_reload(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.put_node, name="node-a", pool="b-pool")
    stage.play(scenes.put_node, name="node-b", pool="b-pool", ready=False)
    page = visit("olga-operator", PATH)
    follow(page)
    row = page.locator("#node-node-b")
    expect(row).to_contain_text("Not ready")
    assert names(page) == ["node-a", "node-b"]

    row.locator("th a").focus()
    stage.play(scenes.put_node, name="node-b", pool="b-pool", ready=True)
    expect(row.locator(".status-ok")).to_have_text("Ready")
    expect(row.locator("th a")).to_be_focused()
    page.locator("h1").click()  # what has the focus holds the rows

    stage.play(scenes.put_node, name="node-c", pool="b-pool")
    expect(page.locator("#nodes tr")).to_have_count(3)
    stage.play(scenes.put_node, name="node-c", pool="a-pool")
    expect(page.locator("#nodes tr th").first).to_have_text("node-c")
    assert names(page) == ["node-c", "node-a", "node-b"]
    assert page.locator("#pools article h3").all_inner_texts() == ["a-pool", "b-pool"]

    stage.play(scenes.remove_node, name="node-a")
    expect(page.locator("#node-node-a")).to_have_count(0)
    assert names(page) == ["node-c", "node-b"]
    stage.play(scenes.empty)
    expect(page.locator("#nodes")).to_contain_text("No nodes.")
    not_reloaded(page)


def test_unreachable_cluster_is_said_in_words_and_recovers(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.put_node, name="node-a")
    page = visit("olga-operator", PATH)
    follow(page)
    stage.play(scenes.answer, available=False)
    freshness = page.locator("#freshness")
    expect(freshness).to_contain_text(re.compile(r"has not answered for \d+ s; what you see is from \d\d:\d\d:\d\d"))
    expect(page.locator("#nodes")).to_contain_text("node-a")
    stage.play(scenes.answer, available=True)
    expect(freshness).to_have_text("Live", timeout=30_000)
    not_reloaded(page)


def test_page_goes_on_after_the_server_was_restarted(stage: StageProcess, visit: Visit, forgiven: list[str]) -> None:
    forgiven += AWAY
    stage.play(scenes.put_node, name="before")
    page = visit("olga-operator", PATH)
    follow(page)
    stage.kill()
    expect(page.locator("#freshness")).to_contain_text("Connection lost")
    expect(page.locator("#nodes")).to_contain_text("before")
    stage.start()
    stage.play(scenes.put_node, name="after")
    expect(page.locator("#nodes tr")).to_have_count(1, timeout=60_000)
    expect(page.locator("#nodes")).to_contain_text("after", timeout=60_000)
    expect(page.locator("#freshness")).to_have_text("Live")
    not_reloaded(page)


def test_cluster_pages_have_no_visible_fault(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.working_day)
    used = {"default-7f4k2": [12, 20, 61, 55, 30, 40], "default-9x2mc": [2], "platform-1": [5, 90, 95, 20]}
    stage.play(charting.half_an_hour_of_use, nodes=used)
    page = visit("olga-operator", PATH)
    follow(page)
    cpu = re.compile("^CPU of the last 30 min: 12 % to 61 %, now 40 %$")
    expect(page.locator("#node-default-7f4k2").get_by_role("img", name=cpu)).to_have_count(1)
    look_on_screens(page, "infrastructure")
    page.goto("/nodes/default-7f4k2/")
    follow(page)
    expect(page.locator("#facts").get_by_role("img", name=cpu)).to_be_visible()
    look_on_screens(page, "node")
    page.goto("/pods/compute-grid/job-waiting/")
    follow(page)
    look_on_screens(page, "pod")


def test_the_keyboard_reaches_the_content_first(visit: Visit) -> None:
    page = visit("olga-operator", PATH)
    expect(page.locator("h1")).to_have_text("Infrastructure")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
