"""`make run` with the machine's Prometheus: it scrapes the cluster and us, the pages have its charts, and its end ends nothing else."""

import json
import urllib.parse
import urllib.request
from typing import Any

import psutil
import pytest

from grid.sandbox.prometheus import installed
from tests.end_to_end.grid import Grid, Session
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not installed(), reason="needs Debian's package prometheus"),
]
JOBS = {
    "cadvisor",
    "kube-state-metrics",
    "apiserver",
    "compute-grid-web",
    "compute-grid-proxy",
    "compute-grid-controller",
}


def asked(grid: Grid, path: str, **query: str) -> Any:
    """Return what its API answers, None while it does not."""
    address = f"http://127.0.0.1:{grid.port + 4}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


def healthy(grid: Grid) -> set[str]:
    """Return the jobs of which it reaches each target."""
    targets = (asked(grid, "targets") or {"activeTargets": []})["activeTargets"]
    jobs = {target["labels"]["job"] for target in targets}
    return jobs - {target["labels"]["job"] for target in targets if target["health"] != "up"}


def programs(grid: Grid) -> dict[int, psutil.Process]:
    """Return what the supervisor runs."""
    assert grid.process is not None
    return {process.pid: process for process in psutil.Process(grid.process.pid).children()}


def test_pages_have_charts_and_its_end_ends_nothing_else(grid: Grid) -> None:
    grid.has_prometheus, grid.node_idle_seconds = True, 3600
    grid.start()
    assert f"Prometheus, for charts of use over time: http://127.0.0.1:{grid.port + 4}/" in grid.output
    wait_until(lambda: healthy(grid) >= JOBS, 120, "the first scrape of everything")
    node = grid.kubectl("get", "nodes", "-o", "name").split()[0].removeprefix("node/")
    operator = Session(grid, "operator")

    def charts() -> dict[str, Any]:
        return dict(json.loads(operator.get(f"/nodes/{node}/use/?range=1h"))["charts"])

    wait_until(lambda: all(charts()[name]["lines"] for name in ("cpu", "filesystem")), 120, "charts of the node")
    before = programs(grid)
    victim = next(process for process in before.values() if process.name() == "prometheus")
    victim.kill()
    wait_until(lambda: healthy(grid) >= JOBS, 120, "another Prometheus that scrapes everything")
    assert programs(grid).keys() >= before.keys() - {victim.pid}, "everything else has gone on"
