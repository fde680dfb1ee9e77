"""An operator drains a node: sees whose pods go, follows it on the node's page, which is live, and cancels it."""

from playwright.sync_api import expect

from tests.browser import draining
from tests.browser.conftest import Visit
from tests.browser.following import follow, not_reloaded
from tests.browser.looks import look_on_screens
from tests.browser.stage import StageProcess


def test_a_drain_is_asked_for_followed_and_cancelled(stage: StageProcess, visit: Visit) -> None:
    stage.play(draining.busy_node)
    page = visit("olga-operator", "/nodes/node-a/")
    follow(page)
    page.get_by_role("link", name="Drain", exact=True).click()
    expect(page.locator("table")).to_contain_text("Churn by month")
    expect(page.locator("table")).to_contain_text("The PodDisruptionBudget web allows no eviction now")
    look_on_screens(page, "node-drain")
    page.get_by_label("Reason").fill("New kernel")
    page.get_by_role("button", name="Drain").click()
    follow(page)
    work = page.locator("#node-work")
    expect(work).to_contain_text("Draining by olga-operator")
    stage.play(draining.carry_out)
    expect(work).to_contain_text("0 of 2 pods gone.")
    expect(work).to_contain_text("A PodDisruptionBudget does not allow it now")
    page.reload()  # what an operator has just asked for may move the page
    follow(page)
    look_on_screens(page, "node-draining")
    stage.play(draining.end_evicted)
    stage.play(draining.carry_out)
    expect(work).to_contain_text("1 of 2 pods gone.")
    not_reloaded(page)
    page.get_by_role("link", name="Cancel the drain").click()
    page.get_by_role("button", name="Uncordon").click()
    stage.play(draining.carry_out)
    expect(work).not_to_contain_text("Cordoned")
    expect(page.get_by_role("link", name="Cordon", exact=True)).to_be_visible()
    follow(page)
