"""A cluster's page over HTTP and websocket: who may see and change what, its workers, its chart, its pair."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest

from dashboard.executions.records import read_record
from dashboard.shell.viewmodels.states import STARTED
from grid.core.errors import ClusterUnavailable
from grid.kube.resources import AUTOSCALERS, NODES, PODS
from grid.metrics.usage import Measured, Usage
from grid.models import Execution, LifecycleEntry, State
from grid.runtime import Runtime
from tests.clusters.clustering import (
    autoscaler,
    head_pod,
    make_cluster,
    make_interval,
    make_samples,
    minutes,
    sample,
    waiting_worker,
    worker_pod,
)
from tests.conftest import People, client_of, execution_page as text
from tests.executions.executing import make_execution, make_project, read_executions
from tests.shell.live import changed, connected
from tests.support import builders
from tests.support.builders import MOMENT, NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.mark.parametrize(
    ("who", "changes", "opens"),
    [("owner", True, True), ("teammate", False, True), ("operator", True, False), ("admin", True, False)],
)
def test_buttons_are_those_that_the_viewer_may_use(
    people: People, running: Execution, who: str, changes: bool, opens: bool
) -> None:
    page = text(getattr(people, who), running)
    for path in ("resize/", "restart-head/"):
        assert (f'href="/executions/{running.pk}/{path}"' in page) is changes
    assert ('form="open-form"' in page) is opens


def test_page_counts_working_workers_and_leads_to_their_pods(
    people: People, running: Execution, runtime: Runtime
) -> None:
    pod = f"{NAMESPACE}/cluster-{running.pk}-worker-6468bd54f7-bbbbb"
    runtime.usage.replace(Measured({}, {pod: Usage(1660, 2 * 2**30)}))
    page = text(people.owner, running)
    assert "2 of 3 workers; 1 waits for a node." in page
    label = "worker bbbbb: ready, on node-a, CPU 83 % of its request, memory 25 %, 1 task"
    assert f'href="/pods/{pod}/" title="{label}" aria-label="{label}"' in page
    assert "97 %" in page
    assert "It can measure the workers&#x27; load." in page


def test_chart_gets_samples_targets_and_events_with_causes(people: People, running: Execution) -> None:
    LifecycleEntry.objects.create(
        execution=running, at=MOMENT + timedelta(minutes=2.9), source="kubernetes", event_uid="e1",
        reason="SuccessfulRescale",
        message="New size: 3; reason: cpu resource utilization (percentage of request) above target",
    )  # fmt: skip
    values = client_of(people.teammate).get(f"/executions/{running.pk}/samples/").json()
    lines = {name: line["values"] for name, line in values["charts"]["workers"]["lines"].items()}
    assert list(lines) == ["ready", "wanted", "cpu", "memory", "cpu-target", "memory-target"]
    assert lines["wanted"] == [1, 1, 1, 3, 3]
    assert lines["cpu"] == [60] * 5
    assert lines["cpu-target"] == lines["memory-target"] == [80] * 5
    (event,) = values["events"]
    assert event["grows"]
    assert event["words"] == "Grows from 1 to 3 workers: CPU use is above its target."
    assert event["words"] in text(people.teammate, running, "samples/?table=1")
    assert event["words"] in text(people.teammate, running), "the table is there without a script"


def test_changing_the_workers_is_written_and_said(people: People, running: Execution, runtime: Runtime) -> None:
    client = client_of(people.owner)
    answer = client.post(f"/executions/{running.pk}/resize/", {"minimum": 2, "maximum": 4})
    assert answer.status_code == 302
    running.refresh_from_db()
    assert (running.workers_minimum, running.workers_maximum) == (2, 4)
    read_executions(runtime)
    page = client.get(answer["Location"]).content.decode()
    assert "now has 2 to 4 workers" in page
    assert "alice changed it from 1 to 5 workers to 2 to 4 workers." in page


@pytest.mark.parametrize(
    ("minimum", "maximum", "field", "sentence"),
    [
        ("3", "2", "maximum", "The maximum cannot be less than the minimum of 3."),
        ("1", "9000", "maximum", "workers"),
        ("many", "3", "minimum", "whole number"),
    ],
)
def test_wrong_number_of_workers_is_refused_at_its_field(
    people: People, running: Execution, minimum: str, maximum: str, field: str, sentence: str
) -> None:
    numbers = {"minimum": minimum, "maximum": maximum}
    answer = client_of(people.owner).post(f"/executions/{running.pk}/resize/", numbers)
    assert answer.status_code == 422
    match = re.search(rf'id="id_{field}_error">(.*?)</div>', answer.content.decode(), re.DOTALL)
    assert match
    assert sentence in match[1]
    running.refresh_from_db()
    assert running.workers_maximum == 5


def test_head_restart_says_the_loss_and_asks_first(people: People, running: Execution) -> None:
    client = client_of(people.owner)
    page = client.get(f"/executions/{running.pk}/restart-head/").content.decode()
    assert "The scheduler forgets every task" in page
    running.refresh_from_db()
    assert running.restart_requested_at is None
    assert client.post(f"/executions/{running.pk}/restart-head/").status_code == 302
    assert Execution.objects.get(pk=running.pk).restart_requested_at is not None
    Execution.objects.filter(pk=running.pk).update(state=State.DEPLOYING)
    answer = client.post(f"/executions/{running.pk}/restart-head/")
    assert (answer.status_code, "is not running yet" in answer.text) == (422, True)


def test_other_kinds_have_no_samples_and_no_workers(people: People, running: Execution) -> None:
    workspace = make_execution(people.owner, running.project)
    for path in ("samples/", "resize/", "restart-head/"):
        assert client_of(people.owner).get(f"/executions/{workspace.pk}/{path}").status_code == 404


def test_logs_of_all_pods_are_merged_by_time(people: People, running: Execution, cluster: FakeCluster) -> None:
    id = running.pk
    logs = {
        f"cluster-{id}-head-7d9f-abcde": ["2026-03-04T09:00:01Z scheduler up", "2026-03-04T09:00:05.5Z worker came"],
        f"cluster-{id}-worker-6468bd54f7-aaaaa": ["2026-03-04T09:00:05.25Z hello <b>", "  more of it"],
    }
    for pod, lines in logs.items():
        cluster.set_log(pod, lines, namespace=NAMESPACE, container="run")
    page = text(people.owner, running, "log/")
    assert re.findall(r"<b class=\"ansi-\d+\">(\w+)</b>\s*<code>(.*?)</code>", page) == [
        ("head", "scheduler up"),
        ("aaaaa", "hello &lt;b&gt;"),
        ("aaaaa", "  more of it"),
        ("head", "worker came"),
    ]
    alone = text(people.owner, running, f"log/?pod=cluster-{id}-worker-6468bd54f7-aaaaa")
    assert "hello" in alone
    assert "scheduler up" not in alone
    assert '<option value="all">All pods</option>' in alone


def test_unfetchable_log_does_not_hide_the_others(people: People, running: Execution, cluster: FakeCluster) -> None:
    cluster.set_log(f"cluster-{running.pk}-worker-6468bd54f7-aaaaa", ["2026-03-04T09:00:05Z here"], namespace=NAMESPACE,
                    container="run")  # fmt: skip
    cluster.fail_next(ClusterUnavailable("refused"), verb="logs")
    page = text(people.owner, running, "log/")
    assert "The logs of 1 pod could not be fetched: The cluster does not answer." in page
    assert "here" in page


def test_a_pair_is_linked_both_ways(people: People, running: Execution, runtime: Runtime) -> None:
    workspace = make_execution(people.owner, running.project, title="Churn notebook")
    Execution.objects.filter(pk=running.pk).update(attached_to=workspace.pk)
    read_executions(runtime)
    page = text(people.teammate, workspace)
    assert f'href="/executions/{running.pk}/"' in page
    assert "2 of 3 workers; 1 waits for a node." in page
    page = text(people.teammate, running)
    assert f'href="/executions/{workspace.pk}/"' in page
    assert "Churn notebook" in page


def test_cluster_with_workers_up_is_not_shown_as_waiting(people: People, running: Execution, runtime: Runtime) -> None:
    workspace = make_execution(people.owner, running.project, title="Churn notebook")
    Execution.objects.filter(pk=running.pk).update(attached_to=workspace.pk, state=State.PREPARING)
    read_executions(runtime)
    for execution in (running, workspace):
        page = text(people.owner, execution)
        assert STARTED in page
        assert "2 of 3 workers" not in page


async def test_workers_come_and_go_on_the_page_live(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    async with connected(f"/live/execution/?id={running.pk}", people.teammate) as socket:
        await socket.message()
        cluster.put(PODS, worker_pod(running.pk, "ccccc", created=MOMENT + timedelta(minutes=2)))
        fill(runtime, cluster)
        message = await socket.message_about("3 of 3 workers.")
        targets = {target for target, _ in changed(message)}
        assert f"worker-cluster-{running.pk}-worker-6468bd54f7-ccccc" in targets
        cluster.put(AUTOSCALERS, autoscaler(running.pk, current=3, desired=5, cpu=140))
        fill(runtime, cluster)
        message = await socket.message_about("It grows from 3 to 5 workers.")
        assert "3 of 5 workers; 2 are being created." in message


def test_an_ended_cluster_keeps_its_chart_and_its_cost(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    for pod in cluster.objects(PODS):
        cluster.remove(PODS, pod["metadata"]["name"], namespace=NAMESPACE)
    ended = MOMENT + timedelta(hours=2)
    Execution.objects.filter(pk=running.pk).update(state=State.STOPPED, ended_at=ended, started_at=MOMENT)
    make_interval(running, "head", price="0.10", began=0, ended=120)
    make_interval(running, "worker", price="0.40", began=0, ended=120)
    fill(runtime, cluster)
    read_executions(runtime)
    page = text(people.owner, running)
    assert "There are no workers: the cluster has ended." in page
    assert "data-final" in page
    assert "Change workers" not in page
    assert "$1.00" in page, "two hours of a head at 0.10 and of one worker at 0.40"


def test_cluster_pods_are_named_by_role_everywhere(people: People, running: Execution, runtime: Runtime) -> None:
    operator, pod = client_of(people.operator), f"cluster-{running.pk}-worker-6468bd54f7-aaaaa"
    Execution.objects.filter(pk=running.pk).update(title="Features")
    read_executions(runtime)
    page = operator.get("/nodes/node-a/").content.decode()
    assert "Dask worker of Features" in page
    assert "Dask head of Features" in page
    assert "Dask worker of Features" in operator.get(f"/pods/{NAMESPACE}/{pod}/").content.decode()
    assert "Dask cluster on Small" in client_of(people.owner).get("/").content.decode()
    assert f'title="{pod}">worker aaaaa</a>' in client_of(people.teammate).get("/executions/").content.decode()


def test_page_without_pods_says_what_the_cluster_waits_for(people: People, runtime: Runtime) -> None:
    queued = make_cluster(people.owner, make_project(people.owner), state=State.QUEUED)
    read_executions(runtime)
    page = text(people.owner, queued)
    assert "Waiting for a free slot." in page
    assert "There are no workers yet." in page
    assert "Nothing measured yet" in page
    Execution.objects.filter(pk=queued.pk).update(state=State.DEPLOYING)
    read_executions(runtime)
    assert "The head is being created; workers wait for it." in text(people.owner, queued)


@pytest.mark.django_db
def test_cost_sums_the_times_of_pods_on_nodes(people: People) -> None:
    execution = make_cluster(people.owner, make_project(people.owner), started_at=MOMENT)
    make_interval(execution, "head", price="0.10", began=0)
    make_interval(execution, "first", price="0.40", began=0, ended=60)
    make_interval(execution, "second", price="0.40", began=30, ended=60)
    record = read_record(execution.pk)
    assert record is not None
    assert record.spending.until(minutes(120)) == Decimal("0.20") + Decimal("0.60")
