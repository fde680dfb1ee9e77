"""A cluster's page in a real browser: live, by keyboard, without a script, at every width and in both themes."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser import clustering
from tests.browser.accessibility import violations
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.stage import StageProcess

PATH = f"/executions/{clustering.ID}/"
PAGES = {
    "growing": (clustering.growing, PATH),
    "troubled": (clustering.troubled, PATH),
    "wide": (clustering.wide, PATH),
    "resting": (clustering.resting, PATH),
    "ended": (clustering.ended, PATH),
    "log": (clustering.growing, f"{PATH}?tab=log"),
    "resize": (clustering.growing, f"{PATH}resize/"),
}

_KEEP_WHAT_IS_WRITTEN = """
window.written = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.written.push(text);
  return write.call(this, text, ...rest);
};
"""


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


def _times_written(page: Page) -> list[str]:
    found: list[str] = page.evaluate("window.written")
    return [text for text in found if re.fullmatch(r"\d\d[:-]\d\d(:\d\d)?", text)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_line_of_the_chart_has_its_colour(stage: StageProcess, visit: Visit, scheme: str) -> None:
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


def test_the_chart_of_a_cluster_with_one_sample_spans_a_minute(stage: StageProcess, visit: Visit) -> None:
    """Left alone, an axis with one moment spans years."""
    stage.play(clustering.growing)
    page = visit("alice", PATH)
    follow(page)

    def only_the_last(route: Route) -> None:
        chart = route.fetch().json()
        count = len(chart["times"])
        alone = {
            name: found[-1:] if isinstance(found, list) and len(found) == count else found
            for name, found in chart.items()
        }
        route.fulfill(json=alone | {"events": []})

    page.route("**/samples/", only_the_last)
    page.add_init_script(_KEEP_WHAT_IS_WRITTEN)
    page.reload()
    while not (times := _times_written(page)):
        page.wait_for_timeout(50)  # the canvas is there before anything is drawn on it
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", text) for text in times), times
    follow(page)
    page.unroute_all(behavior="wait")  # or one that is being answered fails when the page is closed


def test_a_worker_is_reached_by_keyboard_and_leads_to_its_pod(stage: StageProcess, visit: Visit) -> None:
    stage.play(clustering.growing)
    page = visit("alice", PATH)
    follow(page)
    cell = page.get_by_role("link", name="worker b7x2p: ready, on default-7f4k2")
    cell.focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="worker c4kqm: ready")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("c4kqm")


def test_without_a_script_the_table_and_the_forms_do_the_same(
    stage: StageProcess, visit: Visit, forgiven: list[str]
) -> None:
    stage.play(clustering.growing)
    page = visit("alice", PATH, javascript=False)
    page.locator(".samples-table summary").click()
    expect(page.locator("#samples-rows")).to_contain_text("Grows from 6 to 16 workers: CPU use is above its target.")
    page.get_by_role("link", name="Change workers").click()
    page.fill("#id_maximum", "0")
    page.get_by_role("button", name="Change").click()
    expect(page.locator("#id_maximum_error")).to_be_visible()
    page.fill("#id_minimum", "2")
    page.fill("#id_maximum", "18")
    page.get_by_role("button", name="Change").click()
    expect(page.locator("h1")).to_have_text("Feature building")
    assert stage.play(clustering.size) == [2, 18]
    forgiven.append("422")  # the refusal is a 422, which Chromium reports


def test_a_pair_leads_to_each_other(stage: StageProcess, visit: Visit) -> None:
    stage.play(clustering.growing)
    page = visit("alice", f"/executions/{clustering.WORKSPACE}/")
    expect(page.locator("#companion")).to_contain_text("6 of 16 workers")
    follow(page)
    page.get_by_role("link", name="Feature building").click()
    expect(page.locator("h1")).to_have_text("Feature building")
    follow(page)
    page.locator("#companion").get_by_role("link", name="Churn exploration").click()
    expect(page.locator("h1")).to_have_text("Churn exploration")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(stage: StageProcess, visit: Visit, name: str) -> None:
    """At both widths in both themes. Pictures are kept where GRID_SCREENSHOTS says."""
    scene, path = PAGES[name]
    stage.play(scene)
    page = visit("alice", path)
    expect(page.locator("h1")).to_be_visible()
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            if page.locator("[data-samples]").count():
                expect(page.locator(".uplot canvas")).to_be_visible()
            if folder := os.environ.get("GRID_SCREENSHOTS"):
                page.screenshot(path=Path(folder) / f"{name}-{width}-{scheme}.png", full_page=True)
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
