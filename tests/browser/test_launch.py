"""The launch form in a real browser: its cluster's numbers follow the typing, its card says whether it fits, and a hint its size."""

import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.sync_api import Locator, Page, Route, expect

from dashboard.executions import launch_facts
from grid.executions import dryrun
from grid.executions.dryrun import DryRunAnswer
from grid.kube.resources import PODS
from grid.models import CheckOutcome, HardwareTier, LaunchCheck
from tests.browser import launching
from tests.browser.conftest import ANYTHING, StageProcess, Visit, on_stage
from tests.browser.looks import look_on_screens, tab_to
from tests.browser.server import Stage
from tests.support import builders

team = on_stage(launching.team)


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
    expect(page.locator("h1")).to_contain_text("JupyterLab")
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


async def fill_nodes(stage: Stage) -> None:
    """Leave a core on each node of the pool."""
    for name in ("default-7f4k2", "default-9x2mc"):
        asked = {"cpu": "7", "memory": "1Gi"}
        stage.cluster.put(PODS, builders.pod(f"busy-{name}", node=name, phase="Running", requests=asked))
    launch_facts._POOLS = launch_facts.SharedPools()  # else what was counted a moment ago is good for a second


async def enlarge(stage: Stage) -> None:
    await sync_to_async(HardwareTier.objects.filter(pk="large").update)(cores="64")


async def refuse(stage: Stage) -> None:
    """Answer as the controller would."""
    refusal = "exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10"
    answer = DryRunAnswer(CheckOutcome.REFUSED, "The quota “team” of the namespace is used up.", refusal)

    def write() -> None:
        for id in LaunchCheck.objects.filter(answered_at=None).values_list("pk", flat=True):
            dryrun.record(id, answer, now=timezone.now())

    await sync_to_async(write)()


def card(page: Page) -> Locator:
    return page.get_by_role("complementary", name="If you launch now")


def test_card_follows_the_form_and_its_button_chooses_tier(stage: StageProcess, visit: Visit) -> None:
    stage.play(fill_nodes)
    stage.play(enlarge)
    page = form(visit, "/launch/")
    expect(card(page)).to_contain_text("Starts now")
    expect(card(page)).to_contain_text("The pool default has 2 free places for Small.")
    page.get_by_role("radio", name="GPU").check()
    expect(card(page)).to_contain_text("Needs a new node")
    page.get_by_role("radio", name="Large").check()
    expect(card(page)).to_contain_text("Can never fit")
    expect(card(page)).to_contain_text("asks for 64 cores; the largest node of the pool default offers 8 cores")
    card(page).get_by_role("button", name="Choose Small").click()
    expect(page.get_by_role("radio", name="Small")).to_be_checked()
    expect(card(page)).to_contain_text("Starts now")
    assert page.url.endswith("/launch/"), "nothing was sent"


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_button_says_what_happens_and_stays_in_view(stage: StageProcess, visit: Visit, width: int) -> None:
    stage.play(enlarge)
    page = form(visit, "/launch/", width=width)
    button = page.get_by_role("button", name="Launch")
    expect(button).to_have_text("Launch: starts now, $0.05 an hour")
    expect(button).to_be_in_viewport(ratio=1)
    page.get_by_role("radio", name="Large").check()
    expect(button).to_have_text("Launch: can never fit")
    expect(button).not_to_have_class("button-main")
    page.get_by_role("radio", name="Small").check()
    expect(button).to_have_class("button-main")
    page.get_by_role("link", name="Cancel").scroll_into_view_if_needed()
    expect(button).to_be_in_viewport(ratio=1)


def test_cluster_is_asked_after_pause_and_its_refusal_shown(stage: StageProcess, visit: Visit) -> None:
    page = form(visit, "/launch/")
    expect(card(page)).not_to_contain_text("Asking the cluster")
    page.get_by_label("Title").fill("Mine")
    expect(card(page)).to_contain_text("Asking the cluster")
    stage.play(refuse)
    expect(card(page)).to_contain_text("The cluster would refuse the launch")
    card(page).get_by_text("What Kubernetes says").click()
    expect(card(page)).to_contain_text("used: pods=10, limited: pods=10")
    page.get_by_label("Title").fill("Another")
    expect(card(page)).not_to_contain_text("would refuse")
    page.get_by_role("button", name="Launch").click()
    expect(page.locator("h1")).to_contain_text("Another")


def test_the_objects_and_a_link_to_the_form_open(visit: Visit) -> None:
    page = form(visit, "/launch/")
    page.get_by_label("Title").fill("A & B")
    page.get_by_role("radio", name="Large").check()
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Show what is created").click()
    expect(opened.value.get_by_label("Objects as YAML")).to_contain_text("token: (hidden)")
    link = card(page).locator("[data-copy-link]")
    expect(link).to_have_attribute("href", re.compile("tier=large.*title=A"))
    page.goto(link.get_attribute("href") or "")
    expect(page.get_by_label("Title")).to_have_value("A & B")
    expect(page.get_by_role("radio", name="Large")).to_be_checked()


def test_no_verdict_has_a_fault_to_the_eye(stage: StageProcess, visit: Visit) -> None:
    stage.play(fill_nodes)
    stage.play(enlarge)
    page = form(visit, "/launch/")
    page.get_by_role("button", name="Check with the cluster").click()
    expect(card(page)).to_contain_text("Asking the cluster")
    stage.play(refuse)
    expect(card(page)).to_contain_text("The cluster would refuse the launch")
    look_on_screens(page, "fit-starts", opened=True)
    page.get_by_role("radio", name="Large").check()
    expect(card(page)).to_contain_text("Can never fit")
    look_on_screens(page, "fit-never")
    page.get_by_label("Attach a cluster").check()
    page.get_by_label("Each worker", exact=True).select_option("small")
    page.get_by_role("radio", name="Small").check()
    expect(card(page)).to_contain_text("Needs 1 new node")
    look_on_screens(page, "fit-cluster")


runs = on_stage(launching.runs, autouse=False)


def test_a_smaller_tier_is_chosen_with_one_click(visit: Visit, runs: None) -> None:
    page = visit("alice", f"/launch/?from={launching.LAST}")
    small = page.get_by_role("radio", name="Small")
    expect(small).not_to_be_checked()
    expect(page.locator(".size-hint")).to_contain_text(
        "Your last 3 runs of “train” peaked at 3 of 28 GiB and 0.7 of 7 cores"
    )
    look_on_screens(page, "size-launch")
    page.locator(".size-hint label").click()
    expect(small).to_be_checked()


def test_larger_tier_is_chosen_after_running_out_of_memory(visit: Visit, runs: None) -> None:
    page = visit("alice", f"/executions/{launching.SHORT}/")
    expect(page.locator(".size-note")).to_be_visible()
    look_on_screens(page, "size-short")
    page.get_by_role("link", name="Launch again on Large (28 GiB)").click()
    expect(page.get_by_role("radio", name="Large")).to_be_checked()
    expect(page.get_by_label("Title")).to_have_value("merge")
