"""The one command: up, down, up again, and what happens when somebody pulls the plug."""

import contextlib
import re
import socket
import stat
import subprocess
import sys
import time
import urllib.request

import psutil
import pytest

from tests.end_to_end.grid import ROOT, Grid
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def nodes_of(grid: Grid) -> list[str]:
    return sorted(grid.kubectl("get", "nodes", "-o", "name").split())


def alive(processes: list[psutil.Process]) -> list[str]:
    running = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                running.append(str(process))
    return running


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_run_ends_with_its_processes_and_next_goes_on(grid: Grid) -> None:
    grid.began = time.time() - 1000  # as after a long set-up
    grid.start()
    assert re.search(r"is up after 10\d\d\.\d s\.", grid.output)
    assert grid.output.index("Preparing the database") < grid.output.index("Starting the embedded cluster")
    assert f"Open {grid.url}/" in grid.output
    assert (password := grid.password("scientist")) in grid.output
    for name in ("demo-users.json", "kubeconfig"):
        assert stat.S_IMODE((grid.var / name).stat().st_mode) == 0o600
    with urllib.request.urlopen(f"{grid.url}/login/") as answer:
        assert answer.status == 200
    other = run_up(grid, grid.port + 3)
    assert other.returncode == 1
    assert other.stderr.strip().endswith("Compute Grid already runs from this folder. Stop it with Ctrl-C first.")
    wait_until(lambda: len(nodes_of(grid)) == 3, 60, "the first nodes")
    nodes, processes = nodes_of(grid), grid.processes()
    assert len(processes) >= 3
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as bystander:
        try:
            grid.interrupt()
            assert alive(processes) == []
            assert bystander.poll() is None
        finally:
            bystander.kill()

    grid.start()
    assert grid.password("scientist") == password
    assert nodes_of(grid) == nodes
    processes = grid.processes()
    grid.kill()
    wait_until(lambda: alive(processes) == [], 30, "the end of all processes of a killed run")
    grid.start()


def test_a_taken_port_is_said_in_one_sentence(grid: Grid) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answer = run_up(grid, taken.getsockname()[1])
    assert answer.returncode == 1
    assert "is in use by another program" in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1


def run_up(grid: Grid, port: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "up", "--port", str(port)],
        cwd=ROOT,
        env=grid.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
