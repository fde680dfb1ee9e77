"""The log viewer in a real browser: following, earlier lines, search, and choices that are remembered."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import clustering, executing, scenes
from tests.browser.conftest import ANYTHING, StageProcess, Visit
from tests.browser.looks import look_on_screens

POD = "workspace-aaaa2222bb"
PATH = "/executions/aaaa2222bb/?tab=log"
LONG = [f"INFO epoch {number}: loss {2 / (number + 1):.4f}" for number in range(1700)]
COLOURFUL = [
    "[I 2026-11-21 08:12:13.123 ServerApp] Jupyter Server 2.17 is running at:",
    "[W 2026-11-21 08:12:14.020 ServerApp] 404 GET /api/kernels/<script>alert(1)</script> (10.0.0.7) 1.20ms",
    "\x1b[32mdownloading\x1b[0m   3%\r\x1b[32mdownloading\x1b[0m 100% |██████████| 12.1M/12.1M",
    *(
        f"\x1b[{code}m{code}\x1b[0m colour of terminals, \x1b[1;{code}mbold\x1b[0m"
        for code in (*range(30, 38), *range(90, 98))
    ),
    "2026-11-21 08:12:15,200 - train - DEBUG - batch of 512 rows, " + "column, " * 60,
    '{"level": "error", "message": "loss is nan"}',
    "Traceback (most recent call last):",
    '  File "/mnt/home/train.py", line 31, in <module>',
    "ValueError: loss is nan",
]


def box(page: Page) -> str:
    return str(page.locator(".log-lines").inner_text())


def top(page: Page) -> float:
    return float(page.locator(".log-box").evaluate("box => box.scrollTop"))


def test_new_lines_appear_and_wait_while_somebody_reads(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    page = visit("alice", PATH)
    lines = page.locator(".log-lines")
    expect(lines).to_contain_text("step 79")
    expect(page.locator("#log-state")).to_contain_text("Following")
    stage.play(executing.write_log, name=POD, lines=["and so it goes on"])
    expect(lines).to_contain_text("and so it goes on")
    assert top(page) == 0
    page.locator(".log-box").evaluate("box => { box.scrollTop = -300 }")
    expect(page.locator("#log-state")).to_contain_text("Paused")
    line = page.locator(".log-row", has_text="step 60")
    seen = line.bounding_box()
    stage.play(executing.write_log, name=POD, lines=["one", "two"])
    button = page.get_by_role("button", name="2 new lines")
    expect(button).to_be_visible()
    assert line.bounding_box() == pytest.approx(seen, abs=1)
    button.click()
    expect(button).to_be_hidden()
    assert top(page) == 0
    stage.play(executing.end, id="aaaa2222bb", name=POD)
    expect(page.locator("#log-state")).to_contain_text("The pod has ended")


def test_wrap_and_time_are_remembered(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    page = visit("alice", PATH)
    page.get_by_label("Time", exact=True).uncheck()
    page.get_by_label("Wrap").uncheck()
    page.reload()
    expect(page.locator(".log-row time").first).to_be_hidden()
    assert page.locator(".log-row code").first.evaluate("text => getComputedStyle(text).whiteSpace") == "pre"


def test_the_first_lines_appear_when_the_program_has_started(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    page = visit("alice", "/executions/dddd5555ee/?tab=log")
    expect(page.locator("#log .empty")).to_contain_text("Its program has not started yet.")
    look_on_screens(page, "log-waiting")
    stage.play(executing.write_log, name="workspace-dddd5555ee", lines=["hello"])
    stage.play(executing.place_pod, id="dddd5555ee", node="default-7f4k2", ready=True)
    expect(page.locator(".log-row")).to_have_text(["09:00:00.000 hello"])
    expect(page.locator("#log .empty")).to_have_count(0)
    expect(page.locator("#log-state")).to_contain_text("Following")


def test_unavailable_server_is_said_and_log_lines_stay(stage: StageProcess, visit: Visit, forgiven: list[str]) -> None:
    forgiven.append(ANYTHING)
    stage.play(executing.working_day)
    page = visit("alice", PATH)
    stage.play(scenes.answer, available=False)
    expect(page.locator("#log-state")).to_contain_text("The cluster does not answer.")
    stage.play(scenes.answer, available=True)
    stage.play(executing.write_log, name=POD, lines=["back again"])
    expect(page.locator(".log-lines")).to_contain_text("back again")
    expect(page.locator("#log-state")).to_contain_text("Following")


def test_scrolling_up_loads_all_lines_and_search_finds_them(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    stage.play(executing.write_log, name=POD, lines=LONG)
    page = visit("alice", PATH)
    rows = page.locator(".log-row")
    expect(rows).to_have_count(500)
    for count in (1000, 1500, 1780):
        page.locator(".log-box").evaluate("box => { box.scrollTop = -box.scrollHeight }")
        expect(rows).to_have_count(count)
    texts = page.locator(".log-row code").all_inner_texts()
    assert texts[80:] == LONG
    expect(page.locator("[data-earlier]")).to_have_count(0)
    assert page.locator("[data-day]").count() == 1
    page.get_by_role("searchbox", name="Search").fill("epoch 169")
    expect(page.locator("#log-found")).to_contain_text("11 of 1,780 lines")
    page.keyboard.press("Enter")
    expect(page.locator(".log-current")).to_contain_text("epoch 1699")
    page.keyboard.press("Enter")
    expect(page.locator(".log-current")).to_contain_text("epoch 1698")
    page.get_by_role("button", name="Next match").click()
    expect(page.locator("#log-found")).to_contain_text("11 of 11 of 1,780 lines")
    page.get_by_role("button", name="Search whole log").click()
    expect(rows).to_have_count(11)
    page.get_by_role("link", name="Show all lines").click()
    expect(rows).to_have_count(500)


@pytest.mark.parametrize("name", ["execution", "cluster"])
def test_no_log_has_a_fault_to_the_eye(stage: StageProcess, visit: Visit, name: str) -> None:
    paths = {"cluster": f"/executions/{clustering.ID}/?tab=log", "execution": PATH}
    stage.play(clustering.growing if name == "cluster" else executing.working_day)
    stage.play(executing.write_log, name=POD, lines=COLOURFUL)
    page = visit("olga-operator", paths[name])
    expect(page.locator(".log-row").last).to_be_visible()
    page.get_by_role("searchbox", name="Search").fill("step 39")
    expect(page.locator("#log-found")).to_contain_text("lines")
    look_on_screens(page, f"log-{name}")
