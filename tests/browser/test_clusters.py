"""A cluster's page in a real browser: live, by keyboard, without a script, at every width and in both themes."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import clustering
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess

PATH = f"/executions/{clustering.ID}/"
PAGES = {
    "growing": (clustering.growing, PATH),
    "wide": (clustering.wide, PATH),
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
    stage.play(clustering.sample_now, ready=7, wanted=17)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # whoever comes back sees the newest at once
    expect(page.locator(".chart-event")).to_contain_text("Grows from 16 to 17 workers")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_of_the_chart_differ_in_colour_and_dashes(stage: StageProcess, visit: Visit, scheme: str) -> None:
    stage.play(clustering.growing)
    page = visit("alice", PATH, scheme=scheme)
    expect(page.locator(".chart canvas")).to_be_visible()
    strokes = page.evaluate(
        """() => {
            const canvas = document.querySelector(".chart canvas");
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            const hues = new Set();
            for (let at = 0; at < pixels.length; at += 4) {
                const [red, green, blue, alpha] = pixels.slice(at, at + 4);
                if (alpha > 200 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60)
                    hues.add([red, green, blue].indexOf(Math.max(red, green, blue)));
            }
            return hues.size;
        }"""
    )
    assert strokes == 3, "one that is mostly red, green and blue each"
    expect(page.locator(".u-legend .chart-line")).to_have_count(6)
    drawn = page.locator(".u-legend tr:has(.chart-line)").evaluate_all(
        "rows => rows.map((row) => ['.u-label', 'line'].map((part) => row.querySelector(part)))"
        ".map(([label, line]) => [label.innerText, line.getAttribute('stroke-dasharray')])"
    )
    assert [label for label, _ in drawn] == ["ready", "wanted", "CPU", "memory", "CPU target", "memory target"]
    assert len({dashes for _, dashes in drawn}) == len(drawn)


def test_arrow_keys_move_through_the_chart_and_announce_values(stage: StageProcess, visit: Visit) -> None:
    stage.play(clustering.growing)
    page = visit("alice", PATH)
    chart = page.get_by_role("application", name="Workers over time. The arrow keys move through time.")
    chart.focus()
    announcement = chart.locator("[aria-live]")
    page.keyboard.press("ArrowLeft")
    expect(announcement).to_have_text(re.compile(r"^\d\d:\d\d:\d\d UTC: ready \d+, wanted 16, CPU \d+ %, memory \d+ %"))
    page.keyboard.press("Home")
    expect(announcement).to_contain_text("ready 1, wanted 1,")
    page.keyboard.press("ArrowRight")
    second = announcement.inner_text()
    page.keyboard.press("ArrowRight")
    expect(announcement).not_to_have_text(second)
    page.keyboard.press("ArrowLeft")
    expect(announcement).to_have_text(second)
    page.keyboard.press("Escape")
    expect(announcement).to_have_text("")
    page.keyboard.press("Tab")
    expect(page.locator(".samples-table summary")).to_be_focused()


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
