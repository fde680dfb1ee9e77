"""What the browser test of a drain puts on the stage: a node with a workspace of Alice's and two pods of a service with a budget."""

from datetime import UTC, datetime
from typing import Any

from asgiref.sync import sync_to_async

from grid.kube.resources import DISRUPTION_BUDGETS, PODS
from grid.models import NodeTask
from grid.nodes.nodekeeper import NodeKeeper
from tests.browser import executing, scenes
from tests.browser.server import Stage
from tests.support.builders import NAMESPACE

ID = "dddd2345ef"
_keepers: list[NodeKeeper] = []


async def busy_node(stage: Stage) -> None:
    await sync_to_async(NodeTask.objects.all().delete)()
    await executing.team(stage)
    await scenes.put_node(stage, name="node-a")
    await executing.put(stage, id=ID, state="running", title="Churn by month")
    await scenes.put_pod(stage, name="web-1", node="node-a", phase="Running", ready=True, labels={"app": "web"})
    await allow(stage, 0)
    _keepers[:] = [NodeKeeper(stage.cluster, _database, lambda: datetime.now(UTC))]


async def allow(stage: Stage, disruptions: int) -> None:
    status = {"disruptionsAllowed": disruptions, "desiredHealthy": 1, "currentHealthy": 1, "observedGeneration": 1}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    meta = {"name": "web", "namespace": NAMESPACE, "generation": 1}
    stage.cluster.put(DISRUPTION_BUDGETS, {"metadata": meta, "spec": spec, "status": status})


async def carry_out(stage: Stage) -> None:
    """As the controller does every two seconds."""
    await _keepers[0].run_once()


async def end_evicted(stage: Stage) -> None:
    """As their kubelet does."""
    for pod in stage.cluster.objects(PODS):
        if "deletionTimestamp" in pod["metadata"]:
            stage.cluster.remove(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])


async def _database(work: Any, /, *args: Any, **kwargs: Any) -> Any:
    return await sync_to_async(work)(*args, **kwargs)
