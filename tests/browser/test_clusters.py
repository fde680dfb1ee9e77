"""A cluster's page in a real browser: live, by keyboard, without a script, at every width and in both themes."""

import pytest
from playwright.sync_api import expect

from tests.browser import clustering
from tests.browser.conftest import StageProcess, Visit
from tests.browser.looks import follow, look_on_screens, not_reloaded

PATH = f"/executions/{clustering.ID}/"
PAGES = {
    "growing": (clustering.growing, PATH),
    "ended": (clustering.ended, PATH),
    "resize": (clustering.growing, f"{PATH}resize/"),
}


def test_a_cluster_grows_before_ones_eyes(stage: StageProcess, visit: Visit) -> None:
    stage.play(clustering.growing)
    page = visit("alice", PATH)
    follow(page)
    expect(page.locator("#head")).to_contain_text("6 of 16 workers; 8 wait for node 2 of 3, 2 for image pull.")
    expect(page.locator("#workers .cell-node")).not_to_have_count(0)
    stage.play(clustering.grown)
    expect(page.locator("#head")).to_contain_text("16 of 16 workers.")
    expect(page.locator("#workers .cell-ready")).to_have_count(16)
    not_reloaded(page)


def test_the_chart_is_drawn_and_says_why_it_grew(stage: StageProcess, visit: Visit) -> None:
    stage.play(clustering.growing)
    page = visit("bob", PATH)
    expect(page.locator(".uplot canvas")).to_be_visible()
    expect(page.locator(".chart-event")).to_contain_text("Grows from 6 to 16 workers: CPU use is above its target.")
    drawn = page.locator(".u-legend tr:has(.chart-line)").evaluate_all(
        "rows => rows.map((row) => [row.querySelector('.u-label').innerText, row.querySelector('line').getAttribute('stroke-dasharray')])"
    )
    assert [label for label, _ in drawn] == ["ready", "wanted", "CPU", "memory", "CPU target", "memory target"]
    assert len({dashes for _, dashes in drawn}) == len(drawn), "they differ without their colours"
    stage.play(clustering.sample_now, ready=7, wanted=17)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # whoever comes back sees the newest at once
    expect(page.locator(".chart-event")).to_contain_text("Grows from 16 to 17 workers")


def test_worker_is_reached_by_keyboard_and_opens_its_pod(stage: StageProcess, visit: Visit) -> None:
    stage.play(clustering.growing)
    page = visit("alice", PATH)
    follow(page)
    cell = page.get_by_role("link", name="worker b7x2p: ready, on default-7f4k2")
    cell.focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="worker c4kqm: ready")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("c4kqm")


@pytest.mark.parametrize("name", PAGES)
def test_cluster_states_have_no_visible_fault(stage: StageProcess, visit: Visit, name: str) -> None:
    scene, path = PAGES[name]
    stage.play(scene)
    page = visit("alice", path)
    if page.locator("[data-chart]").count():
        expect(page.locator(".uplot canvas")).to_be_visible()
    look_on_screens(page, f"cluster-{name}")


def test_workers_are_changed_in_the_form_of_the_page(stage: StageProcess, visit: Visit) -> None:
    stage.play(clustering.growing)
    page = visit("alice", PATH)
    follow(page)
    page.get_by_role("link", name="Change workers").click()
    page.fill("#id_minimum", "2")
    page.fill("#id_maximum", "18")
    page.get_by_role("button", name="Change").click()
    expect(page.locator("h1")).to_have_text("Feature building")
    assert stage.play(clustering.size) == [2, 18]
    follow(page)
