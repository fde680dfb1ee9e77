"""Incidents of the time in which nobody leads, and what a controller lacks that runs and cannot work."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client

from grid.controller.failures import note_failures
from grid.controller.leader import LEASE, Election
from grid.core.errors import TooManyRequests
from grid.kube.trouble import ClusterTrouble
from grid.models import PlatformIncident, PlatformReport
from grid.models.dataplane import LOCAL
from grid.platformhealth.facts import Light
from grid.platformhealth.keeper import record
from grid.platformhealth.outages import CANDIDATE, LEADER, Outage, note, present_failure
from grid.platformhealth.reading import PlatformLook
from grid.runtime import Runtime
from grid.runtime.controllerlease import AWAY_SECONDS, PERIOD
from grid.runtime.periodictasks import outages_task
from tests.shell.live import Clock
from tests.support.builders import MOMENT as NOW, NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.runtime import ask_for_lease, renew_lease

pytestmark = pytest.mark.django_db


def at(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def silence(since: float, sentence: str = "The cluster does not answer: Refused.") -> Outage:
    return Outage("api-server", sentence, NOW + at(since))


def incidents() -> list[tuple[str, float, float | None]]:
    def seconds(moment: datetime) -> float:
        return (moment - NOW).total_seconds()

    return [
        (row.part, seconds(row.at), None if row.ended_at is None else seconds(row.ended_at))
        for row in PlatformIncident.objects.order_by("at", "pk")
    ]


def test_short_outage_without_leader_has_beginning_end_and_kind() -> None:
    for seconds in (2, 7, 12):
        note(LOCAL, silence(0), NOW + at(seconds))
    assert incidents() == [("api-server", 0, 12)]
    for seconds in (19, 24):
        note(LOCAL, silence(14, "The cluster limits our requests: Wait 3 s."), NOW + at(seconds))
    assert incidents() == [("api-server", 0, 12), ("api-server", 14, 24)], "of another kind"
    note(LOCAL, silence(100), NOW + at(106))
    assert len(incidents()) == 3, "it is another outage"


def test_outage_that_a_leader_noted_is_not_noted_again() -> None:
    for minute in (0.0, 0.5):
        bad = Light("api-server", "API server", "problem", "It is slow.")
        record(LOCAL, PlatformLook((bad,), (), ()), (), NOW + at(60 * minute))
    note(LOCAL, silence(40), NOW + at(50))
    assert incidents() == [("api-server", 0, None)]


def test_known_absence_is_not_told_again_by_the_next_leader() -> None:
    well = PlatformLook((Light("api-server", "API server", "ok", "It answers."),), (), ())
    record(LOCAL, well, (), NOW)
    note(LOCAL, Outage("controller", "No controller is running: it is so.", NOW + at(1)), NOW + at(10))
    record(LOCAL, well, (), NOW + at(400))
    assert incidents() == [("controller", 1, 10)]


def test_controller_notes_why_it_cannot_work() -> None:
    election = Election(FakeCluster(), name=LEASE, namespace=NAMESPACE, identity="a")
    election.failure = "The API server has too many requests."
    noted = [NOW + at(seconds) for seconds in (0, 6, 12)]
    notes = note_failures(LOCAL, election, lambda: "A right is missing.", inline, clock=lambda: noted.pop(0))
    with pytest.raises(IndexError), patch("asyncio.sleep", inline_sleep):
        next(notes.__await__())
    assert incidents() == [(CANDIDATE, 0, 12)]
    failure = present_failure(LOCAL, NOW + at(13))
    assert failure is not None
    assert failure.sentence == "It cannot hold its Lease: The API server has too many requests."
    assert present_failure(LOCAL, NOW + at(60)) is None


async def inline(work: Callable[..., Any], *args: Any) -> Any:
    return work(*args)


async def inline_sleep(seconds: float) -> None:
    """Take no time."""


def done(work: Awaitable[object]) -> None:
    """Run what waits for nothing, in the test's own thread and transaction."""
    with pytest.raises(StopIteration):
        next(work.__await__())


def run_task(runtime: Runtime) -> None:
    done(outages_task(runtime, inline).run_once())


def test_web_process_notes_outages_while_nobody_leads(runtime: Runtime, cluster: FakeCluster, clock: Clock) -> None:
    PlatformReport.objects.create(data_plane=LOCAL, checked_at=NOW)
    renew_lease(runtime, cluster)
    runtime.nodes.mark_failed("Limited.", runtime.monotonic(), trouble=ClusterTrouble.THROTTLED, at=runtime.monotonic())
    clock.seconds += 10
    run_task(runtime)
    assert incidents() == [], "the leader notes it"
    cluster.fail_next(TooManyRequests("too many requests", retry_after=4), times=9)
    ask_for_lease(runtime)
    run_task(runtime)
    assert incidents() == [("api-server", 0, 10)]
    assert PlatformIncident.objects.get().sentence == "The cluster limits our requests: Limited."
    cluster.heal()
    runtime.nodes.mark_heard(runtime.monotonic())
    ask_for_lease(runtime)
    clock.seconds += AWAY_SECONDS + PERIOD
    run_task(runtime)
    assert [row[0] for row in incidents()] == ["api-server", "controller"]
    renew_lease(runtime, cluster, at=NOW + at(60))
    clock.seconds += 3
    run_task(runtime)
    assert len(incidents()) == 2


def test_controller_that_runs_says_what_it_lacks(
    admin: Client, runtime: Runtime, cluster: FakeCluster, clock: Clock
) -> None:
    renew_lease(runtime, cluster)
    lacks = "It cannot hold its Lease: Limited."
    note(LOCAL, Outage(CANDIDATE, lacks, runtime.clock() - at(9)), runtime.clock())
    run_task(runtime)
    assert runtime.controller_away() is None, "another one leads"
    clock.seconds += AWAY_SECONDS + PERIOD
    ask_for_lease(runtime)
    page = admin.get("/platform-health/").content.decode()
    assert "No controller is running" not in page
    assert "The controller cannot work" in page, "the banner"
    assert f"It runs and cannot work. {lacks}" in page, "the light"
    clock.seconds += 30
    run_task(runtime)
    assert "No controller is running" in admin.get("/platform-health/").content.decode()
    note(LOCAL, Outage(LEADER, "It does not see the cluster: No.", runtime.clock() - at(9)), runtime.clock())
    renew_lease(runtime, cluster, at=NOW + at(60))
    run_task(runtime)
    away = runtime.controller_away()
    assert away is not None and away.lacks == "It does not see the cluster: No."
