"""The snapshot of active executions: what is in it, when it is read, and what that costs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grid.kube.hub import Hub
from grid.models import Environment, Execution, HardwareTier, Project, State
from grid.runtime.executionrows import read_rows, read_versions
from grid.runtime.executions import ActiveExecutions
from tests.conftest import People
from tests.support.frozen import on_tier
from tests.support.virtual import cancelled

NOW = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)


def launch(people: People, **fields: object) -> Execution:
    project = Project.objects.filter(id="fraud").first()
    if project is None:
        project = Project.objects.start(id="fraud", name="Fraud", owner=people.owner)
        project.members.add(people.teammate, through_defaults={"role": "contributor"})
    small = {"name": "Small", "node_pool": "default", "cores": "1", "memory": "4Gi"}
    tier, _ = HardwareTier.objects.get_or_create(id="small", defaults=small)
    environment = Environment.objects.first() or Environment.objects.create(id="py", name="Python", image="python:3.11")
    values = {"kind": "workspace", "requested_at": NOW, **on_tier(tier), **fields}
    return Execution.objects.create(owner=people.owner, project=project, environment=environment, **values)


def test_active_and_lately_ended_executions_are_shown(people: People) -> None:
    running = launch(people, state=State.RUNNING)
    ended = launch(people, state=State.FAILED, ended_at=NOW - timedelta(minutes=59), settled_at=NOW)
    long_ago = NOW - timedelta(minutes=61)
    launch(people, state=State.FAILED, ended_at=long_ago, settled_at=long_ago)
    unsettled = launch(people, state=State.ERROR, ended_at=long_ago)
    assert {row.id for row in read_rows(NOW)} == {running.pk, ended.pk, unsettled.pk}


def test_row_has_list_columns_and_its_viewers(people: People) -> None:
    execution = launch(people, state=State.RUNNING, title="Model", slots=3)
    (row,) = read_rows(NOW)
    assert (row.title, row.owner_username, row.project_name, row.tier_name) == ("Model", "alice", "Fraud", "Small")
    assert row.project_roles == {people.owner.pk: "owner", people.teammate.pk: "contributor"}
    assert row.object_name == execution.object_name


def test_reading_costs_few_queries_however_many_there_are(people: People) -> None:
    for _ in range(20):
        launch(people)
    with CaptureQueriesContext(connection) as rows:
        read_rows(NOW)
    with CaptureQueriesContext(connection) as mark:
        read_versions(NOW)
    assert (len(rows), len(mark)) == (3, 3)
    read = " ".join(query["sql"] for query in rows)
    assert not any(large in read for large in ("executionlog", '"spec"')), "no list shows what is large"
    assert '"node_pool"' not in read, "of a tier only its name is shown"


def test_the_mark_differs_after_every_kind_of_write(people: People) -> None:
    first = launch(people)
    marks = [read_versions(NOW)]
    first.save(update_fields=["updated_at"])
    marks.append(read_versions(NOW))
    Execution.objects.filter(pk=first.pk).update(revision=7)
    marks.append(read_versions(NOW))
    second = launch(people)
    marks.append(read_versions(NOW))
    second.delete()
    marks.append(read_versions(NOW))
    members = first.project.memberships
    for write in (
        lambda: members.create(user=people.stranger, role="viewer"),
        lambda: members.filter(user=people.stranger).update(role="contributor"),
        lambda: members.filter(user=people.stranger).delete(),
        lambda: first.project.assign(owner=people.teammate, contributors=[people.owner], viewers=[]),
    ):
        write()
        marks.append(read_versions(NOW))
    assert all(before != after for before, after in pairwise(marks))
    assert read_versions(NOW) == marks[-1]


@asynccontextmanager
async def running(executions: ActiveExecutions) -> AsyncIterator[None]:
    task = asyncio.create_task(executions.run())
    try:
        async with asyncio.timeout(20):
            yield
    finally:
        await cancelled(task)


@pytest.mark.django_db(transaction=True)
async def test_a_hint_is_followed_at_once_and_published(people: People) -> None:
    hub = Hub()
    executions = ActiveExecutions(hub, clock=lambda: NOW)
    async with running(executions):
        with hub.subscribe({"executions"}) as subscription:
            execution = await sync_to_async(launch)(people)
            executions.hint()
            await subscription.changed()
            assert [row.state for row in executions.values()] == [State.QUEUED]
            await sync_to_async(Execution.objects.filter(pk=execution.pk).update)(state=State.RUNNING, revision=1)
            await asyncio.to_thread(executions.hint)
            await subscription.changed()
            assert [row.state for row in executions.values()] == [State.RUNNING]
