"""Incidents on the stage, each as a cluster would show it: the objects, events and conditions, and nothing of ours that says the cause."""

from datetime import UTC, datetime, timedelta
from typing import Any

from grid.kube.objects import RawObject
from grid.kube.resources import EVENTS, NODES, PODS
from grid.metrics.usage import Measured, Usage
from grid.nodes.contention import ROUNDS
from tests.browser import executing, overviewing
from tests.browser.server import Stage
from tests.support import builders
from tests.support.waiting import eventually

NODE = "default-7f4k2"
ID, NOISY_ID = "aaaa2222bb", "bbbb3333cc"
IMAGE = "registry.example/lab:4"
TITLE = "Churn exploration"


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
    overviewing.let_lease_pass(stage)


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
        list(runtime.contention.steps())
