"""What nodes, pods and executions used over time: who may see it, what is shown, and what is said when nothing is known."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.template.loader import render_to_string

from dashboard.nodes.pages import use_history
from dashboard.nodes.pages.use_history import KNOWN_AT_MOST, Subject, UseHistory
from dashboard.nodes.viewmodels.use_history import SILENT, UNCONNECTED, UNKNOWN, use_section, use_values
from dashboard.usage.viewmodels.failure_moments import SHOWN_AT_MOST, FailureMoment
from grid.core.errors import ClusterUnavailable
from grid.core.labels import KEYS
from grid.kube.resources import PODS
from grid.models import Execution
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.test_execution import running
from tests.nodes.test_infrastructure import POD_PATH, get, scene
from tests.shell.charting import minute_of
from tests.support import builders
from tests.support.builders import MOMENT, NAMESPACE, container_status, stamp
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden
from tests.support.runtime import fill

__all__ = ["running", "scene"]
NOW = minute_of(MOMENT) + 60  # by the scene's clock
USED = {"cpu_used": 0.5, "cpu_limit": 2.0, "memory_used": 2**30, "read": 2**20}
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": stamp(MOMENT + timedelta(minutes=50))}}


class FakePrometheus:
    """Answers `known`, or raises it."""

    def __init__(self, known: dict[int, dict[str, float]] | Exception) -> None:
        self.known = known
        self.asked: list[tuple[str, int, int, int]] = []

    def ask(self, *asked: Any) -> dict[int, dict[str, float]]:
        self.asked.append(asked)
        if isinstance(self.known, Exception):
            raise self.known
        return self.known

    read = ask  # as the history of pools calls it


def connected(runtime: Runtime, known: dict[int, dict[str, float]] | Exception) -> FakePrometheus:
    prometheus = FakePrometheus(known)
    use_history._use_histories[:] = [UseHistory(runtime, prometheus)]
    return prometheus


SEEN_BY = {
    "/nodes/worker-1/use/": {"operator", "admin"},
    f"{POD_PATH}use/": {"owner", "teammate", "operator", "admin"},
    f"/pods/{NAMESPACE}/nobodys/use/": {"operator", "admin"},
    "/infrastructure/use/?pool=default": {"operator", "admin"},
}


def test_stranger_triggers_no_metrics_query(people: People, scene: FakeCluster, runtime: Runtime) -> None:
    prometheus = connected(runtime, {NOW: USED})
    for path in (*SEEN_BY, POD_PATH, "/nodes/worker-1/"):
        assert get(people, "stranger", path).status_code == 403
    assert prometheus.asked == []


def test_page_has_charts_only_for_known_data(people: People, scene: FakeCluster, runtime: Runtime) -> None:
    connected(runtime, {NOW: USED})
    for path in (POD_PATH, "/nodes/worker-1/"):
        text = get(people, "operator", f"{path}?range=6h").content.decode()
        assert "Use in the last 6 hours" in text
        assert text.count("data-chart=") == 3, "CPU, memory and disk"
        assert "0.5 used, 2 limit" in text
    values = get(people, "owner", f"{POD_PATH}use/?range=1h").json()
    assert (values["times"], values["charts"]["disk"]["lines"]["read"]["values"]) == ([NOW * 60], [1.0])
    assert list(values["charts"]["cpu"]["lines"]) == ["cpu_used", "cpu_limit"]


def test_pool_charts_supplement_what_its_samples_lack(people: People, scene: FakeCluster, runtime: Runtime) -> None:
    prometheus = connected(runtime, {NOW: {"read": 2**20, "throttled": 12.5}})
    path = "/infrastructure/?pool=default&range=6h"
    text = get(people, "operator", path).content.decode()
    assert "nodes also used in the last 6 hours" in text
    assert text.count('data-chart="/infrastructure/use/?pool=default&amp;range=6h"') == 2
    assert "are of the node with the most." in text
    assert "12.5 waiting" in text and "1 read" in text
    assert "kube_node_labels{label_" in prometheus.asked[0][0] and '="default"' in prometheus.asked[0][0]
    assert "nodes also used" not in get(people, "operator", "/infrastructure/?range=6h").content.decode(), (
        "of all pools"
    )
    nothings: tuple[dict[int, dict[str, float]] | Exception, ...] = ({}, ClusterUnavailable("no"))
    for nothing in nothings:
        connected(runtime, nothing)
        assert "nodes also used" not in get(people, "operator", path).content.decode()


def test_execution_has_its_pods_charts(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    status = container_status(ready=True, restarts=1, lastState=KILLED)
    labels = {KEYS.execution: running.pk}
    cluster.put(PODS, builders.pod(running.object_name, node="node-a", labels=labels, statuses=[status]))
    fill(runtime, cluster)
    prometheus = connected(runtime, {NOW: USED})
    path = f"/executions/{running.pk}/"
    text = get(people, "teammate", f"{path}?tab=events&range=6h").content.decode()
    assert "Use in the last 6 hours" in text
    assert "?tab=events&amp;range=1h#use" in text
    assert f'data-chart="{path}use/?range=6h"' in text
    log = f"{path}?tab=log&amp;pod={running.object_name}&amp;container=run&amp;previous=1#log"
    assert f'<a href="{log}">run of {running.object_name} ended: OOMKilled, exit code 137</a>' in text
    assert f'namespace="{NAMESPACE}",pod=~"' in prometheus.asked[0][0]
    assert get(people, "teammate", f"{path}use/").json()["times"] == [NOW * 60]
    assert get(people, "stranger", f"{path}use/").status_code == 404
    for number in range(SHOWN_AT_MOST):
        cluster.put(PODS, builders.pod(f"worker-{number}", node="node-a", labels=labels, statuses=[status]))
    fill(runtime, cluster)
    text = get(people, "owner", f"{path}?tab=events").content.decode()
    assert text.count(" ended: OOMKilled, exit code 137</a>") == SHOWN_AT_MOST, "however many workers it has"


def test_execution_without_values_says_so_to_operators_alone(
    people: People, running: Execution, runtime: Runtime
) -> None:
    connected(runtime, {})
    path = f"/executions/{running.pk}/"
    for person, is_told in (("owner", False), ("teammate", False), ("operator", True)):
        text = get(people, person, path).content.decode()
        assert ("No charts of its use" in text) is is_told
        assert "data-chart=" not in text


@pytest.mark.parametrize(
    ("known", "problem"), [({}, UNKNOWN), (ClusterUnavailable("no"), SILENT)], ids=["nothing", "an outage"]
)
def test_missing_values_are_explained(
    people: People, scene: FakeCluster, runtime: Runtime, known: Any, problem: str
) -> None:
    connected(runtime, known)
    answer = get(people, "owner", POD_PATH)
    assert (answer.status_code, answer.content.decode().count("data-chart=")) == (200, 2)
    assert problem in answer.content.decode().replace("&#x27;", "'")


def test_without_prometheus_the_page_says_what_to_set_up(people: People, scene: FakeCluster, runtime: Runtime) -> None:
    answer = get(people, "owner", POD_PATH).content.decode()
    assert UNCONNECTED in answer
    assert "data-chart=" not in answer
    assert get(people, "owner", f"{POD_PATH}use/").json()["times"] == []


def test_slow_prometheus_delays_no_page_and_cache_is_bounded(runtime: Runtime) -> None:
    answer = threading.Event()

    class SlowPrometheus(FakePrometheus):
        def ask(self, *asked: Any) -> dict[int, dict[str, float]]:
            answer.wait(20)
            return super().ask(*asked)

    slow, quick = SlowPrometheus({NOW: USED}), FakePrometheus({NOW: USED})

    async def read() -> None:
        history = UseHistory(runtime, slow)
        assert (await history.read(Subject("n1"), "1h")).problem == SILENT
        answer.set()
        assert (await history.read(Subject("n1"), "1h")).known == {NOW: USED}
        many = UseHistory(runtime, quick)
        for number in range(KNOWN_AT_MOST + 5):
            await many.read(Subject(f"n{number}"), "1h")
        assert len(many._known._reads) == KNOWN_AT_MOST

    async_to_sync(read)()
    assert len(slow.asked) == 1


def test_ended_execution_is_queried_up_to_its_end(runtime: Runtime) -> None:
    prometheus = FakePrometheus({})
    subject = Subject("ex-1", NAMESPACE, is_execution=True, ended=1000)
    async_to_sync(UseHistory(runtime, prometheus).read)(subject, "1h")
    [(query, first, last, step)] = prometheus.asked
    assert (first, last, step) == (940, 1000, 1)
    assert r'pod=~"ex\\-1(-.*)?"' in query


def test_a_gap_is_a_gap() -> None:
    values = use_values({10: USED, 11: USED, 20: {"cpu_used": -1.0}}, "1h", 1, (), until=30)
    assert values["times"] == [600, 660, 720, 1200]
    assert values["charts"]["cpu"]["lines"]["cpu_used"]["values"] == [0.5, 0.5, None, 0.0]


def test_failure_in_current_minute_is_marked_within_the_chart() -> None:
    moments = [FailureMoment(datetime.fromtimestamp(at, UTC), "It ended.") for at in (1000, 1859, 1861)]
    values = use_values({29: USED}, "1h", 1, moments, until=30)
    assert [event["at"] for event in values["events"]] == [1000, 1859]
    assert values["range"] == [-1800, 1860]


def test_the_section_looks_as_stored() -> None:
    at = MOMENT + timedelta(minutes=50)
    failures = [
        FailureMoment(at, "run of <b> ended: OOMKilled, exit code 137", "/x/?tab=log&previous=1"),
        FailureMoment(at, "It ended with an error."),
    ]
    known = {NOW: USED, NOW - 1: {"cpu_used": 0.25}}
    section = use_section(known, "1h", failures, url="/x/use/", problem="", query={"tab": "events"})
    assert_golden("use-history", render_to_string("nodes/fragments/use_history.html", {"use": section}))
