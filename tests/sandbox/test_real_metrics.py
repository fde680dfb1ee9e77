"""A real control plane sees what our nodes' pods use: `kubectl top`, and a real HorizontalPodAutoscaler that follows real work.

Needs a cluster of its own without nodes: REAL_KUBECONFIG names the kubeconfig of its administrator.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from grid.sandbox.client import Object
from tests.end_to_end.real import ADMIN, RealGrid, needs_real_cluster
from tests.sandbox.machines import busy_workers, worker_autoscaler
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_real_cluster]
NAMESPACE = "sandbox-tests"


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[RealGrid]:
    """Our nodes joined to the real control plane, which is left as it was found."""
    grid = RealGrid(tmp_path, Path(ADMIN))
    grid.wait_until_alone(NAMESPACE)
    with ExitStack() as ending:  # the last comes first; each whatever became of the others
        ending.callback(grid.try_kubectl, "delete", "nodes", "--all")
        ending.callback(grid.stop, "nodes")
        ending.callback(grid.try_kubectl, "delete", "namespace", NAMESPACE, "--wait", "--timeout=60s")
        start_nodes(grid)
        grid.kubectl("create", "namespace", NAMESPACE)
        yield grid


def start_nodes(grid: RealGrid) -> None:
    grid.start_nodes("--metrics-server")
    # Seen by the API server itself: the condition may still be that of the last time.
    path = "/apis/metrics.k8s.io/v1beta1"
    wait_until(lambda: grid.try_kubectl("get", "--raw", path).returncode == 0, 60, "metrics that are available")


def objects(busy: Path) -> list[Object]:
    workers = busy_workers(busy, "100m")
    del workers["metadata"]["namespace"]
    return [workers, worker_autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})]


def test_busy_workers_become_more_and_idle_ones_fewer(grid: RealGrid, tmp_path: Path) -> None:
    busy, manifest = tmp_path / "busy", tmp_path / "objects.json"
    busy.touch()
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects(busy)}))
    grid.kubectl("apply", "-n", NAMESPACE, "-f", str(manifest))
    wait_until(lambda: "worker-" in grid.try_kubectl("top", "pods", "-n", NAMESPACE).stdout, 120, "kubectl top pods")
    _, cpu, memory = grid.kubectl("top", "pods", "-n", NAMESPACE, "--no-headers").splitlines()[0].split()
    assert cpu.endswith("m") and memory.endswith("Mi")
    assert len(grid.kubectl("top", "nodes", "--no-headers").splitlines()) == 3
    wait_until(lambda: replicas(grid) == 3, 120, "three busy workers")
    reasons = grid.kubectl("get", "events", "-n", NAMESPACE, "-o", "jsonpath={.items[*].message}")
    assert "cpu resource utilization (percentage of request) above target" in reasons

    # Killed, the next one puts itself in the place of the old one, which has left an API that nobody serves.
    killed = grid._parts.pop("nodes")
    killed.kill()
    killed.wait()
    start_nodes(grid)
    wait_until(lambda: "worker-" in grid.try_kubectl("top", "pods", "-n", NAMESPACE).stdout, 60, "kubectl top again")
    busy.unlink()
    wait_until(lambda: replicas(grid) == 1, 180, "one idle worker")
    grid.stop("nodes")
    assert "v1beta1.metrics.k8s.io" not in grid.kubectl("get", "apiservices", "-o", "name")
    start_nodes(grid)


def replicas(grid: RealGrid) -> int:
    return int(grid.kubectl("get", "deployment", "worker", "-n", NAMESPACE, "-o", "jsonpath={.spec.replicas}"))
