"""What clusters of an execution need of our nodes, with a real control plane: Services, drained workers, volumes of their own.

Needs a cluster of its own without nodes: REAL_KUBECONFIG names the kubeconfig of its administrator.
"""

import json
from collections.abc import Iterator

import pytest

from grid.sandbox.client import Object
from tests.end_to_end.real import RealGrid, needs_real_cluster
from tests.sandbox.real import NAMESPACE, apply, joined
from tests.sandbox.serviceproxy.test_with_cluster import client_pod, deployment
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_real_cluster]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGrid]:
    with joined(tmp_path_factory.mktemp("nodes")) as grid:
        yield grid


def get(grid: RealGrid, kind: str, name: str) -> Object:
    resource: Object = json.loads(grid.kubectl("get", kind, name, "-n", NAMESPACE, "-o", "json"))
    return resource


def phase(grid: RealGrid, name: str) -> str:
    return str(get(grid, "pod", name)["status"].get("phase"))


def test_a_client_reaches_pods_through_their_service(grid: RealGrid) -> None:
    spec = {"selector": {"app": "head"}, "ports": [{"port": 18786, "targetPort": "comm"}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "head"}, "spec": spec}
    apply(grid, [service, deployment(2)])
    wait_until(lambda: get(grid, "deployment", "head")["status"].get("readyReplicas") == 2, 60, "two heads")
    address = get(grid, "service", "head")["spec"]["clusterIP"]
    apply(grid, [client_pod("asks", address, 2)])
    wait_until(lambda: phase(grid, "asks") == "Succeeded", 60, "answers of both")
    ended = get(grid, "pod", "asks")["status"]["containerStatuses"][0]["state"]["terminated"]
    heads = grid.kubectl("get", "pods", "-n", NAMESPACE, "-l", "app=head", "-o", "jsonpath={.items[*].metadata.name}")
    assert sorted(ended["message"].split()) == sorted(heads.split())


def test_draining_pod_runs_hook_and_ends_within_grace(grid: RealGrid) -> None:
    output = grid.folder / "said"
    hook = {"exec": {"command": ["sh", "-c", f"echo $TASK drained > {output}"]}}
    container = {
        "name": "run",
        "image": "compute-grid/test:1",
        "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done"],
        "env": [{"name": "TASK", "value": "worker"}],
        "lifecycle": {"preStop": hook},
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 20}
    apply(grid, [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker"}, "spec": spec}])
    wait_until(lambda: phase(grid, "worker") == "Running", 60, "a worker")
    grid.kubectl("delete", "pod", "worker", "-n", NAMESPACE, "--timeout=19s")
    assert output.read_text() == "worker drained\n"


def test_ephemeral_volume_comes_and_goes_with_a_pod(grid: RealGrid) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    container = {
        "name": "run",
        "image": "compute-grid/test:1",
        "command": ["sh", "-c", "echo kept > /mnt/local/x; sleep 600"],
        "volumeMounts": [{"name": "scratch", "mountPath": "/mnt/local"}],
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    spec = {"containers": [container], "volumes": [volume], "terminationGracePeriodSeconds": 1}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "scratches"}, "spec": spec}
    path = grid.folder / "dry.json"
    path.write_text(json.dumps(pod))
    if grid.try_kubectl("apply", "-n", NAMESPACE, "--dry-run=server", "-f", str(path)).returncode:
        pytest.skip("this server's generic ephemeral volumes are switched off")
    apply(grid, [pod])
    wait_until(lambda: phase(grid, "scratches") == "Running", 60, "a pod with a volume of its own")
    wait_until(lambda: bool(list(grid.folder.rglob("scratch/x"))), 20, "what it wrote")
    grid.kubectl("delete", "pod", "scratches", "-n", NAMESPACE, "--timeout=30s")
    assert not list(grid.folder.rglob("scratch/x"))
    wait_until(
        lambda: not grid.kubectl("get", "pvc", "-n", NAMESPACE, "-o", "name"), 30, "a claim that went with its pod"
    )
