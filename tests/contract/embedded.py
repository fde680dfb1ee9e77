"""Starts the embedded cluster as a process of its own, on a free port with an empty data folder, and ends it again."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0
STOP_SECONDS = 20.0


@contextmanager
def embedded_cluster(folder: Path) -> Iterator[Path]:
    """Yields the kubeconfig of a cluster that answers /readyz."""
    kubeconfig, log = folder / "kubeconfig", folder / "sandbox.log"
    command = [sys.executable, "manage.py", "sandbox", "--data", str(folder / "data"), "--port", str(_free_port())]
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "grid.settings",
        "GRID_SECRET_KEY": "contract-tests",
        "GRID_VAR": str(folder / "var"),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(kubeconfig)],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_ready(process, kubeconfig, log)
        yield kubeconfig
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_until_ready(process: "subprocess.Popen[bytes]", kubeconfig: Path, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _ready(kubeconfig):
        output = log.read_text(errors="replace")[-4000:]
        assert process.poll() is None, f"the embedded cluster ended with code {process.returncode}:\n{output}"
        assert time.monotonic() < deadline, f"the embedded cluster was not ready within {START_SECONDS} s:\n{output}"
        time.sleep(0.1)


def _ready(kubeconfig: Path) -> bool:
    if not kubeconfig.exists() or not (config := yaml.safe_load(kubeconfig.read_text())):
        return False
    try:
        with urllib.request.urlopen(config["clusters"][0]["cluster"]["server"] + "/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
