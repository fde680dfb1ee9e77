"""The fleet against the embedded API server over HTTP: what the fake in memory cannot show."""

from collections.abc import Sequence
from pathlib import Path

from grid.sandbox.client import NODES, PODS, Object, SystemClock, condition_of
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet import Fleet, FleetSettings
from grid.sandbox.pools import NodePool
from tests.sandbox.support import api_server
from tests.support.waiting import eventually


async def test_node_joins_and_runs_a_pod_to_its_end(tmp_path: Path) -> None:
    pool = NodePool("small", "t", {"cpu": "8", "memory": "32Gi", "pods": "110"}, minimum=1, maximum=1, initial=1)
    settings = FleetSettings(boot_seconds=0.0, ready_seconds=0.0)
    (tmp_path / "api").mkdir()
    async with api_server(tmp_path / "api", SystemClock()) as client:
        fleet = Fleet(
            client,
            data_dir=tmp_path / "machine",
            images=ImageStore(tmp_path / "images"),
            pools=[pool],
            settings=settings,
        )
        await fleet.start()
        try:
            (node,) = fleet.instances("small")
            await eventually(lambda: client.list(NODES.path()), holds=lambda nodes: _ready(nodes))
            container = {"name": "run", "image": "compute-grid/test:1", "command": ["sh", "-c", "echo hello; exit 2"]}
            spec = {"nodeName": node, "restartPolicy": "Never", "containers": [container]}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job"}, "spec": spec}
            await client.create(PODS.path("default"), body)
            path = PODS.path("default", "job")
            done = await eventually(lambda: client.get(path), holds=lambda pod: pod["status"].get("phase") == "Failed")
            ended = done["status"]["containerStatuses"][0]["state"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (2, "Error")
            await client.delete(path)
            await eventually(lambda: client.list(PODS.path("default")), holds=lambda pods: not pods)
        finally:
            await fleet.stop()


def _ready(nodes: Sequence[Object]) -> bool:
    conditions = [condition_of(node, "Ready") for node in nodes]
    return any(condition is not None and condition["status"] == "True" for condition in conditions)
