"""Changing a node's taints and labels: what the preview says, who may, and what ends in which words."""

import re

import pytest
from django.utils import timezone

from dashboard.nodes.pages.node import TASKS
from grid.core.labels import NODE_POOL
from grid.kube.resources import DISRUPTION_BUDGETS, NODES, PODS
from grid.models import HardwareTier, NodeTask
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.executions.executing import make_execution, make_project, pod_of, read_executions
from tests.support import builders
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

PAGE = "/nodes/n1/mark/"
NO_EXECUTE = {"do": "taint", "key": "team", "value": "a", "effect": "NoExecute"}


@pytest.fixture
def busy(db: None, cluster: FakeCluster, runtime: Runtime, people: People) -> FakeCluster:
    """The owner's workspace and a DaemonSet's pod on n1, the one node of its pool."""
    TASKS.forget()
    cluster.put(NODES, builders.node("n1", labels={"disk": "ssd"}))
    execution = make_execution(people.owner, make_project(people.owner), title="Churn <by> month")
    cluster.put(PODS, pod_of(execution.pk, name=execution.object_name, node="n1", phase="Running", ready=True))
    daemon_set = {"kind": "DaemonSet", "metadata": {"name": "logs", "uid": "d"}}
    raw = builders.pod("logs-1", node="n1", phase="Running", ready=True, owner=daemon_set)
    cluster.put(PODS, {**raw, "spec": {**raw["spec"], "nodeSelector": {"disk": "ssd"}}})
    read_executions(runtime)
    fill(runtime, cluster)
    return cluster


def test_taint_preview_names_evicted_owners_and_unfit_tiers(busy: FakeCluster, people: People) -> None:
    tier = HardwareTier.objects.filter(node_pool="default", is_archived=False).first()
    assert tier is not None
    client = client_of(people.operator)
    assert f'href="{PAGE}"' in client.get("/nodes/n1/").text
    page = client.get(PAGE, NO_EXECUTE).text
    assert "It evicts 1 pod of 1 person." in page and "Churn &lt;by&gt; month" in page and people.owner.username in page
    assert "1 pod of DaemonSets must go too" in page and "logs-1" in page
    assert "No node of their pool fits these tiers afterwards" in page and tier.name in page
    budget = {"spec": {"selector": {"matchLabels": {}}}, "status": {"disruptionsAllowed": 1}}
    busy.put(DISRUPTION_BUDGETS, {"metadata": {"name": "keep", "namespace": NAMESPACE}, **budget})
    assert "Drain the node first" in client.get(PAGE, NO_EXECUTE).text
    assert client.post(PAGE, {**NO_EXECUTE, "reason": "x"}).status_code == 422
    busy.forbidden[DISRUPTION_BUDGETS] = "forbidden"
    assert "could not be read" in client.get(PAGE, NO_EXECUTE).text
    assert not NodeTask.objects.exists()


def test_label_preview_names_leaving_pods_and_pool_change(busy: FakeCluster, people: People) -> None:
    client = client_of(people.operator)
    assert "remove their pods: logs-1" in client.get(PAGE, {"do": "unlabel", "key": "disk"}).text
    page = client.get(PAGE, {"do": "label", "key": NODE_POOL, "value": "gpu"}).text
    assert "leaves the pool default and joins the pool gpu" in page
    assert (
        "kept by Kubernetes itself" in client.get(PAGE, {"do": "label", "key": "kubernetes.io/os", "value": "x"}).text
    )
    assert "Running executions keep running." in client.get(PAGE, {**NO_EXECUTE, "effect": "NoSchedule"}).text


def test_change_applies_only_to_node_version_in_preview(busy: FakeCluster, runtime: Runtime, people: People) -> None:
    client = client_of(people.operator)
    wanted = {"do": "label", "key": "team", "value": "a", "reason": "For <team> a"}
    fingerprint = re.search(r'name="looked_at" value="(\w+)"', client.get(PAGE, wanted).text)
    assert fingerprint is not None
    busy.put(NODES, builders.node("n1", labels={"disk": "hdd"}))
    fill(runtime, busy)
    late = client.post(PAGE, {**wanted, "looked_at": fingerprint[1]})
    assert late.status_code == 422 and "Look again" in late.text
    again = re.search(r'name="looked_at" value="(\w+)"', late.text)
    assert again is not None
    page = client.post(PAGE, {**wanted, "looked_at": again[1]}, follow=True).text
    assert "Label requested" in page and "team=a" in page and "For &lt;team&gt; a" in page
    NodeTask.objects.update(ended_at=timezone.now(), outcome="changed")
    TASKS.forget()
    assert "Look at a new preview" in client.get("/nodes/n1/").text
