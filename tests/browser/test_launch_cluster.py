"""The launch form's cluster in a real browser: numbers that follow the typing, refusals at their fields, by keyboard, on a phone."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser import launching
from tests.browser.conftest import ANYTHING, Visit
from tests.browser.following import tab_to
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


@pytest.fixture(autouse=True)
def team(stage: StageProcess) -> None:
    stage.play(launching.team)


def form(visit: Visit, path: str, **options: Any) -> Page:
    """With its script loaded: before that, typing would tell nobody."""
    page = visit("alice", path, **options)
    page.wait_for_url("**/launch/**")
    page.wait_for_load_state("load")
    return page


def estimate(page: Page) -> Locator:
    return page.locator(".estimate")


def framework(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name="Framework").get_by_role("radio", name=name)


def row(page: Page, name: str) -> Locator:
    return estimate(page).get_by_role("row", name=name).get_by_role("cell")


def test_numbers_follow_the_typing_and_refusals_their_field(visit: Visit) -> None:
    page = form(visit, "/launch/?kind=cluster")
    most = page.get_by_label("Maximum workers")
    expect(row(page, "Slots")).to_have_text(["2", "6"])
    most.fill("")
    most.press_sequentially("20")
    expect(row(page, "Slots")).to_have_text(["2", "21"])
    expect(row(page, "Nodes")).to_have_text(["1", "3"])
    expect(row(page, "Price an hour")).to_have_text(["$0.10", "$1.05"])
    expect(most).to_be_focused()
    expect(most).not_to_have_attribute("aria-invalid", "true")

    most.press_sequentially("0")
    expect(most).to_have_attribute("aria-invalid", "true")
    expect(most).to_have_accessible_description(re.compile("Your admin allows at most 100 workers in one cluster"))
    expect(most).to_have_value("200")
    page.get_by_label("Each worker", exact=True).select_option(label="Large: 7 cores, 28 GiB, $0.38 an hour")
    most.fill("4")
    expect(most).not_to_have_attribute("aria-invalid", "true")
    expect(most).to_have_accessible_description(re.compile("^Your quota allows up to 24 workers.$"))
    expect(row(page, "Nodes")).to_have_text(["1", "4"])
    expect(estimate(page)).to_contain_text("1 core and 4 GiB of memory of it stay unused")
    expect(estimate(page)).to_contain_text("The pool default has 2 nodes, and up to 3 more may be started.")


def test_other_framework_brings_its_environments_and_tells_differing_versions(visit: Visit) -> None:
    page = form(visit, "/launch/")
    page.get_by_label("Attach a cluster").check()
    environment = page.get_by_label("Environment of the cluster")
    page.get_by_label("Maximum workers").fill("8")
    framework(page, "Ray").check()
    expect(environment).to_contain_text("Ray (Ray 2.60.0)")
    expect(environment.locator("option")).to_have_count(1)
    expect(framework(page, "Ray")).to_be_focused()
    expect(page.get_by_label("Maximum workers")).to_have_value("8")
    expect(estimate(page)).to_contain_text("JupyterLab has Ray 2.59.0 and the cluster would have 2.60.0")
    expect(page.locator(".cluster-form .field-error p")).to_have_count(0)
    framework(page, "Dask").check()
    expect(environment.locator("option")).to_have_count(2)
    expect(estimate(page)).not_to_contain_text("the cluster would have")
    environment.select_option("lake")
    expect(estimate(page)).to_contain_text("JupyterLab has Dask 2026.8.0 and the cluster would have 2026.7.1")


def test_a_cluster_is_launched_with_the_keyboard_alone(stage: StageProcess, visit: Visit, forgiven: list[str]) -> None:
    page = form(visit, "/launch/")
    tab_to(page, page.get_by_label("Attach a cluster"))
    page.keyboard.press("Space")
    tab_to(page, framework(page, "Dask"))
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Environment of the cluster")).to_contain_text("Ray (Ray 2.60.0)")
    tab_to(page, page.get_by_label("Workers", exact=True))
    page.keyboard.press("Control+A")
    page.keyboard.type("0")
    expect(page.locator("#id_workers_minimum_error")).to_have_text("A cluster has at least one worker.")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was launched")
    page.wait_for_load_state("load")  # before that, typing would tell nobody
    expect(page.get_by_label("Workers", exact=True)).to_have_attribute("aria-invalid", "true")
    assert stage.play(launching.launched) == []
    tab_to(page, page.get_by_label("Workers", exact=True))
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(row(page, "Slots")).to_have_text(["4", "7"])
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("workspace-")
    cluster, _ = stage.play(launching.launched)
    assert (cluster["spec"]["framework"], cluster["spec"]["workers_minimum"]) == ("ray", 2)
    forgiven.append("422")  # the refusal that was asked for


def test_late_answer_does_not_change_values_typed_since(visit: Visit) -> None:
    page = form(visit, "/launch/?kind=cluster")
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        held.append(route)

    page.route("**/launch/estimate/", hold_the_first)
    most = page.get_by_label("Maximum workers")
    with page.expect_request("**/launch/estimate/"):
        most.fill("7")
    most.fill("8")
    held[0].continue_()
    expect(row(page, "Slots")).to_have_text(["2", "9"])
    expect(most).to_have_value("8")


def test_unfetchable_numbers_are_called_old_and_come_again(visit: Visit, forgiven: list[str]) -> None:
    page = form(visit, "/launch/?kind=cluster")
    page.route("**/launch/estimate/", lambda route: route.fulfill(status=500, body="<h1>Oh</h1>"))
    page.get_by_label("Maximum workers").fill("7")
    expect(estimate(page)).to_contain_text("The server does not answer; what follows is from before.")
    expect(row(page, "Slots")).to_have_text(["2", "6"])
    page.unroute("**/launch/estimate/")
    page.get_by_label("Maximum workers").fill("8")
    expect(estimate(page)).to_contain_text("2 slots at minimum, 9 at maximum; you use 0 of 25.")
    forgiven.append(ANYTHING)  # the browser's own words about the request that failed
    page.context.clear_cookies(name="grid_session")
    page.get_by_label("Maximum workers").fill("7")
    expect(page).to_have_url(re.compile(r"/login/\?next=/launch/"))


def test_launch_form_states_have_no_visible_fault(visit: Visit) -> None:
    page = form(visit, "/launch/")
    page.get_by_label("Attach a cluster").check()
    expect(estimate(page)).to_be_visible()
    look_on_screens(page, "launch-attached")
    framework(page, "Spark").check()
    expect(page.get_by_label("Environment of the cluster")).to_contain_text("Data lake tools (Spark 4.3.0)")
    page.get_by_label("Maximum workers").fill("60")
    page.get_by_label("Local storage").fill("lots")
    expect(page.locator("#id_workers_maximum_error")).to_contain_text("one user may hold 25")
    look_on_screens(page, "launch-refused")
