"""The card beside the launch form in a real browser: it follows the form, chooses tiers, and shows the cluster's own answer."""

import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from grid.executions import dryrun
from grid.executions.dryrun import DryRunAnswer
from grid.kube.resources import PODS
from grid.models import CheckOutcome, HardwareTier, LaunchCheck
from tests.browser import launching
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.server import Stage
from tests.browser.stage import StageProcess
from tests.support import builders


async def fill_nodes(stage: Stage) -> None:
    """Leave a core on each node of the pool."""
    for name in ("default-7f4k2", "default-9x2mc"):
        asked = {"cpu": "7", "memory": "1Gi"}
        stage.cluster.put(PODS, builders.pod(f"busy-{name}", node=name, phase="Running", requests=asked))


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


@pytest.fixture(autouse=True)
def team(stage: StageProcess) -> None:
    stage.play(launching.team)


def form(visit: Visit, path: str = "/launch/", **options: Any) -> Page:
    page = visit("alice", path, **options)
    page.wait_for_load_state("load")
    return page


def card(page: Page) -> Locator:
    return page.get_by_role("complementary", name="If you launch now")


def test_card_follows_the_form_and_its_button_chooses_tier(stage: StageProcess, visit: Visit) -> None:
    stage.play(fill_nodes)
    stage.play(enlarge)
    page = form(visit)
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


def test_cluster_is_asked_after_pause_and_its_refusal_shown(stage: StageProcess, visit: Visit) -> None:
    page = form(visit)
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
    page = form(visit)
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
    page = form(visit)
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
