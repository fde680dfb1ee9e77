"""The cards of a cluster's problems, with the table of the nodes where a worker waits for one."""

from typing import cast

import pytest

from dashboard.clusters.viewmodels.troubles import Trouble, troubles
from dashboard.shell.fragments import render_fragment
from grid.diagnosis.diagnosis import Diagnosis, EvidenceRow, Who
from tests.support.builders import MOMENT

ROW = EvidenceRow(2, ("n1", "n2"), "full: at most 1 core free, but 2 cores needed", "for_now")


def card(
    who: Who, *, table: tuple[EvidenceRow, ...] = (), is_operator: bool = False, sees_all: bool = False
) -> Trouble:
    diagnosis = Diagnosis(
        "workers_pending", "1 worker: busy.", "wait", who, "Wait.", table=table, link="infrastructure", is_normal=True
    )
    (shown,) = cast("tuple[Trouble]", troubles([diagnosis], is_operator=is_operator, sees_all=sees_all).context)
    return shown


@pytest.mark.parametrize("who", ["you", "admin", "operator"])
def test_card_with_node_table_says_once_who_can_act(who: Who) -> None:
    with_table = card(who, table=(ROW,))
    assert with_table.who == ""
    assert with_table.reasons is not None
    assert with_table.reasons.who
    assert with_table.reasons.is_normal
    assert card(who).reasons is None
    assert card(who).who


def test_an_operator_is_not_advised_to_ask_an_operator() -> None:
    assert card("operator", is_operator=True).who == ""
    assert card("admin", is_operator=True).who


@pytest.mark.parametrize("sees_all", [True, False])
def test_only_who_sees_all_is_led_to_the_nodes(sees_all: bool) -> None:
    reasons = card("you", table=(ROW,), sees_all=sees_all).reasons
    assert reasons is not None
    assert bool(reasons.link) is sees_all


def test_the_table_is_on_the_page() -> None:
    diagnosis = Diagnosis("workers_pending", "1 worker: busy.", "wait", "you", "Wait.", table=(ROW,))
    page = render_fragment(troubles([diagnosis], is_operator=False), now=MOMENT)
    assert "n1, n2" in page
    assert "at most 1 core free" in page
