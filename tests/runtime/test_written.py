"""What the change feed reports and no cache keeps wakes the pages that show it, and no others."""

import pytest

from grid.database.changefeed import EVERYTHING, Change
from grid.kube.hub import Hub, Topic
from grid.runtime.written import jobs_of, notified, publish_written, roles_in, runs_of_job

ALL = {notified("1"), notified("2"), jobs_of("1"), runs_of_job("j1"), runs_of_job("j2"), roles_in("churn")}
EVERYBODYS = {notified(), jobs_of(), runs_of_job(), roles_in()}


@pytest.mark.parametrize(
    ("change", "woken"),
    [
        (Change(person="1"), {notified("1")}),
        (Change(jobs_of="1"), {jobs_of("1")}),
        (Change(job="j1"), {runs_of_job("j1")}),
        (Change(project="churn"), {roles_in("churn")}),
        (Change(execution="e1"), set()),
        (Change(check="c1"), set()),
        (EVERYTHING, EVERYBODYS),
    ],
)
async def test_a_change_is_told_to_those_who_follow_it(change: Change, woken: set[Topic]) -> None:
    hub = Hub()
    with hub.subscribe(ALL | EVERYBODYS) as subscription:
        publish_written(hub, [change])
        assert subscription.taken() == woken


@pytest.mark.parametrize(
    ("text", "change", "is_for_pages"),
    [
        ("jobs-of:7", Change(jobs_of="7"), True),
        ("job:j1", Change(job="j1"), True),
        ("person:7", Change(person="7"), True),
        ("execution:e1", Change(execution="e1"), False),
        ("project:churn", Change(project="churn"), False),
        ("something new", EVERYTHING, False),
    ],
)
def test_changes_irrelevant_to_the_controller_are_recognised(text: str, change: Change, is_for_pages: bool) -> None:
    assert Change.parse(text) == change
    assert change.is_for_pages is is_for_pages
