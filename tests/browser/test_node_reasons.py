"""An execution's page says in a table which nodes keep it off, changes with them, and prints it."""

from playwright.sync_api import expect

from tests.browser import executing, scenes
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess

ID = "abcd2345ef"


def test_the_table_is_readable_live_and_printed(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.team)
    stage.play(executing.put, id=ID, state="deploying")
    stage.play(executing.await_node, id=ID)
    page = visit("alice", f"/executions/{ID}/")
    rows = page.locator(".node-reasons").first.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="Cordoned")).to_contain_text("By decision")
    expect(rows.filter(has_text="Too small")).to_contain_text("Always")
    assert "on-fast" not in page.locator(".node-reasons").first.inner_text(), (
        "others' pods are not named to a practitioner"
    )
    look_on_screens(page, "execution-without-a-node")
    follow(page)
    stage.play(scenes.put_node, name="fast-2", pool="fast", cpu="64", unschedulable=False)
    expect(rows.filter(has_text="Cordoned")).to_have_count(0)
    expect(rows.first).to_contain_text("3")
    not_reloaded(page)
    page.emulate_media(media="print")
    expect(rows.first).to_be_visible()
