"""A real control plane sees what our nodes' pods use: `kubectl top`, and a real HorizontalPodAutoscaler that follows real work.

Needs a cluster of its own without nodes: REAL_KUBECONFIG names the kubeconfig of its administrator.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.real import RealGrid, needs_real_cluster
from tests.sandbox.real import NAMESPACE, apply, joined, start_nodes
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_real_cluster]

# Works while the file is there, on one core as much as it gets.
_WORKER = """
import os, sys, time
while True:
    if os.path.exists(sys.argv[1]):
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            pass
    else:
        time.sleep(0.05)
"""


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[RealGrid]:
    with joined(tmp_path) as grid:
        yield grid


def objects(busy: Path) -> list[object]:
    container = {
        "name": "run",
        "image": "compute-grid/test:1",
        "command": ["python3", "-c", _WORKER, str(busy)],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    template = {
        "metadata": {"labels": {"app": "worker"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "worker"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "worker"}}, "template": template},
    }
    target = {"type": "Utilization", "averageUtilization": 60}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "worker"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }
    return [deployment, scaler]


def test_busy_workers_become_more_and_idle_ones_fewer(grid: RealGrid, tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    busy.touch()
    apply(grid, objects(busy))
    wait_until(lambda: "worker-" in grid.try_kubectl("top", "pods", "-n", NAMESPACE).stdout, 120, "kubectl top pods")
    _, cpu, memory = grid.kubectl("top", "pods", "-n", NAMESPACE, "--no-headers").splitlines()[0].split()
    assert cpu.endswith("m")
    assert memory.endswith("Mi")
    assert len(grid.kubectl("top", "nodes", "--no-headers").splitlines()) == 3
    wait_until(lambda: replicas(grid) == 3, 120, "three busy workers")
    reasons = grid.kubectl("get", "events", "-n", NAMESPACE, "-o", "jsonpath={.items[*].message}")
    assert "cpu resource utilization (percentage of request) above target" in reasons

    # Killed, the next one puts itself in the place of the old one, which has left an API that nobody serves.
    kill(grid)
    start_nodes(grid)
    wait_until(
        lambda: "worker-" in grid.try_kubectl("top", "pods", "-n", NAMESPACE).stdout, 60, "kubectl top pods again"
    )
    busy.unlink()
    wait_until(lambda: replicas(grid) == 1, 180, "one idle worker")
    grid.stop("nodes")
    assert "v1beta1.metrics.k8s.io" not in grid.kubectl("get", "apiservices", "-o", "name")
    start_nodes(grid)


def replicas(grid: RealGrid) -> int:
    return int(grid.kubectl("get", "deployment", "worker", "-n", NAMESPACE, "-o", "jsonpath={.spec.replicas}"))


def kill(grid: RealGrid) -> None:
    process = grid._parts.pop("nodes")
    process.kill()
    process.wait()
