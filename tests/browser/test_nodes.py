"""The overview and operators' work on nodes in a real browser, and an execution's page that says which nodes keep it off."""

import re

from playwright.sync_api import expect

from tests.browser import executing, overviewing, scenes
from tests.browser.conftest import StageProcess, Visit
from tests.browser.looks import follow, look_on_screens, not_reloaded

ID = "abcd2345ef"
PATH = "/overview/"


def test_a_drain_is_asked_for_followed_and_cancelled(stage: StageProcess, visit: Visit) -> None:
    stage.play(overviewing.busy_node)
    page = visit("olga-operator", "/nodes/node-a/")
    follow(page)
    page.get_by_role("link", name="Drain", exact=True).click()
    expect(page.locator("table")).to_contain_text("Churn by month")
    expect(page.locator("table")).to_contain_text("The PodDisruptionBudget web allows no eviction now")
    look_on_screens(page, "node-drain")
    page.get_by_label("Reason").fill("New kernel")
    page.get_by_role("button", name="Drain").click()
    follow(page)
    work = page.locator("#node-work")
    expect(work).to_contain_text("Draining by olga-operator")
    stage.play(overviewing.carry_out)
    expect(work).to_contain_text("0 of 2 pods gone.")
    expect(work).to_contain_text("A PodDisruptionBudget does not allow it now")
    page.reload()  # what an operator has just asked for may move the page
    follow(page)
    look_on_screens(page, "node-draining")
    stage.play(overviewing.end_evicted)
    stage.play(overviewing.carry_out)
    expect(work).to_contain_text("1 of 2 pods gone.")
    not_reloaded(page)
    page.get_by_role("link", name="Cancel the drain").click()
    page.get_by_role("button", name="Uncordon").click()
    stage.play(overviewing.carry_out)
    expect(work).not_to_contain_text("Cordoned")
    expect(page.get_by_role("link", name="Cordon", exact=True)).to_be_visible()
    follow(page)


def test_a_taint_is_looked_at_and_then_added(stage: StageProcess, visit: Visit) -> None:
    stage.play(overviewing.busy_node)
    page = visit("olga-operator", "/nodes/node-a/")
    page.get_by_role("link", name="Taints and labels").click()
    page.locator("#taint-key").fill("example.com/team")
    page.locator("#taint-effect").select_option("NoSchedule")
    page.get_by_role("button", name="See what it would do").first.click()
    expect(page.get_by_role("main")).to_contain_text("Running executions keep running.")
    look_on_screens(page, "node-mark")
    page.get_by_label("Reason").fill("For team a")
    page.get_by_role("button", name="Add taint").click()
    follow(page)
    stage.play(overviewing.carry_out)
    expect(page.locator("#node-work")).to_contain_text("Done for olga-operator")
    expect(page.locator("#facts")).to_contain_text("example.com/team:NoSchedule")


def test_pages_of_takeover_and_verbose_logs_look_right(stage: StageProcess, visit: Visit) -> None:
    stage.play(overviewing.busy_node)
    page = visit("olga-operator", "/queue/take-over/")
    look_on_screens(page, "queue-takeover")
    page.goto("/verbose-logs/")
    page.locator("#subject").select_option("web")
    page.get_by_label("Reason").fill("Slow since noon")
    page.get_by_role("button", name="Log in detail").click()
    end = page.get_by_role("button", name="End verbose logs of component web")
    expect(end).to_be_visible()
    look_on_screens(page, "verbose-logs")
    end.click()
    expect(end).to_have_count(0)


def test_table_of_node_reasons_is_live_and_printed(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    stage.play(executing.put, id=ID, state="deploying")
    stage.play(executing.await_node, id=ID)
    page = visit("alice", f"/executions/{ID}/")
    rows = page.locator(".node-reasons").first.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="Cordoned")).to_contain_text("By decision")
    expect(rows.filter(has_text="Too small")).to_contain_text("Always")
    expect(page.locator(".node-reasons").first).not_to_contain_text("on-fast")  # a pod of somebody else
    look_on_screens(page, "execution-without-a-node")
    follow(page)
    stage.play(scenes.put_node, name="fast-2", pool="fast", cpu="64", unschedulable=False)
    expect(rows.filter(has_text="Cordoned")).to_have_count(0)
    expect(rows.first).to_contain_text("3")
    not_reloaded(page)
    page.emulate_media(media="print")
    expect(rows.first).to_be_visible()


def test_execution_is_printed_without_controls_and_with_its_times(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    page = visit("alice", "/executions/ffff7777gg/", scheme="dark")
    when = page.locator(".on-paper", has_text="UTC").first
    expect(when).to_be_hidden()
    page.emulate_media(media="print")
    expect(when).to_be_visible()
    for controls in (".sidebar", ".appbar", "main .actions", ".tabs", "#freshness"):
        expect(page.locator(controls).first).to_be_hidden()
    expect(page.locator(".timeline > li").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(26, 33, 44)", "dark ink only"


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
