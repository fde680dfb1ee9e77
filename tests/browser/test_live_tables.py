"""Live tables in a real browser: what changes lights up, no row moves beneath a pointer, and the head stays in sight."""

from playwright.sync_api import Page, expect

from tests.browser import executing, scenes
from tests.browser.conftest import StageProcess, Visit
from tests.browser.looks import follow, not_reloaded

NODES = "/infrastructure/"
WATCH_LIGHTS = """() => {
  window.lit = [];
  const animate = Element.prototype.animate;
  Element.prototype.animate = function (...how) { window.lit.push(this.id); return animate.apply(this, how); };
}"""


def names(page: Page) -> list[str]:
    return page.locator("#nodes tr th").all_inner_texts()


def watched(visit: Visit, path: str = NODES) -> Page:
    """A live page that remembers which rows have lit up."""
    page = visit("olga-operator", path)
    follow(page)
    page.evaluate(WATCH_LIGHTS)
    return page


def lit(page: Page) -> list[str]:
    row_ids: list[str] = page.evaluate("window.lit")
    return row_ids


def test_row_lights_up_for_a_state_not_a_measurement(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.put_node, name="node-a", ready=False)
    stage.play(scenes.put_node, name="node-b")
    page = watched(visit)
    stage.play(scenes.put_pod, name="pod-1", node="node-b", phase="Running", ready=True, requests={"cpu": "1"})
    expect(page.locator("#node-node-b td").nth(4)).to_have_text("1")
    stage.play(scenes.usage, nodes={"node-b": [1500, 2000]})
    expect(page.locator("#node-node-b")).to_contain_text("1.5")
    assert lit(page) == []
    stage.play(scenes.put_node, name="node-a", ready=True)
    expect(page.locator("#node-node-a .status-ok")).to_have_text("Ready")
    stage.play(scenes.put_node, name="node-c")
    expect(page.locator("#node-node-c")).to_be_visible()
    assert lit(page) == ["node-node-a", "node-node-c"]
    page.emulate_media(reduced_motion="reduce")
    stage.play(scenes.put_node, name="node-a", ready=False)
    expect(page.locator("#node-node-a")).to_contain_text("Not ready")
    assert lit(page) == ["node-node-a", "node-node-c"]
    not_reloaded(page)


def test_a_page_on_which_everything_changes_stays_calm(stage: StageProcess, visit: Visit) -> None:
    for number in range(10):
        stage.play(scenes.put_node, name=f"node-{number}")
    page = watched(visit)
    for turn in range(40):
        stage.play(scenes.put_node, name=f"node-{turn % 10}", ready=turn % 20 >= 10)
    expect(page.locator("#nodes .status-ok", has_text="Ready")).to_have_count(10)
    seconds = page.evaluate("performance.now() / 1000")
    assert 0 < len(lit(page)) <= 6 + seconds / 2
    assert len(lit(page)) < 20


def test_rows_stay_beneath_pointer_and_move_when_it_leaves(stage: StageProcess, visit: Visit) -> None:
    for name in ("b", "c", "d"):
        stage.play(scenes.put_node, name=f"node-{name}", pool=f"{name}-pool", ready=False)
    page = watched(visit)
    line = page.locator(".rows-wait")
    page.locator("#node-node-c").hover()
    stage.play(scenes.put_node, name="node-a", pool="a-pool")
    expect(line).to_contain_text("1 new. Rows keep their places until you leave the table.")
    page.locator("#node-node-c td").nth(2).hover()
    stage.play(scenes.put_node, name="node-e", pool="e-pool")
    expect(line).to_contain_text("2 new.")
    page.locator("#node-node-c td").nth(2).hover()  # the pools above it go with their nodes, and so the table moves
    stage.play(scenes.remove_node, name="node-e")  # of which no trace is left
    stage.play(scenes.remove_node, name="node-d")
    stage.play(scenes.put_node, name="node-c", pool="a-pool", ready=True)
    expect(line).to_contain_text("1 new, 1 gone, 1 moved.")
    page.locator("#node-node-c td").nth(3).hover()
    expect(page.locator("#node-node-c .status-ok")).to_have_text("Ready")
    assert names(page) == ["node-b", "node-c", "node-d"]
    expect(page.locator(".row-gone")).to_have_attribute("id", "node-node-d")
    stage.play(scenes.put_node, name="node-a", pool="a-pool", ready=False)  # a row that waits changes too
    page.locator("h1").hover()
    expect(page.locator("#nodes tr")).to_have_count(3)
    assert names(page) == ["node-a", "node-c", "node-b"]
    expect(page.locator("#node-node-a")).to_contain_text("Not ready")
    expect(line).to_be_hidden()
    not_reloaded(page)


def test_idle_pointer_holds_rows_only_for_a_while(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.put_node, name="node-b")
    page = visit("olga-operator", NODES)
    page.clock.install()
    page.goto(NODES)
    follow(page)
    page.locator("#node-node-b").hover()
    stage.play(scenes.put_node, name="node-a")
    expect(page.locator(".rows-wait")).to_contain_text("1 new.")
    page.clock.run_for(16_000)
    expect(page.locator("#nodes tr")).to_have_count(2)
    expect(page.locator(".rows-wait")).to_be_hidden()
    stage.play(scenes.put_node, name="node-c")
    expect(page.locator("#nodes tr")).to_have_count(3)


def test_the_keyboard_holds_rows_as_a_pointer_does(stage: StageProcess, visit: Visit) -> None:
    stage.play(scenes.put_node, name="node-b")
    page = watched(visit)
    page.get_by_role("region", name="Table of nodes").focus()
    page.keyboard.press("Tab")
    while not page.evaluate("document.activeElement.closest('tbody') !== null"):
        page.keyboard.press("Tab")
    stage.play(scenes.put_node, name="node-a")
    expect(page.locator(".rows-wait")).to_contain_text("1 new.")
    assert names(page) == ["node-b"]
    page.keyboard.press("Shift+Tab")
    expect(page.locator("#nodes tr")).to_have_count(2)
    assert names(page) == ["node-a", "node-b"]


def test_selected_and_opened_rows_stay_so_when_rows_move(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    page = watched(visit, "/executions/?sort=status")
    chosen = page.locator("#row-cccc4444dd")
    chosen.locator(".select").check()
    opened = chosen.locator("details.why")
    opened.locator("summary").click()
    stage.play(executing.enter, id="cccc4444dd", state="deploying")
    stage.play(executing.put, id="newq222222", state="queued")
    expect(page.locator(".rows-wait")).to_contain_text("new")
    expect(page.locator("[data-selected]")).to_have_text("1")
    page.locator("h1").hover()
    expect(page.locator("#row-newq222222")).to_be_visible()
    expect(chosen.locator(".select")).to_be_checked()
    expect(page.locator("[data-selected]")).to_have_text("1")


def test_the_head_of_a_long_table_stays_in_sight(stage: StageProcess, visit: Visit) -> None:
    for number in range(50):
        stage.play(scenes.put_node, name=f"node-{number:02}")
    page = visit("olga-operator", NODES, width=1024)
    follow(page)
    page.locator("#nodes tr").nth(45).scroll_into_view_if_needed()
    expect(page.locator("#nodes tr").first).not_to_be_in_viewport()
    table = page.get_by_role("region", name="Table of nodes")
    assert table.locator("thead th").first.evaluate("head => head.getBoundingClientRect().top") == 0
    assert page.evaluate("document.elementFromPoint(innerWidth / 2, 8).closest('thead') !== null")
    assert table.evaluate("box => box.scrollWidth <= box.clientWidth")
