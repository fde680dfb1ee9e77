"""Puts a pod into words: rows on a node's page, facts on its own page; pure."""

from collections.abc import Iterable
from datetime import datetime

from dashboard.executions.viewmodels.execution_groups import PARTS_IN_NAMES
from dashboard.executions.viewmodels.node_reasons import NodeReasons, node_reasons
from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id, namespaced
from dashboard.shell.viewmodels.states import StatusLine, framework_name, kind_name
from grid.core.labels import APP_COMPONENT, Keys
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.requests import pod_requests
from grid.kube.objects import ContainerStatus, Pod
from grid.metrics.usage import Usage
from grid.runtime.executionrows import ExecutionRow


class PodRow(ViewModel, frozen=True, gc=False):
    """One pod; `part` is its part in its execution, such as "Worker of Feature building", or "" without an execution."""

    namespace: str
    name: str
    status: StatusLine
    created_at: datetime | None
    restarts: int
    cpu: str
    memory: str
    gpus: str
    used_cpu: str
    used_memory: str
    part: str = ""
    execution: str = ""


class ContainerFact(ViewModel, frozen=True, gc=False):
    name: str
    image: str
    status: StatusLine
    restarts: int


class PodFacts(ViewModel, frozen=True, gc=False):
    """A pod's facts; `row` is None when the pod is gone."""

    namespace: str
    name: str
    row: PodRow | None
    node: str = ""
    address: str = ""
    owner: str = ""
    execution: str = ""
    containers: tuple[ContainerFact, ...] = ()
    diagnosis: Diagnosis | None = None
    reasons: NodeReasons | None = None


def pod_status(pod: Pod) -> StatusLine:
    """Return the status in a word, chosen as `kubectl get pods` does, and the cluster's own message."""
    if pod.metadata.deletion_timestamp is not None:
        return StatusLine("wait", _("Ending"))
    if pod.status.phase == "Succeeded":
        return StatusLine("neutral", _("Done"))
    containers = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    troubled = next((status for status in map(_container_status, containers) if status.severity == "problem"), None)
    if pod.status.phase == "Failed":
        cause = f"{troubled.word}: {troubled.note}" if troubled else pod.status.reason
        return StatusLine("problem", _("Failed"), pod.status.message or cause)
    if troubled is not None:
        return troubled
    conditions = {condition.type: condition for condition in pod.status.conditions}
    scheduled, ready = conditions.get("PodScheduled"), conditions.get("Ready")
    if not pod.spec.node_name:
        return StatusLine("wait", _("Waiting for a node"), scheduled.message if scheduled else "")
    if pod.status.phase == "Running":
        if ready is not None and ready.status == "True":
            return StatusLine("ok", _("Running"))
        return StatusLine("wait", _("Running, not ready"), ready.message if ready else "")
    return StatusLine("wait", _("Starting"))


def is_troubled(pod: Pod) -> bool:
    """Return whether there is something to explain: the pod neither runs, nor has done its work, nor is being ended."""
    return pod_status(pod).severity in ("wait", "problem") and pod.metadata.deletion_timestamp is None


def pod_row(
    pod: Pod, usage: Usage | None, row: ExecutionRow | None = None, diagnosis: Diagnosis | None = None
) -> PodRow:
    """Return the pod's row; `row` is its execution, which the caller trusts its labels to name. With a diagnosis of what is wrong, its
    sentence replaces the cluster's own message."""
    asked = pod_requests(pod)
    status = pod_status(pod)
    if diagnosis is not None and diagnosis.severity != "ok" and is_troubled(pod):
        status = StatusLine(status.severity, status.word, diagnosis.sentence)
    return PodRow(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        status=status,
        created_at=pod.metadata.creation_timestamp,
        restarts=sum(
            status.restart_count for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
        ),
        cpu=format_cores(asked.cpu),
        memory=format_bytes(asked.memory),
        gpus=str(asked.gpus) if asked.gpus else "",
        used_cpu="" if usage is None else format_cores(usage.cpu_millicores),
        used_memory="" if usage is None else format_bytes(usage.memory_bytes),
        part=_part(pod, row),
        execution=row.id if row else "",
    )


def _part(pod: Pod, row: ExecutionRow | None) -> str:
    if row is None:
        return ""
    component = pod.metadata.labels.get(APP_COMPONENT, "") if row.kind == "cluster" else ""
    if component:
        named = {"component": PARTS_IN_NAMES.get(component, component), "title": row.title or row.object_name}
        return _("{framework} {component} of {title}", framework=framework_name(row.framework), **named)
    return f"{kind_name(row.kind)} {row.title}".strip()


def pod_rows(rows: Iterable[PodRow]) -> list[Fragment]:
    """Return the rows of the region "pods", by namespace and name."""
    ordered = sorted(rows, key=lambda row: (row.namespace, row.name))
    if not ordered:
        empty = EmptyState(_("No pods."), _("Nothing is running on this node."))
        return [Fragment("pods-none", "shell/fragments/empty_row.html", empty, region="pods")]
    ids = (element_id("pod", namespaced(row.namespace, row.name)) for row in ordered)
    template = "nodes/fragments/pod_row.html"
    return [Fragment(id, template, row, region="pods") for id, row in zip(ids, ordered, strict=True)]


def pod_facts(
    pod: Pod, usage: Usage | None, keys: Keys, diagnosis: Diagnosis, row: ExecutionRow | None, *, sees_all: bool
) -> PodFacts:
    owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    statuses = {status.name: status for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)}
    specs = (*pod.spec.init_containers, *pod.spec.containers)
    containers = ((container.name, container.image, statuses.get(container.name)) for container in specs)
    return PodFacts(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        row=pod_row(pod, usage, row),
        node=pod.spec.node_name,
        address=pod.status.pod_ip,
        owner=f"{owner.kind} {owner.name}" if owner else "",
        execution=pod.metadata.labels.get(keys.execution, ""),
        diagnosis=diagnosis,
        reasons=node_reasons(diagnosis, sees_all=sees_all),
        containers=tuple(
            ContainerFact(name, image, _container_status(status), status.restart_count if status is not None else 0)
            for name, image, status in containers
        ),
    )


def _container_status(container: ContainerStatus | None) -> StatusLine:
    if container is None:
        return StatusLine("wait", _("Not started"))
    state = container.state
    if state.running is not None:
        return StatusLine("ok", _("Running")) if container.ready else StatusLine("wait", _("Running, not ready"))
    if state.terminated is not None:
        ended = state.terminated
        if ended.exit_code == 0:
            return StatusLine("neutral", _("Done"))
        code = _("exit code {exit_code}", exit_code=ended.exit_code)
        return StatusLine("problem", ended.reason or _("Error"), ended.message or code)
    waiting = state.waiting
    if waiting is None or waiting.reason in ("", "ContainerCreating", "PodInitializing"):
        return StatusLine("wait", _("Starting"))
    return StatusLine("problem", waiting.reason, waiting.message)
