"""The table of what keeps a pod off the nodes: its words, and links to pages that the reader may see."""

from datetime import timedelta

import pytest

from dashboard.executions.viewmodels.execution import Head
from dashboard.executions.viewmodels.node_reasons import node_reasons
from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from grid.diagnosis.diagnosis import Diagnosis, EvidenceRow
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

TABLE = (
    EvidenceRow(3, ("n1", "n2"), "full: 1 core free, but 2 cores needed; taken by <b>", "for_now", MOMENT + timedelta(hours=2)),
    EvidenceRow(1, ("n4",), "too small: has 1 core, but 2 cores needed", "always"),
    EvidenceRow(2, ("n5", "n6"), "cordoned", "decision"),
)  # fmt: skip


def diagnosis(link: str = "infrastructure:fast", table: tuple[EvidenceRow, ...] = TABLE) -> Diagnosis:
    return Diagnosis("busy", "All nodes are full.", "wait", "you", "Wait.", table=table, link=link, is_normal=True)


def test_the_table_looks_like_this() -> None:
    reasons = node_reasons(diagnosis(), sees_all=True)
    head = Head(StatusLine("wait", "Deploying", "All nodes are full."), "Wait.", (), MOMENT, False, reasons)
    html = render_fragment(Fragment("head", "executions/fragments/execution_head.html", head), now=MOMENT)
    assert "&lt;b&gt;" in html
    assert_golden("node-reasons", html)


@pytest.mark.parametrize(
    ("link", "sees_all", "expected"),
    [
        ("infrastructure:a b", True, "/infrastructure/?pool=a+b"),
        ("infrastructure:a b", False, ""),
        ("node:../x", True, "/nodes/..%2Fx/"),
        ("node:n1", False, ""),
        ("tiers", False, "/launch/"),
        ("executions", False, "/executions/"),
        ("project", False, "/projects/churn/"),
        ("", True, ""),
    ],
)
def test_next_step_is_a_page_the_reader_may_open(link: str, sees_all: bool, expected: str) -> None:
    reasons = node_reasons(diagnosis(link), sees_all=sees_all, project="churn")
    assert reasons is not None
    assert reasons.link == expected
    assert bool(reasons.link_word) == bool(expected)
