"""The disk of var/ fills up while all runs: people and clients are told, what runs goes on, and with room so does everything."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.grid import Grid, Session, ending
from tests.support.smalldisk import fill, small_disk
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

WORKSPACE = {
    "kind": "workspace",
    "project": "churn",
    "title": "On a full disk",
    "environment": "jupyterlab",
    "tier": "small",
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "before", "namespace": "default"},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "compute-grid/test:1",
                "command": ["sh", "-c", "while true; do date; sleep 0.2; done"],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
        ]
    },
}


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with small_disk(tmp_path / "disk", "160m") as disk:
        if disk is None:
            pytest.skip("only root may mount a disk of a certain size")
        with ending(Grid(disk / "var")) as grid:
            yield grid


def test_all_are_told_and_nothing_is_lost(grid: Grid, tmp_path: Path) -> None:
    grid.start()
    scientist = Session(grid, "scientist")
    manifest = tmp_path / "pod.json"
    manifest.write_text(json.dumps(POD))
    grid.kubectl("apply", "-f", str(manifest))
    wait_until(lambda: pod(grid)["status"].get("phase") == "Running", 120, "a pod that runs")
    ballast = fill(grid.var.parent)

    with pytest.raises(urllib.error.HTTPError) as refused:
        for _ in range(20):  # some still find room in pages that were begun
            scientist.launch(WORKSPACE)
    assert refused.value.code == 503
    assert "The disk of the database is full: nothing was saved. An operator has to make room." in (
        refused.value.read().decode()
    )
    assert ready(grid) == 503
    with pytest.raises(AssertionError, match=r"cluster\.sqlite3 is full, nothing was saved: make room there"):
        for number in range(200):
            grid.kubectl("create", "configmap", f"more-{number}", f"--from-literal=text={'x' * 5000}")
    assert pod(grid)["status"]["phase"] == "Running"

    ballast.unlink()
    wait_until(lambda: ready(grid) == 200, 30, "readiness")
    launched = scientist.launch(WORKSPACE)
    wait_until(lambda: scientist.state(launched) not in ("Queued", "Deploying"), 120, "a controller that works on")
    (container,) = pod(grid)["status"]["containerStatuses"]
    assert (container["restartCount"], container["ready"]) == (0, True)
    printed = "".join(file.read_text() for file in (grid.var / "log").iterdir())
    assert "Traceback" not in printed


def pod(grid: Grid) -> Any:
    return json.loads(grid.kubectl("get", "pod", "before", "-o", "json"))


def ready(grid: Grid) -> int:
    try:
        with urllib.request.urlopen(f"{grid.url}/readyz", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code
