"""Our nodes joined to a real control plane, for the tests that look at both; the cluster is left as it was found."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.end_to_end.real import ADMIN, RealGrid
from tests.support.waiting import wait_until

NAMESPACE = "sandbox-tests"


@contextmanager
def joined(folder: Path) -> Iterator[RealGrid]:
    grid = RealGrid(folder, Path(ADMIN))
    grid.wait_until_alone(NAMESPACE)
    with ExitStack() as ending:  # the last comes first; each whatever became of the others
        ending.callback(grid.try_kubectl, "delete", "nodes", "--all")
        ending.callback(grid.stop, "nodes")
        ending.callback(grid.try_kubectl, "delete", "namespace", NAMESPACE, "--wait", "--timeout=60s")
        start_nodes(grid)
        grid.kubectl("create", "namespace", NAMESPACE)
        yield grid


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
