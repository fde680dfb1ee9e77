"""The tests' side of `tests.browser.server`: start it, play scenes in it, kill it, start it again."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 100.0
SCENE_SECONDS = 30.0


class StageProcess:
    """One server at one address; its database outlives a restart, its cluster in memory does not."""

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        tls: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """With `tls`, a file with a key and its certificate, it is reached by https and under another `host`."""
        self._folder, self._environment = folder, environment or {}
        self._port = free_ports()
        self._host, self._tls = host, tls
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self._port}"

    def start(self) -> None:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "GRID_TEST_VAR": str(self._folder),
            "GRID_DASHBOARD_ORIGIN": self.url,
            "GRID_ALLOWED_HOSTS": self._host,
            **({"GRID_TEST_TLS": str(self._tls)} if self._tls else {}),
            **self._environment,
            "GRID_WORKSPACE_ORIGIN": f"http://localhost:{self._port}",
        }
        with (self._folder / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.browser.server", str(self._port)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._answer(START_SECONDS)

    def ensure_started(self) -> None:
        """Also after a test that failed while its server was killed."""
        if self._process is None or self._process.poll() is not None:
            self.kill()
            self.start()

    def kill(self) -> None:
        """At once, as when a machine fails."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def play(self, scene: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        """Run the scene in the server's process and return what it returns."""
        assert self._process is not None, "start it first"
        assert self._process.stdin is not None
        order = {"scene": f"{scene.__module__}:{scene.__qualname__}", "arguments": arguments}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._answer(SCENE_SECONDS)
        if "error" in answer:
            raise AssertionError(f"scene {order['scene']} failed: {answer['error']}")
        return answer["result"]

    def log(self) -> str:
        return (self._folder / "server.log").read_text()

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if readable else ""
        if not line:
            self.kill()  # an answer that comes late would be taken for the next scene's
            raise AssertionError(f"the server said nothing in {seconds:g} s; its log ends:\n{self.log()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
