"""The overview in a real browser: it follows the cluster, its cells can be reached by keyboard, and nothing serious is in the way."""

import re

from playwright.sync_api import expect

from tests.browser import overviewing, scenes
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess

PATH = "/overview/"


def test_a_cell_changes_comes_and_goes_without_a_reload(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.put_node, name="node-a", pool="default")
    page = visit("olga-operator", PATH)
    follow(page)
    cells = page.locator("#pool-map a.n")
    expect(cells).to_have_count(1)
    expect(cells).to_have_attribute("title", re.compile("^node-a: ready; .* up to 20 % requested$"))
    stage.play(scenes.put_pod, name="p", node="node-a", phase="Running", requests={"cpu": "3500m", "memory": "1Gi"})
    expect(cells).to_have_attribute("title", re.compile("over 80 % requested$"))
    expect(cells).to_have_class("n n4")
    stage.play(scenes.put_node, name="node-b", pool="another", unschedulable=True)
    expect(cells).to_have_count(2)
    expect(page.locator("#pool-map h3")).to_have_text(["another", "default"])
    expect(page.locator("#head-another")).to_contain_text("1 node, 1 cordoned.")
    stage.play(scenes.remove_node, name="node-b")
    expect(page.locator("#pool-map h3")).to_have_text(["default"])
    not_reloaded(page)


def test_keyboard_reads_a_cell_and_can_skip_them_all(stage: StageProcess, visit: Visit) -> None:
    stage.play(overviewing.many_nodes, pool="batch", count=150)
    page = visit("olga-operator", PATH)
    follow(page)
    expect(page.locator("#pool-map a.n")).to_have_count(150)
    page.get_by_role("link", name="Skip the nodes").focus()
    expect(page.get_by_role("link", name="Skip the nodes")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#after-nodes")).to_be_focused()
    page.locator("#head-batch a").focus()
    page.keyboard.press("Tab")
    expect(page.locator("#pool-map a.n").first).to_be_focused()
    content = page.evaluate("getComputedStyle(document.activeElement, '::after').content")
    assert "batch-0000: ready; 16 cores" in content


def test_a_busy_day_has_no_fault_to_the_eye(stage: StageProcess, visit: Visit) -> None:
    stage.play(overviewing.busy_day)
    page = visit("ada-admin", PATH)
    expect(page.locator("#pool-map a.n")).to_have_count(166)
    follow(page)
    look_on_screens(page, "overview-busy")
