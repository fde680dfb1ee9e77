"""From an incident to its cause: an operator begins at the overview, and reads it after three clicks at most."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from tests.browser import incidents
from tests.browser.conftest import Visit
from tests.browser.looks import look_on_screens
from tests.browser.server import Stage
from tests.browser.stage import StageProcess

MOST_CLICKS = 3
EXECUTION = incidents.TITLE


@dataclass(frozen=True)
class Way:
    """`clicks`: the names of the links that lead from the overview to a page which says the cause."""

    scene: Callable[[Stage], Awaitable[None]]
    clicks: tuple[str, ...]
    cause: str


WAYS = {
    "the disk of a node is full": Way(
        incidents.disk_filled, (EXECUTION,), r"The node ran short of disk and evicted this: it used 70 GiB"
    ),
    "a node is lost": Way(incidents.node_lost, (EXECUTION, incidents.NODE), r"Kubelet stopped posting node status"),
    "the controller has stopped": Way(incidents.controller_stopped, (), r"It has stopped: nothing is admitted"),
    "CPU is stolen by a neighbour": Way(
        incidents.cpu_stolen,
        (incidents.NODE,),
        r"“Hyperparameter search” of bob uses 3 cores, 1 more than it requested\. “Churn exploration” of alice may get less",
    ),
}


@pytest.mark.parametrize("incident", WAYS)
def test_the_cause_is_read_after_three_clicks_at_most(stage: StageProcess, visit: Visit, incident: str) -> None:
    way = WAYS[incident]
    stage.play(way.scene)
    page = visit("olga-operator", "/overview/")
    assert len(way.clicks) <= MOST_CLICKS
    for name in way.clicks:
        page.get_by_role("main").get_by_role("link", name=name).first.click()
    expect(page.get_by_role("main")).to_contain_text(re.compile(way.cause), timeout=30_000)


def test_cpu_contention_has_no_fault_to_the_eye(stage: StageProcess, visit: Visit) -> None:
    stage.play(incidents.cpu_stolen)
    page = visit("olga-operator", "/help/")
    for path in ("/overview/", f"/nodes/{incidents.NODE}/", f"/executions/{incidents.ID}/"):
        page.goto(path)
        expect(page.locator("#contention")).to_contain_text("CPU")
        look_on_screens(page, "contention")
