"""The one command: up, down, up again, and what happens when somebody pulls the plug."""

import contextlib
import os
import re
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

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


def test_run_prints_logins_and_ends_with_all_its_processes(grid: Grid) -> None:
    grid.began = time.time() - 1000  # as after a long set-up
    grid.start()
    assert re.search(r"is up after 10\d\d\.\d s\.", grid.output)
    assert grid.output.index("Preparing the database") < grid.output.index("Starting the embedded cluster")
    assert f"Open {grid.url}/" in grid.output
    assert grid.password("scientist") in grid.output
    assert stat.S_IMODE((grid.var / "demo-users.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((grid.var / "kubeconfig").stat().st_mode) == 0o600
    with urllib.request.urlopen(f"{grid.url}/login/") as answer:
        assert answer.status == 200
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        processes = grid.processes()
        assert len(processes) >= 3
        grid.interrupt()
        assert alive(processes) == []
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_second_start_finds_what_was_there(grid: Grid) -> None:
    grid.start()
    password = grid.password("scientist")
    wait_until(lambda: len(nodes_of(grid)) == 3, 60, "the first nodes")
    nodes = nodes_of(grid)
    grid.interrupt()
    grid.start()
    assert grid.password("scientist") == password
    assert nodes_of(grid) == nodes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_killed_run_leaves_nothing_that_blocks_the_next(grid: Grid) -> None:
    grid.start()
    processes = grid.processes()
    grid.kill()
    wait_until(lambda: alive(processes) == [], 30, "the end of all its processes")
    grid.start()


def test_each_killed_program_is_started_again(grid: Grid) -> None:
    grid.start()
    for part in ("web", "proxy", "controller", "sandbox"):
        grid.kill_part(part)
    wait_until(lambda: _is_ready(grid), 60, "pages that are live again")


def _is_ready(grid: Grid) -> bool:
    try:
        with urllib.request.urlopen(f"{grid.url}/freshz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_second_run_in_same_folder_is_refused(grid: Grid) -> None:
    grid.start()
    other = run_up(grid, grid.port + 3)
    assert other.returncode == 1
    assert other.stderr.strip().endswith("Compute Grid already runs from this folder. Stop it with Ctrl-C first.")


def test_a_taken_port_is_said_in_one_sentence(grid: Grid) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answer = run_up(grid, taken.getsockname()[1])
    assert answer.returncode == 1
    assert "is in use by another program" in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1


def test_unwritable_folder_is_reported_in_a_sentence() -> None:
    answer = run_up(Grid(Path("/proc/compute-grid")), 1)
    assert answer.returncode == 1
    assert answer.stderr.startswith("CommandError: Cannot write to /proc/compute-grid")
    assert len(answer.stderr.strip().splitlines()) == 1


def test_outdated_python_is_reported_in_a_sentence(tmp_path: Path) -> None:
    """The set-up script runs under a Python that claims to be 3.8, with no newer one to be found."""
    code = (
        "import runpy, sys; sys.version_info = (3, 8, 10); sys.argv = ['setup_environment.py', 'run'];"
        "runpy.run_path('.ci/setup_environment.py', run_name='__main__')"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith("Compute Grid needs Python 3.11 or later, and this is 3.8")
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
