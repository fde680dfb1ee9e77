"""One real Prometheus for all tests of a session that ask one; each says what it is to scrape."""

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
import yaml

from tests.support.ports import free_ports

PROGRAM = shutil.which("prometheus")
SECONDS = 90.0
MISSING = "needs Debian's package prometheus"
PROMTOOL = shutil.which("promtool")


class RealPrometheus:
    """A server that scrapes nothing until it is told what."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_ports(1)
        self._file = folder / "prometheus.yml"
        self._write({})
        assert PROGRAM is not None, MISSING
        command = [PROGRAM, f"--config.file={self._file}", f"--storage.tsdb.path={folder / 'data'}"]
        command += [f"--web.listen-address=127.0.0.1:{self._port}", "--web.enable-lifecycle", "--log.level=warn"]
        with (folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def follow(self, configuration: Mapping[str, Any]) -> None:
        """Scrape by this configuration from now on, and nothing of an earlier one; what was scraped stays."""
        deadline = time.monotonic() + SECONDS
        self._write(configuration)
        while True:
            try:
                with urlopen(Request(f"{self.url}/-/reload", method="POST"), timeout=SECONDS):
                    return
            except URLError as error:  # it is still starting, or the configuration is wrong
                assert not self.is_hopeless(deadline), f"{error}\n{self.log()}"
                time.sleep(0.1)

    def is_hopeless(self, deadline: float) -> bool:
        return time.monotonic() > deadline or self._process.poll() is not None

    def log(self) -> str:
        return (self._folder / "prometheus.log").read_text()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _write(self, configuration: Mapping[str, Any]) -> None:
        self._file.write_text(yaml.safe_dump(configuration))


def complaints(metrics: str) -> str:
    """What `promtool check metrics` says against names, units and format; "" when nothing."""
    if PROMTOOL is None:
        pytest.skip("promtool is not installed; it comes with Debian's package prometheus")
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=metrics, capture_output=True, text=True, timeout=60)
    return (done.stdout + done.stderr).strip() if done.returncode else ""
