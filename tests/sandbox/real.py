"""Our nodes joined to a real control plane, for the tests that look at both; the cluster is left as it was found."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.grid import wait_until
from tests.end_to_end.real import ADMIN, RealGrid

NAMESPACE = "sandbox-tests"


@contextmanager
def joined(folder: Path) -> Iterator[RealGrid]:
    grid = RealGrid(folder, Path(ADMIN))
    strangers = grid.kubectl("get", "nodes", "-o", "name")
    assert not strangers, f"This test wants a cluster of its own, and this one has {' '.join(strangers.split())}."
    start_nodes(grid)
    try:
        grid.kubectl("create", "namespace", NAMESPACE)
        yield grid
    finally:
        grid.try_kubectl("delete", "namespace", NAMESPACE, "--wait", "--timeout=60s")
        grid.stop("nodes")
        grid.try_kubectl("delete", "nodes", "--all")


def start_nodes(grid: RealGrid) -> None:
    places = ["--data", str(grid.folder / "machine"), "--images", str(grid.folder / "images")]
    command = ["sandbox", "--kubelet-only", "--metrics-server", "--kubeconfig", str(grid.admin), *places]
    grid.start("nodes", command, grid.settings())
    wait_until(lambda: len(grid.ready_nodes()) == 3, 60, "three nodes that are Ready")
    wait_until(lambda: _serves_metrics(grid), 60, "metrics that are available")


def _serves_metrics(grid: RealGrid) -> bool:
    """Seen by the API server itself: the condition may still be that of the last time."""
    return grid.try_kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1").returncode == 0


def apply(grid: RealGrid, objects: Sequence[object]) -> None:
    manifest = grid.folder / "objects.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    grid.kubectl("apply", "-n", NAMESPACE, "-f", str(manifest))
