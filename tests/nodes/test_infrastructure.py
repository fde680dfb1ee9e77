"""Infrastructure, nodes and pods: who may see them, what they show, and what they say when something is missing."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from dashboard.executions.viewmodels.manifest import as_yaml
from dashboard.nodes.viewmodels.infrastructure import ROWS_PER_PAGE, InfrastructureView, NodeRow
from dashboard.nodes.viewmodels.nodes import node_sums
from dashboard.shell.viewmodels.listing import Paging
from grid.core.errors import ClusterUnavailable, NotAllowed
from grid.core.labels import APP_COMPONENT, APP_NAME, KEYS, MANAGER, NODE_POOL, PLACEHOLDER, WARM_UNTIL
from grid.kube.objects import Node
from grid.kube.resources import CONFIG_MAPS, EVENTS, NODES, PODS
from grid.nodes.scaledown import ScaleDown
from grid.runtime import Runtime
from grid.runtime.executionrows import ExecutionRow
from tests.conftest import People
from tests.executions.executing import ROW
from tests.nodes.node_listing import rows_of_nodes
from tests.shell.live import Clock, connected, connection
from tests.support import builders
from tests.support.builders import MOMENT, NAMESPACE, decode
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

GONE = ScaleDown("unmanaged", "")
POD_PATH = f"/pods/{NAMESPACE}/workspace-abc/"
STATUS = "nodeGroups: [{name: default, health: {cloudProviderTarget: 2, minSize: 1, maxSize: 5}}]"


def execution(people: People) -> ExecutionRow:
    return replace(
        ROW,
        id="abc",
        owner_id=people.owner.pk,
        project_name="Churn",
        project_roles={people.owner.pk: "owner", people.teammate.pk: "contributor"},
        environment_name="Jupyter",
        started_at=MOMENT,
        object_name="workspace-abc",
    )


@pytest.fixture
def scene(people: People, cluster: FakeCluster, runtime: Runtime, clock: Clock) -> FakeCluster:
    """One node with the owner's workspace on it, and one pod of nobody's."""
    clock.seconds = 3600
    node = cluster.put(NODES, builders.node("worker-1", managedFields=[{"manager": "kubelet"}]))
    labels = {KEYS.execution: "abc"}
    pod = builders.pod("workspace-abc", node="worker-1", phase="Running", ready=True, labels=labels)
    cluster.put(PODS, pod)
    cluster.put(PODS, builders.pod("nobodys", node="worker-1", phase="Running", ready=True))
    cluster.put(PODS, builders.pod("workspace-abc", namespace="elsewhere", labels=labels))
    cluster.put(EVENTS, builders.event("e1", about=pod, reason="Pulled", message="Image pulled."))
    cluster.put(EVENTS, builders.event("e2", about=node, reason="NodeReady", message="Node is ready."))
    cluster.put(
        CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", {"status": STATUS}, namespace="kube-system")
    )
    fill(runtime, cluster)
    runtime.executions.replace([execution(people)])
    return cluster


def get(people: People, person: str, path: str) -> Any:
    client = Client()
    if person != "anonymous":
        client.force_login(getattr(people, person))
    return client.get(path)


@pytest.mark.parametrize(("namespace", "name"), [("compute-grid", "nobodys"), ("elsewhere", "workspace-abc")])
@pytest.mark.django_db(transaction=True)
async def test_foreign_pod_is_for_observers_only(namespace: str, name: str, people: People, scene: FakeCluster) -> None:
    for person, is_let_in in (("owner", False), ("operator", True)):
        response = await sync_to_async(get)(people, person, f"/pods/{namespace}/{name}/")
        assert response.status_code == (200 if is_let_in else 403)
        async with connection(f"/live/pod/?namespace={namespace}&name={name}", getattr(people, person)) as socket:
            assert (socket is not None) is is_let_in


def test_invisible_pod_looks_like_a_missing_pod(people: People, scene: FakeCluster) -> None:
    there = get(people, "stranger", POD_PATH)
    nowhere = get(people, "stranger", f"/pods/{NAMESPACE}/never-was/")
    assert there.status_code == nowhere.status_code == 403
    main = [re.findall("(?s)<main.*</main>", response.content.decode()) for response in (there, nowhere)]
    assert len(main[0]) == 1
    assert main[0] == main[1]
    assert "workspace-abc" not in main[0][0]


def test_page_shows_nodes_pools_and_node_removal(people: People, scene: FakeCluster) -> None:
    page = get(people, "operator", "/infrastructure/").content.decode()
    assert "worker-1" in page
    assert "1 node; 1 to 5 allowed" in page
    assert "1 node on the way" in page
    assert "Kept: the pool is at its minimum of 1." in page
    assert "As of 10:00:00 UTC" in page
    assert 'hx-ws:connect="/live/infrastructure/?"' in page


@pytest.mark.django_db(transaction=True)
async def test_open_page_follows_what_the_autoscaler_asks_for(
    people: People, scene: FakeCluster, runtime: Runtime
) -> None:
    async with connected("/live/infrastructure/", people.operator) as socket:
        assert "1 node on the way" in await socket.message()
        about = {"status": STATUS.replace("Target: 2", "Target: 4")}
        scene.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", about, namespace="kube-system"))
        fill(runtime, scene)
        await socket.message_about("3 nodes on the way", within=10)


def test_placeholders_are_warm_places_and_hold_nothing(people: People, scene: FakeCluster, runtime: Runtime) -> None:
    for number, node in enumerate(("", "warm-1")):
        placeholder = builders.pod(
            f"warm-{number}",
            spec={"nodeSelector": {NODE_POOL: "gpu"}, "priority": -10, **({"nodeName": node} if node else {})},
            labels={APP_NAME: MANAGER, APP_COMPONENT: PLACEHOLDER},
            annotations={WARM_UNTIL: "18:00 (<b>)"},
        )
        scene.put(PODS, placeholder)
    fill(runtime, scene)
    page = get(people, "operator", "/infrastructure/").content.decode()
    assert "2 warm places until 18:00 (&lt;b&gt;), 1 waits for a node" in page
    assert "pod waiting" not in page


def test_yaml_comes_whole_without_what_only_machines_need(people: People, scene: FakeCluster) -> None:
    page = get(people, "operator", "/nodes/worker-1/?tab=yaml").content.decode()
    assert "providerID: sandbox://worker-1" in page
    assert "managedFields" not in page


def test_the_description_is_the_one_of_kubectl(people: People, scene: FakeCluster) -> None:
    node = get(people, "operator", "/nodes/worker-1/?tab=describe").content.decode()
    assert "Name:               worker-1" in node
    assert "Allocated resources:" in node
    assert "workspace-abc" in node
    assert "Node is ready." in node
    pod = get(people, "owner", f"{POD_PATH}?tab=describe").content.decode()
    assert "Node:" in pod
    assert "Image pulled." in pod


def test_a_secrets_values_are_never_shown() -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"token":"aGlkZGVu"}}'}
    secret = {
        "kind": "Secret",
        "metadata": {"name": "s", "annotations": applied},
        "data": {"token": "aGlkZGVu"},
        "stringData": {"password": "hidden-too"},
    }
    text = as_yaml(secret)
    assert "token" in text
    assert "aGlkZGVu" not in text
    assert "hidden-too" not in text


def test_pod_log_is_shown_from_end_with_escaped_bytes(people: People, scene: FakeCluster) -> None:
    scene.set_log("workspace-abc", ["first", "<script>alert(1)</script>", "last"], namespace=NAMESPACE, container="run")
    page = get(people, "owner", f"{POD_PATH}?tab=log&container=nonsense").content.decode()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "last" in page


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ClusterUnavailable("refused"), "The cluster does not answer."),
        (NotAllowed("forbidden"), "has to apply deploy/access.yaml"),
    ],
)
def test_cluster_refusal_is_shown_on_the_page(error: Any, sentence: str, people: People, scene: FakeCluster) -> None:
    for tab in ("yaml", "log", "describe"):
        scene.fail_next(error)
        response = get(people, "operator", f"{POD_PATH}?tab={tab}")
        assert response.status_code == 200
        assert sentence in response.content.decode()


NODES_OF_MANY = [
    node_sums(
        decode(builders.node(f"n-{number:03}", created=MOMENT + timedelta(minutes=number)), Node),
        {"cpu": number, "pods": 1},
        None,
    )
    for number in range(ROWS_PER_PAGE * 2 + 1)
]


def rows_of(view: InfrastructureView) -> tuple[list[str], Paging]:
    *rows, paging = rows_of_nodes(NODES_OF_MANY, view, lambda _: GONE)
    assert isinstance(paging.context, Paging)
    return [row.context.name for row in rows if isinstance(row.context, NodeRow)], paging.context


def test_page_has_its_rows_and_links_to_others() -> None:
    first, paging = rows_of(InfrastructureView(sort="name"))
    assert (first[0], len(first)) == ("n-000", ROWS_PER_PAGE)
    assert paging == Paging("1 to 50 of 101 nodes", "", "?sort=name&page=2")
    last, paging = rows_of(InfrastructureView(sort="name", page=3))
    assert last == ["n-100"]
    assert paging.previous == "?sort=name&page=2"
    assert rows_of(InfrastructureView(sort="name", page=99))[0] == last


@pytest.mark.parametrize(
    ("sort", "descending", "first"),
    [
        ("name", True, "n-100"),
        ("cpu", True, "n-100"),
        ("cpu", False, "n-000"),
        ("created", True, "n-100"),
        ("pool", False, "n-000"),
    ],
)
def test_rows_are_sorted(sort: str, descending: bool, first: str) -> None:
    assert rows_of(InfrastructureView(sort=sort, descending=descending))[0][0] == first


def test_the_view_survives_its_way_through_the_address() -> None:
    from django.http import QueryDict

    view = InfrastructureView(pool="a b", text="x&y=<z>", state="ready", sort="cpu", descending=True, page=7)
    assert InfrastructureView.parse(QueryDict(view.query().removeprefix("?")).dict()) == view
    assert InfrastructureView().query() == "?sort=pool"


def test_rows_are_filtered_by_each_thing() -> None:
    assert rows_of(InfrastructureView(text="N-00"))[1].sentence == "10 nodes"
    assert rows_of(InfrastructureView(pool="other"))[0] == []
    assert rows_of(InfrastructureView(state="trouble"))[0] == []
    assert len(rows_of(InfrastructureView(state="ready"))[0]) == ROWS_PER_PAGE
