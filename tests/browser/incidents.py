"""Incidents on the stage, each as a cluster would show it: the objects, events and conditions, and nothing of ours that says the cause."""

from datetime import UTC, datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async

from grid.diagnosis.refusals import explain_refusal
from grid.kube.objects import RawObject
from grid.kube.resources import EVENTS, NODES, PODS
from grid.metrics.usage import Measured, Usage
from grid.models import Execution
from grid.nodes.contention import ROUNDS
from tests.browser import executing, overviewing
from tests.browser.server import Stage
from tests.support import builders
from tests.support.waiting import eventually

NODE = "default-7f4k2"
ID, NOISY_ID = "aaaa2222bb", "bbbb3333cc"
IMAGE = "registry.example/lab:4"
TITLE = "Churn exploration"
_PULLS = f'Failed to pull image "{IMAGE}": failed to pull and unpack image: failed to do request: Head "https://registry.example/v2/lab": '


async def _execution(stage: Stage, state: str, **fields: Any) -> None:
    await executing.team(stage)
    created = datetime.now(UTC) - timedelta(hours=3)
    stage.cluster.put(NODES, builders.node(NODE, pool="default", created=created))
    await executing.put(stage, ID, state, minutes=9, title=TITLE, **fields)


def _pod(stage: Stage, **fields: Any) -> RawObject:
    return stage.cluster.put(PODS, executing._pod(ID, minutes=9, **{"node": NODE, **fields}))


def _tell(stage: Stage, about: RawObject, reason: str, message: str, component: str = "kubelet") -> None:
    event = builders.event(
        f"e-{reason.lower()}", about=about, reason=reason, message=message, kind="Warning", component=component,
        at=datetime.now(UTC),
    )  # fmt: skip
    stage.cluster.put(EVENTS, event)


async def _unpulled(stage: Stage, message: str) -> None:
    await _execution(stage, "preparing")
    waiting = builders.container_status(state={"waiting": {"reason": "ErrImagePull", "message": message}}, image=IMAGE)
    program = {"name": "run", "image": IMAGE, "resources": {}}
    _tell(stage, _pod(stage, statuses=[waiting], containers=[program]), "Failed", message)


async def disk_filled(stage: Stage) -> None:
    """The kubelet evicts what fills its node's disk."""
    await _execution(stage, "running")
    pressure = "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 1Gi. "
    used = "Container run was using 70Gi, request is 0, has larger consumption of ephemeral-storage. "
    evicted = builders.condition("DisruptionTarget", "True", "TerminationByKubelet", pressure, at=datetime.now(UTC))
    _pod(stage, phase="Failed", status={"reason": "Evicted", "message": pressure + used}, conditions=[evicted])
    full = builders.condition("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure")
    ready = builders.condition("Ready", "True", "KubeletReady")
    stage.cluster.put(NODES, builders.node(NODE, pool="default", conditions=[ready, full]))


async def dns_gone(stage: Stage) -> None:
    await _unpulled(stage, _PULLS + "dial tcp: lookup registry.example on 10.96.0.10:53: read udp: i/o timeout")


async def registry_gone(stage: Stage) -> None:
    await _unpulled(stage, _PULLS + "dial tcp 10.0.0.9:443: connect: connection refused")


async def image_missing(stage: Stage) -> None:
    await _unpulled(stage, f'failed to resolve reference "{IMAGE}": {IMAGE}: not found')


async def node_lost(stage: Stage) -> None:
    await _execution(stage, "running")
    lost = builders.condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    stage.cluster.put(NODES, builders.node(NODE, pool="default", conditions=[lost]))
    unready = [builders.condition("PodScheduled", "True"), builders.condition("Ready", "False")]
    pod = _pod(stage, phase="Running", statuses=[builders.container_status(ready=True)], conditions=unready)
    _tell(stage, pod, "NodeNotReady", "Node is not ready", "node-controller")


async def controller_stopped(stage: Stage) -> None:
    await _execution(stage, "queued")
    await overviewing.renew_lease(stage)


async def quota_used_up(stage: Stage) -> None:
    """The API server refuses the pod, and the controller writes that down as `grid.executions.reconcile` does."""
    await _execution(stage, "deploying")
    refusal = 'pods "run" is forbidden: exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=4, limited: requests.cpu=4'
    known = explain_refusal(refusal)
    assert known is not None
    written = {"reason": "not_allowed", "message": f"{known.sentence} {known.next_step}"}
    await sync_to_async(Execution.objects.filter(pk=ID).update)(**written)
    await executing._take_in(stage)


async def memory_crept_up(stage: Stage) -> None:
    await _execution(stage, "running")
    killed = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": builders.stamp(datetime.now(UTC))}}
    limit = {"cpu": "1", "memory": "4Gi"}
    _pod(stage, phase="Failed", requests=limit, statuses=[builders.container_status(state=killed)])


async def cpu_stolen(stage: Stage) -> None:
    """A job without a CPU limit uses most of its node, and the workspace beside it all that it requested, for a minute of measurements."""
    await _execution(stage, "running")
    await executing.put(stage, NOISY_ID, "running", minutes=9, title="Hyperparameter search", owner="bob", kind="job")
    used = {ID: ("750m", 950), NOISY_ID: ("2", 3000)}
    for id, (cores, _) in used.items():
        container = {"name": "run", "image": IMAGE, "resources": {"requests": {"cpu": cores}}}
        pod = executing._pod(id, minutes=9, node=NODE, phase="Running", ready=True, containers=[container])
        stage.cluster.put(PODS, pod)
    runtime, keys = stage.runtime, {id: f"{builders.NAMESPACE}/workspace-{id}" for id in used}
    await eventually(lambda: len(runtime.pods.by("node", NODE)) == len(used) and runtime.nodes.get(NODE))
    pods = {keys[id]: Usage(millicores, 2**30) for id, (_, millicores) in used.items()}
    for place in range(ROUNDS):
        at = datetime.now(UTC).timestamp() - 15 * (ROUNDS - place)
        stage.measured = Measured({NODE: Usage(3950, 2**31)}, pods, pods_at=dict.fromkeys(pods, at))
        runtime.usage.replace(stage.measured)
        runtime.contention.take_in()


async def slow_volume(stage: Stage) -> None:
    await _execution(stage, "preparing")
    starting = builders.container_status(state={"waiting": {"reason": "ContainerCreating"}})
    message = (
        "Unable to attach or mount volumes: unmounted volumes=[project], unattached volumes=[project home]: timed out"
    )
    _tell(stage, _pod(stage, statuses=[starting]), "FailedMount", f"{message} waiting for the condition")
