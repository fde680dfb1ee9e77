"""The embedded cluster as a process of its own, on a free port with an empty data folder: started, restarted and ended."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.contract.kubeconfig import read_kubeconfig
from tests.support.ports import free_ports

ROOT = Path(__file__).parents[2]
START_SECONDS = 100.0
STOP_SECONDS = 20.0


class EmbeddedCluster:
    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._folder = folder
        self._port = free_ports()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when the cluster answers /readyz."""
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "grid.settings",
            "GRID_SECRET_KEY": "contract-tests",
            "GRID_VAR": str(self._folder / "var"),
        }
        options = {
            "--data": self._folder / "data",
            "--port": self._port,
            "--kubeconfig": self.kubeconfig,
            "--hpa-sync-seconds": 1,
            "--hpa-down-seconds": 0,
        }
        command = [sys.executable, "manage.py", "sandbox", *(str(each) for pair in options.items() for each in pair)]
        log = self._folder / "sandbox.log"
        with log.open("ab") as output:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
        self._process = process
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            tail = log.read_text(errors="replace")[-4000:]
            assert process.poll() is None, f"the embedded cluster ended with code {process.returncode}:\n{tail}"
            assert time.monotonic() < deadline, f"the embedded cluster was not ready within {START_SECONDS} s:\n{tail}"
            time.sleep(0.1)

    def stop(self) -> None:
        if not self._process:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def restart(self) -> None:
        """Keeps the objects, and forgets the history before them."""
        self.stop()
        self.start()

    def _ready(self) -> bool:
        if not self.kubeconfig.exists():
            return False
        connection = read_kubeconfig(self.kubeconfig)
        authorization = {"Authorization": f"Bearer {connection.token}"}
        request = urllib.request.Request(connection.server + "/readyz", headers=authorization)
        try:
            with urllib.request.urlopen(request, timeout=5, context=connection.tls) as answer:
                return bool(answer.status == 200)
        except OSError:  # refused, reset, timed out, or an HTTP error: not yet
            return False
