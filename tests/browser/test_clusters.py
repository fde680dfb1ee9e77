"""A cluster's page in a real browser: live, by keyboard, without a script, at every width and in both themes."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser import clustering
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import WIDE_AND_PHONE, look_at
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
    texts: list[str] = page.evaluate("window.written")
    return [text for text in texts if re.fullmatch(r"\d\d[:-]\d\d(:\d\d)?", text)]


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


def test_the_legend_tells_lines_apart_by_their_dashes(stage: StageProcess, visit: Visit) -> None:
    stage.play(clustering.growing)
    page = visit("alice", PATH)
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


def test_chart_of_a_single_sample_spans_a_minute(stage: StageProcess, visit: Visit) -> None:
    """Left alone, an axis with one moment spans years."""
    stage.play(clustering.growing)
    page = visit("alice", PATH)
    follow(page)

    def only_the_last(route: Route) -> None:
        chart = route.fetch().json()
        for line in chart["charts"]["workers"]["lines"].values():
            line["values"] = line["values"][-1:]
        route.fulfill(json=chart | {"times": chart["times"][-1:], "events": []})

    page.route("**/samples/", only_the_last)
    page.add_init_script(_KEEP_WHAT_IS_WRITTEN)
    page.reload()
    while not (times := _times_written(page)):
        page.wait_for_timeout(50)  # the canvas is there before anything is drawn on it
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", text) for text in times), times
    follow(page)
    page.unroute_all(behavior="wait")  # or one that is being answered fails when the page is closed


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


def test_table_and_forms_do_the_same_without_a_script(stage: StageProcess, visit: Visit, forgiven: list[str]) -> None:
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


@WIDE_AND_PHONE
@pytest.mark.parametrize("name", PAGES)
def test_cluster_states_have_no_visible_fault(
    stage: StageProcess, visit: Visit, name: str, width: int, scheme: str
) -> None:
    scene, path = PAGES[name]
    stage.play(scene)
    page = visit("alice", path, width=width, scheme=scheme)
    if page.locator("[data-chart]").count():
        expect(page.locator(".uplot canvas")).to_be_visible()
    look_at(page, f"cluster-{name}")
