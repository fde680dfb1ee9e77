"""Executions for page tests: rows of the runtime, records, stored ones with what they need, and their pods."""

import html
import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from dashboard import composition as composition
from dashboard.executions.viewmodels.execution import ExecutionRecord, LifecycleLine, Person, head_of
from dashboard.shell.viewmodels.live import Fragment
from grid.configuration import NAMESPACE
from grid.core.labels import KEYS
from grid.diagnosis.diagnosis import Diagnosis
from grid.kube.objects import RawObject
from grid.kube.resources import PODS, Resource
from grid.models import (
    ConfigRecord,
    Environment,
    Execution,
    HardwareTier,
    LifecycleEntry,
    Project,
    State,
    User,
    Workspace,
)
from grid.runtime import Runtime
from grid.runtime.executionrows import ExecutionRow, read_rows
from tests.conftest import People, client_of, page_at
from tests.support.builders import MOMENT, pod
from tests.support.cluster import FakeCluster
from tests.support.frozen import on_tier
from tests.support.runtime import fill

ROW = ExecutionRow(
    id="e1",
    kind="workspace",
    title="",
    owner_username="alice",
    owner_id=1,
    project_id="churn",
    project_name="Customer churn",
    project_roles={1: "owner", 2: "contributor"},
    tier_id="small",
    tier_name="Small",
    environment_name="JupyterLab",
    state="running",
    state_since=MOMENT,
    reason="",
    message="",
    requested_at=MOMENT,
    started_at=None,
    object_name="workspace-e1",
)
RECORD = ExecutionRecord(
    id="e1",
    kind="workspace",
    title="",
    object_name="workspace-e1",
    owner_id=1,
    owner_username="alice",
    project_id="churn",
    project_name="Customer churn",
    project_roles={1: "owner", 2: "contributor"},
    environment_name="JupyterLab",
    image="compute-grid/jupyterlab:4.6",
    tier_id="small",
    tier_name="Small",
    node_pool="default",
    millicores=1000,
    memory_bytes=4 * 2**30,
    gpus=0,
    shared_memory="",
    cost_per_hour=Decimal("0.05"),
    slots=1,
    state="queued",
    state_since=MOMENT,
    message="",
    requested_at=MOMENT,
    started_at=None,
    ended_at=None,
    stop_requested_at=None,
    stop_requested_by="",
    node_name="",
    lifecycle=(),
)
CLUSTER = {
    "framework": "dask",
    "cluster_environment": "dask-cluster",
    "head_tier": "small",
    "worker_tier": "medium",
    "workers_minimum": "1",
    "workers_maximum": "5",
    "autoscale": "on",
    "target_cpu": "80",
    "target_memory": "80",
    "local_storage": "",
}
FORM = {"kind": "workspace", "project": "churn", "environment": "jupyterlab", "tier": "small", "token": "t1"}
ALONE = {"kind": "cluster", "project": "churn", "token": "t1", **CLUSTER}
ATTACHED = {**FORM, "with_cluster": "on", **CLUSTER}


def entered(state: str, *, minute: float = 0, message: str = "", **fields: Any) -> LifecycleLine:
    """A stored change of state, minutes after the launch."""
    line: dict[str, Any] = {
        "at": MOMENT + timedelta(minutes=minute),
        "to_state": state,
        "about": "",
        "level": "Normal",
        "reason": state,
        "message": message,
        "count": 1,
        "actor": "",
        "event_uid": "",
        **fields,
    }
    return LifecycleLine(**line)


def pod_of(execution_id: str, *, name: str = "", labels: Mapping[str, str] | None = None, **fields: Any) -> RawObject:
    """As manifests label it."""
    own = {KEYS.execution: execution_id, **(labels or {})}
    return pod(name or f"workspace-{execution_id}", labels=own, **fields)


def put(runtime: Runtime, cluster: FakeCluster, resource: Resource, obj: RawObject) -> None:
    """Create or change the object, and let the caches see it."""
    cluster.put(resource, obj)
    fill(runtime, cluster)


def make_project(owner: User, *members: User, id: str = "churn", name: str = "Customer churn") -> Project:
    project = Project.objects.start(id=id, name=name, owner=owner)
    project.members.add(*members, through_defaults={"role": "contributor"})
    return project


def make_tier(id: str = "small", **fields: Any) -> HardwareTier:
    values: dict[str, Any] = {"name": id.capitalize(), "node_pool": "default", "cores": "1", "memory": "4Gi", **fields}
    return HardwareTier.objects.create(id=id, **values)


def make_environment(id: str = "jupyterlab", **fields: Any) -> Environment:
    values: dict[str, Any] = {"name": "JupyterLab", "image": "compute-grid/jupyterlab:4.6", "port": 8888, **fields}
    return Environment.objects.create(id=id, **values)


def make_execution(owner: User, project: Project, *, state: State = State.RUNNING, **fields: Any) -> Execution:
    """With its tier and environment, and the line of history that brought it here."""
    tier = fields.pop("tier", None) or HardwareTier.objects.filter(pk="small").first() or make_tier()
    environment = Environment.objects.filter(pk="jupyterlab").first() or make_environment()
    values: dict[str, Any] = {
        "kind": "workspace",
        **on_tier(tier),
        "environment": environment,
        "state_since": MOMENT,
        "requested_at": MOMENT,
        **fields,
    }
    execution = Execution.objects.create(owner=owner, project=project, state=state, **values)
    LifecycleEntry.objects.create(execution=execution, at=MOMENT, to_state=state, reason=str(state))
    return execution


def make_running(people: People, cluster: FakeCluster, runtime: Runtime, **fields: Any) -> Execution:
    """The owner's, in a project with the teammate, with its pod on a node, as pages read it."""
    project = make_project(people.owner, people.teammate)
    execution = make_execution(people.owner, project, started_at=MOMENT, node_name="node-a", **fields)
    cluster.put(PODS, pod_of(execution.pk, name=execution.object_name, node="node-a", phase="Running", ready=True))
    fill(runtime, cluster)
    read_executions(runtime)
    return execution


def make_workspace(owner: User, project: Project, *, title: str = "Explore", **fields: Any) -> Workspace:
    """A stopped one with one execution; `fields` are the execution's."""
    values: dict[str, Any] = {"state": State.STOPPED, "ended_at": MOMENT, "settled_at": MOMENT, **fields}
    execution = make_execution(owner, project, title=title, **values)
    workspace = Workspace.objects.create(
        id=execution.pk,
        title=title,
        owner=owner,
        project=project,
        environment=execution.environment,
        tier=execution.tier,
        created_at=execution.requested_at,
        launched_at=execution.requested_at,
    )
    Execution.objects.filter(pk=execution.pk).update(workspace=workspace)
    return workspace


def read_executions(runtime: Runtime) -> None:
    """The runtime takes in what is in the database now, as its loop would."""
    runtime.executions.replace(read_rows(runtime.clock()))


def head_fragment(record: ExecutionRecord, diagnosis: Diagnosis | None, viewer: Person) -> Fragment:
    """Return what stands first on an execution's page."""
    return Fragment("head", "executions/fragments/execution_head.html", head_of(record, diagnosis, viewer))


def offer_clusters(people: People) -> Project:
    """A project of the owner's, a notebook with Dask, clusters of Dask and of Ray, and two tiers."""
    make_environment(frameworks={"dask": "2026.8.0"})
    make_environment("dask-cluster", name="Dask", kind="cluster", port=None, frameworks={"dask": "2026.8.0"})
    make_environment("ray-cluster", name="Ray", kind="cluster", port=None, frameworks={"ray": "2.60.0"})
    make_tier("small", is_default=True, cost_per_hour=Decimal("0.05"))
    make_tier("medium", cores="3500m", memory="14Gi", cost_per_hour=Decimal("0.19"))
    return make_project(people.owner, people.teammate)


def page(user: User, query: str = "") -> str:
    return page_at(user, f"/launch/{query}")


def sent(user: User, fields: dict[str, str], path: str = "/launch/") -> tuple[int, str]:
    answer = client_of(user).post(path, fields)
    return answer.status_code, html.unescape(answer.content.decode())


def configure(key: str, value: int) -> None:
    ConfigRecord.objects.create(namespace=NAMESPACE, key=key, value=str(value))


def error_at(shown: str, field: str) -> str:
    error = re.search(rf'id="id_{field}_error"[^>]*>(.*?)</div>', shown, re.DOTALL)
    return re.sub(r"<[^>]+>", " ", error[1]).strip() if error else ""


def value_of(shown: str, field: str) -> str:
    control = re.search(rf'<input[^>]*name="{field}"[^>]*>', shown)
    value = re.search(r'value="([^"]*)"', control[0]) if control else None
    return value[1] if value else ""
