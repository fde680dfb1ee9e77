"""The Executions page's rows: which there are, in what order, on which page, and what the URL says."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qsl

import pytest
from django.http import QueryDict
from hypothesis import given, strategies as st

from dashboard.executions.viewmodels.execution_groups import ExecutionLine, state_of
from dashboard.executions.viewmodels.executions import choices
from dashboard.executions.viewmodels.executions_view import Choices, ExecutionsView, bounds, filter_chips
from dashboard.shell.viewmodels.listing import Paging
from dashboard.shell.viewmodels.states import STARTED
from grid.core.labels import APP_COMPONENT, KEYS
from grid.diagnosis.pods import Diagnosis
from grid.kube.objects import Pod, RawObject
from grid.metrics.usage import Usage
from grid.runtime.executionrows import ExecutionRow
from tests.executions.executing import ROW, pod_of
from tests.executions.execution_listing import Source, execution_rows
from tests.support.builders import MOMENT, NAMESPACE, container_status, decode
from tests.support.golden import assert_golden

NOW = MOMENT + timedelta(minutes=30)
FINE = Diagnosis("running", "It runs.", "ok", "")
BAD = Diagnosis("image", "The image cannot be fetched.", "problem", "admin", "Ask your admin.")


def source(
    *rows: ExecutionRow,
    pods: Sequence[RawObject] = (),
    orphans: Sequence[RawObject] = (),
    explained: dict[str, Diagnosis] | None = None,
    used: dict[str, Usage] | None = None,
    sees_all: bool = False,
) -> Source:
    decoded = [decode(pod, Pod) for pod in pods]
    return Source(
        rows=rows,
        pods_of=lambda id: [pod for pod in decoded if pod.metadata.labels[KEYS.execution] == id],
        orphans=[decode(pod, Pod) for pod in orphans],
        usage_of=(used or {}).get,
        explain=lambda pod: (explained or {}).get(pod.metadata.name, FINE),
        keys=KEYS,
        sees_all=sees_all,
    )


def lines(source: Source, query: str = "") -> list[ExecutionLine]:
    rows = execution_rows(source, parsed(query), NOW)
    return [row.context for row in rows if isinstance(row.context, ExecutionLine)]


def ids(source: Source, query: str) -> list[str]:
    return [line.execution_id for line in lines(source, query)]


def parsed(query: str) -> ExecutionsView:
    return ExecutionsView.parse(dict(part.split("=", 1) for part in query.split("&")) if query else {})


def paging(source: Source, query: str = "") -> Paging:
    contexts = [fragment.context for fragment in execution_rows(source, parsed(query), NOW)]
    return next(context for context in contexts if isinstance(context, Paging))


def named(*ids: str) -> list[ExecutionRow]:
    return [replace(ROW, id=id, object_name=f"workspace-{id}", title=id) for id in ids]


def test_running_pod_shows_its_node_and_requests() -> None:
    pod = pod_of("e1", node="node-a", phase="Running", ready=True, requests={"cpu": "1500m", "memory": "2Gi"})
    (line,) = lines(source(ROW, pods=[pod], sees_all=True))
    assert (line.status.word, line.status.note) == ("Running", "")
    assert (line.node, line.node_is_link, line.cpu, line.memory, line.gpus) == ("node-a", True, "1.5", "2 GiB", "")
    assert not lines(source(ROW, pods=[pod]))[0].node_is_link, "a scientist may not open it"


def test_an_ended_execution_stays_while_its_pod_does() -> None:
    row = replace(ROW, state="stopped")
    assert lines(source(row)) == []
    assert [line.status.word for line in lines(source(row, pods=[pod_of("e1", node="a", phase="Running")]))] == [
        "Stopped"
    ]
    assert lines(source(row, pods=[pod_of("e1", node="a", phase="Succeeded")])) == []


def test_pod_of_an_unknown_execution_shows_its_labels() -> None:
    orphan = pod_of("gone", name="lost", labels={KEYS.user: "alice", KEYS.workload_type: "Workspace"}, node="a")
    (line,) = lines(source(orphans=[orphan]))
    assert (line.name, line.user, line.kind, line.status.word) == ("lost", "alice", "Workspace", "Preparing")


WORDS = ["kind=job", "kind=job&user=bob", "kind=nonsense", "tier=gpu", "user=bob", "project=vision", "node=node-x"]
TEXTS = ["status=queued", "status=trouble", "text=cannot be FETCHED", "text=vision"]
AMOUNTS = ["restarts=2", "cpu=2", "memory=4Gi", "gpus=1", "age=1 h"]
SORTS = ["", "-age", "name", "-name", "user", "status", "tier"]


def test_columns_filter_and_sort_as_stored() -> None:
    first, second, third = named("a", "b", "c")
    a = replace(first, state="queued", requested_at=NOW - timedelta(hours=2))
    b = replace(second, kind="job", tier_id="gpu", tier_name="GPU")
    c = replace(third, owner_username="bob", project_id="vision", project_name="Vision")
    requests = {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}
    restarted = [container_status(ready=True, restarts=2)]
    pods = [
        pod_of("b", node="node-x1", phase="Running", requests=requests, statuses=restarted),
        pod_of("c", node="node-y"),
    ]
    whole = source(a, b, c, pods=pods, explained={"workspace-c": BAD})
    shown = {query: "".join(sorted(ids(whole, query))) for query in (*WORDS, *TEXTS, *AMOUNTS)}
    a = replace(first, owner_username="m", state="running", tier_name="z")
    b = replace(second, owner_username="a", state="queued", tier_name="Y", requested_at=MOMENT + timedelta(minutes=1))
    c = replace(third, owner_username="z", state="preparing", tier_name="x", requested_at=MOMENT + timedelta(minutes=2))
    shown |= {f"sort={sort}": "".join(ids(source(a, b, c), f"sort={sort}")) for sort in SORTS}
    assert_golden("execution-filters", "\n".join(f"{query}: {rows}" for query, rows in shown.items()), ending="txt")


def test_rows_come_in_pages_that_keep_the_filter() -> None:
    many = source(*named(*(f"e{number:03}" for number in range(450))))
    assert len(lines(many)) == 200
    assert paging(many).sentence == "1 to 200 of 450 executions"
    assert paging(many, "user=alice").next == "?user=alice&page=2"
    last = paging(many, "page=3")
    assert (last.sentence, last.previous, last.next) == ("401 to 450 of 450 executions", "?page=2", "")
    assert len(lines(many, "page=99")) == 50


def test_only_rows_that_are_shown_are_explained() -> None:
    asked: list[str] = []

    def explain(pod: Pod) -> Diagnosis:
        asked.append(pod.metadata.name)
        return FINE

    rows = named(*(f"e{number:03}" for number in range(450)))
    many = source(*rows, pods=[pod_of(row.id, node="a") for row in rows])
    execution_rows(replace(many, explain=explain), ExecutionsView(), NOW)
    assert len(asked) == 200


def test_equal_input_gives_equal_fragments_so_nothing_is_sent() -> None:
    pods = [pod_of("e1", node="a", phase="Running", ready=True)]
    assert execution_rows(source(ROW, pods=pods), ExecutionsView(), NOW) == execution_rows(
        source(ROW, pods=pods), ExecutionsView(), NOW + timedelta(hours=3)
    )


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        (pod_of("e"), "deploying"),
        (pod_of("e", node="a"), "preparing"),
        (pod_of("e", node="a", phase="Running", ready=True), "running"),
        (pod_of("e", node="a", phase="Failed"), "failed"),
        (pod_of("e", node="a", phase="Succeeded"), "succeeded"),
        (pod_of("e", node="a", phase="Running", deletionTimestamp="2026-03-04T09:00:00Z"), "stopping"),
    ],
)
def test_pod_has_the_state_of_its_execution(pod: RawObject, state: str) -> None:
    assert state_of(decode(pod, Pod)) == state


@given(
    st.dictionaries(
        st.sampled_from(["text", "kind", "tier", "user", "node", "age", "cpu", "sort", "page", "show", "status"]),
        st.text(max_size=120) | st.sampled_from(["-name", "ended", "2", "-1", "1e999999999", "9" * 200, "4Gi"]),
    )
)
def test_query_gives_a_view_that_survives_its_own_link(query: dict[str, str]) -> None:
    view = ExecutionsView.parse(query)
    bounds(view)

    assert ExecutionsView.parse(QueryDict(view.query().removeprefix("?")).dict()) == view


def test_unreadable_bound_is_said_and_does_not_filter() -> None:
    view = ExecutionsView.parse({"memory": "lots", "age": "2 h", "restarts": "-1"})
    limits = bounds(view)
    assert limits.memory is None
    assert limits.age == timedelta(hours=2)
    assert [name for name, _ in limits.problems] == ["restarts", "memory"]


def test_choices_come_from_visible_rows_and_the_link() -> None:
    offered = choices([ROW, replace(ROW, owner_username="Bob")], ExecutionsView(user="zed"))
    assert offered.users == (("alice", "alice"), ("Bob", "Bob"), ("zed", "zed"))
    assert offered.projects == (("churn", "Customer churn"),)


DASK = replace(
    ROW, id="c1", kind="cluster", framework="dask", tier_name="Large", head_tier_name="Small", title="Features"
)
DASK_PODS = (
    pod_of("c1", name="cluster-c1-worker-b", node="n2", phase="Running", ready=True, labels={APP_COMPONENT: "worker"}),
    pod_of("c1", name="cluster-c1-worker-a", labels={APP_COMPONENT: "worker"}),
    pod_of("c1", name="cluster-c1-head-z", node="n1", phase="Running", ready=True, labels={APP_COMPONENT: "head"}),
)


def test_head_and_workers_are_rows_below_their_cluster() -> None:
    rows = lines(source(DASK, pods=DASK_PODS))
    assert [(row.kind, row.tier, row.node) for row in rows] == [
        ("Dask cluster", "Large", "2 nodes"),
        ("Head", "Small", "n1"),
        ("Worker", "Large", ""),
        ("Worker", "Large", "n2"),
    ]
    assert {(row.user, row.project) for row in rows} == {("alice", "Customer churn")}
    assert rows[0].status.note == "1 of 2 workers runs."
    starting = pod_of("c1", name="cluster-c1-head-z", labels={APP_COMPONENT: "head"})
    assert (
        lines(source(DASK, pods=(DASK_PODS[0], starting)))[0].status.note
        == "Its head is not running. 1 of 1 worker runs."
    )


def test_cluster_already_up_does_not_say_that_it_waits() -> None:
    preparing = replace(DASK, state="preparing", message="The head is ready; it waits for the first worker.")
    assert lines(source(preparing, pods=DASK_PODS))[0].status.note == f"{STARTED} 1 of 2 workers runs."
    without = lines(source(preparing, pods=DASK_PODS[1:]))[0].status.note
    assert without == "The head is ready; it waits for the first worker. 0 of 1 worker run."


def test_usage_stands_at_each_pod_and_summed_at_cluster() -> None:
    used = {f"{NAMESPACE}/cluster-c1-head-z": Usage(250, 2**30), f"{NAMESPACE}/cluster-c1-worker-b": Usage(1500, 2**31)}
    rows = lines(source(DASK, pods=DASK_PODS, used=used))
    assert [(row.used_cpu, row.used_memory) for row in rows] == [
        ("1.75", "3 GiB"), ("0.25", "1 GiB"), ("", ""), ("1.5", "2 GiB"),
    ]  # fmt: skip


@pytest.mark.parametrize("sort", ["-name", "node", "-cpu"])
def test_a_cluster_stays_together_whatever_the_sort(sort: str) -> None:
    others = [replace(ROW, id=id, object_name=f"workspace-{id}", title=id) for id in ("Alpha", "Zulu")]
    pods = [*DASK_PODS, pod_of("Alpha", node="n3"), pod_of("Zulu", node="n0")]
    shapes = [row.shape for row in lines(source(*others, DASK, pods=pods), f"sort={sort}")]
    start = shapes.index("head")
    assert shapes[start : start + 4] == ["head", "member", "member", "member"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("features", ["head-z", "worker-a", "worker-b"]),
        ("small", ["head-z"]),
        ("worker-b", ["worker-b"]),
        ("cannot be fetched", ["worker-b"]),
        ("nothing has this", []),
    ],
)
def test_text_is_searched_in_shared_and_own_cluster_words(text: str, expected: list[str]) -> None:
    rows = lines(source(DASK, pods=DASK_PODS, explained={"cluster-c1-worker-b": BAD}), f"text={text}")
    assert [row.pod_name.removeprefix("cluster-c1-") for row in rows[1:]] == expected


def test_each_condition_of_a_filter_can_be_dropped_alone() -> None:
    view = ExecutionsView.parse({"status": "running", "user": "alice", "cpu": "500m", "text": "x<y", "page": "3"})
    chips = filter_chips(view, Choices((), (("alice", "alice"),), ()), {"running": "Running"})

    assert [chip.words for chip in chips] == ["“x<y”", "Status: Running", "User: alice", "CPU at least 500m"]
    left = [ExecutionsView.parse(dict(parse_qsl(chip.without.removeprefix("?")))) for chip in chips]
    assert [len(filter_chips(each, Choices((), (), ()), {})) for each in left] == [3, 3, 3, 3]
    assert {each.page for each in left} == {1}
