"""A cluster's page over HTTP and websocket: who may see and change what, its workers, its chart, its pair."""

import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from grid.kube.resources import AUTOSCALERS, EVENTS, NODES, PODS
from grid.metrics.usage import Measured, Usage
from grid.models import Execution, LifecycleEntry, State
from grid.runtime import Runtime
from tests.conftest import People
from tests.dashboard.clustering import (
    autoscaler,
    head_pod,
    make_cluster,
    make_samples,
    sample,
    waiting_worker,
    worker_pod,
)
from tests.dashboard.executing import make_execution, make_project, read_executions
from tests.dashboard.live import changed, connected, connection
from tests.support import builders
from tests.support.builders import MOMENT, NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

pytestmark = pytest.mark.django_db(transaction=True)
PATHS = ("", "samples/", "samples/?table=1", "resize/", "restart-head/", "log/")
EVERYBODY = ("owner", "teammate", "operator", "admin")
CHANGERS = ("owner", "operator", "admin")


@pytest.fixture
def running(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    """Three of five workers wanted, two of them ready; in a project with the teammate."""
    execution = make_cluster(people.owner, make_project(people.owner, people.teammate), started_at=MOMENT)
    id = execution.pk
    cluster.put(NODES, builders.node("node-a"))
    for pod in (
        head_pod(id),
        worker_pod(id, "aaaaa", cost=20, tasks=12, held=3 * 2**30),
        worker_pod(id, "bbbbb", cost=5, tasks=1, created=MOMENT + timedelta(minutes=1)),
        waiting_worker(id, "ccccc", created=MOMENT + timedelta(minutes=2)),
    ):
        cluster.put(PODS, pod)
    cluster.put(AUTOSCALERS, autoscaler(id, current=3, desired=3, cpu=97))
    make_samples(execution, *(sample(minute, ready=1, wanted=1 if minute < 3 else 3, cpu=60) for minute in range(5)))
    fill(runtime, cluster)
    read_executions(runtime)
    return execution


def client_of(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def text(user: User, execution: Execution, rest: str = "") -> str:
    answer = client_of(user).get(f"/executions/{execution.pk}/{rest}")
    assert answer.status_code == 200
    return str(answer.content.decode())


@pytest.mark.parametrize("path", PATHS)
def test_a_stranger_finds_nothing_and_nobody_goes_to_the_login(people: People, running: Execution, path: str) -> None:
    assert client_of(people.stranger).get(f"/executions/{running.pk}/{path}").status_code == 404
    assert client_of(people.stranger).post(f"/executions/{running.pk}/resize/").status_code == 404
    assert client_of(people.stranger).post(f"/executions/{running.pk}/restart-head/").status_code == 404
    answer = Client().get(f"/executions/{running.pk}/{path}")
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/login/")


@pytest.mark.parametrize("path", ["", "samples/", "samples/?table=1", "log/", "?tab=log", "?tab=events"])
@pytest.mark.parametrize("who", EVERYBODY)
def test_owner_teammate_operator_and_admin_may_look(people: People, running: Execution, who: str, path: str) -> None:
    text(getattr(people, who), running, path)


@pytest.mark.parametrize("path", ["resize/", "restart-head/"])
@pytest.mark.parametrize("who", EVERYBODY)
def test_who_may_stop_it_may_change_it(people: People, running: Execution, who: str, path: str) -> None:
    client = client_of(getattr(people, who))
    expected = 200 if who in CHANGERS else 403
    assert client.get(f"/executions/{running.pk}/{path}").status_code == expected
    page = text(getattr(people, who), running)
    assert (f'href="/executions/{running.pk}/{path}"' in page) is (who in CHANGERS)
    if who not in CHANGERS:
        assert client.post(f"/executions/{running.pk}/{path}", {"minimum": 1, "maximum": 1}).status_code == 403


def test_the_page_says_how_many_workers_work_and_what_the_others_wait_for(people: People, running: Execution) -> None:
    page = text(people.owner, running)
    assert "2 of 3 workers; 1 waits for a node." in page
    assert 'aria-label="worker aaaaa: ready, on node-a, 12 tasks, holds 3 GiB"' in page
    assert "97 %" in page
    assert "It can measure the workers&#x27; load." in page
