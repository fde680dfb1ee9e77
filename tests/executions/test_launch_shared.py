"""What many who launch at once have in common is read and counted once: the history that waits are estimated from, and the nodes."""

import asyncio
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.executions.launch_facts import POOLS_SECONDS, SharedPools
from dashboard.starts.expected_waits import SECONDS
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER
from grid.kube.resources import NODES
from grid.models import Execution, HardwareTier, Project, State
from grid.models.dataplane import LOCAL
from grid.queue.wait_estimate.reading import HISTORY
from grid.runtime import Runtime, new_runtime
from tests.conftest import People
from tests.executions.executing import FORM, configure, make_execution, page, put, sent
from tests.executions.test_launch import counts_all_slots
from tests.executions.test_launch_fit import asked, ran_for_25_minutes
from tests.shell.live import Clock
from tests.support.builders import node
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill
from tests.support.virtual import virtual_time


@pytest.mark.django_db
def test_history_is_read_once_in_five_seconds_for_all_launches(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime, clock: Clock
) -> None:
    """What the person has launched or stopped meanwhile counts at once."""
    put(runtime, cluster, NODES, node("node-a", cpu="4", memory="16Gi"))
    configure(MAXIMUM_EXECUTIONS_PER_USER.key, 1)
    ran_for_25_minutes(people, offered)
    now = timezone.now()
    running = make_execution(people.owner, offered, slots_reserved_at=now, started_at=now)
    with CaptureQueriesContext(connection) as queries:
        assert "about 25 min" in asked(people, token="t2")
        sent(people.owner, FORM | {"token": "t3"})
        assert "about 50 min" in asked(people, token="t2")
        Execution.objects.filter(pk=running.pk).update(slots_freed_at=now, settled_at=now, state=State.STOPPED)
        Execution.objects.filter(state=State.QUEUED).update(slots_reserved_at=now, state=State.DEPLOYING)
        assert "about 25 min" in asked(people, token="t2")
        clock.seconds += SECONDS
        asked(people, token="t2")
    assert sum(f"LIMIT {HISTORY}" in query["sql"] for query in queries) == 2


@pytest.mark.django_db
def test_slots_are_counted_once_in_a_second_for_all_forms(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime, clock: Clock
) -> None:
    """What the person holds is as it is now."""
    HardwareTier.objects.update(maximum_simultaneous=9)
    put(runtime, cluster, NODES, node("node-a", cpu="64", memory="64Gi"))
    now, holds = timezone.now(), "{} of at most 9 executions on this tier now."
    with CaptureQueriesContext(connection) as queries:
        for own in range(3):
            assert holds.format(own) in page(people.owner)
            make_execution(people.owner, offered, slots_reserved_at=now, started_at=now)
            make_execution(people.teammate, offered, slots_reserved_at=now, started_at=now)
        clock.seconds += POOLS_SECONDS
        assert holds.format(6) in page(people.owner)
    assert sum(counts_all_slots(query["sql"]) for query in queries) == 2


@virtual_time
async def test_nodes_are_counted_once_in_a_second_for_all_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, counted = FakeCluster(), 0
    cluster.put(NODES, node("node-a", cpu="4", memory="16Gi"))
    runtime = new_runtime({LOCAL: cluster})
    fill(runtime, cluster)
    by_pool = runtime.groups.by_pool

    def count() -> Any:
        nonlocal counted
        counted += 1
        return by_pool()

    monkeypatch.setattr(runtime.groups, "by_pool", count)
    pools = SharedPools()
    answers = await asyncio.gather(*(pools.states(runtime) for _ in range(20)))
    assert counted == 1
    assert all(answer is not None and answer["default"].size == 1 for answer in answers)
    await asyncio.sleep(POOLS_SECONDS + 0.1)
    await pools.states(runtime)
    assert counted == 2
