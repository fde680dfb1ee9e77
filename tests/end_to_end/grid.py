"""A whole Compute Grid as its users start it: real processes, real ports, a folder of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psutil

from tests.support.ports import free_ports
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
# Pulling JupyterLab takes a minute and is the same for every test; the first one does it, for real.
IMAGES = Path(os.environ.get("GRID_TEST_IMAGES") or ROOT / "var" / "test-images")


NAMESPACE = "compute-grid"


def claim_of(name: str) -> dict[str, Any]:
    """Return a claim as a launch makes it (`grid.executions.storage`)."""
    size = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteMany"], "resources": size}
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


START_SECONDS = 240.0  # on a machine on which others start too; two cores alone take 15


class Place(Protocol):
    """A Compute Grid that one can log in to."""

    @property
    def url(self) -> str: ...

    def folder_of(self, claim: str) -> Path:
        """Return the directory of a volume claim of the executions' namespace on this machine; it is made when it is not there."""
        ...

    def password(self, username: str) -> str: ...

    def kubectl(self, *arguments: str) -> str: ...


@dataclass
class Grid:
    """`start` returns when the address is printed; `output` is what the terminal shows."""

    var: Path
    port: int = field(default_factory=lambda: free_ports(8))
    node_idle_seconds: int = 60
    began: float | None = None  # when `make run` says that it began
    images: Path = IMAGES
    population: Sequence[str] = ()  # arguments of `manage.py up`, such as --nodes 40
    has_prometheus: bool = False  # started beside it where the machine has one; what few tests need
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def folder_of(self, claim: str) -> Path:
        file = self.var.with_suffix(f".{claim}.json")
        file.write_text(json.dumps(claim_of(claim)))
        with contextlib.suppress(AssertionError):  # a launch has made it
            self.kubectl("create", "-f", str(file))
        find = ("get", "pvc", claim, "-n", NAMESPACE, "-o", "jsonpath={.spec.volumeName}")
        wait_until(lambda: bool(self.kubectl(*find)), 30, f"a volume of {claim}")
        folder = self.var / "cluster" / "machine" / "volumes" / self.kubectl(*find)
        wait_until(folder.is_dir, 30, f"the directory of {claim}")
        return folder

    @property
    def terminal(self) -> Path:
        return self.var.with_suffix(".terminal")

    def environment(self) -> dict[str, str]:
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(("GRID_", "DJANGO_"))}
        for name in ("KUBECONFIG", "DATABASE_URL"):
            inherited.pop(name, None)
        prometheus = {} if self.has_prometheus else {"GRID_PROMETHEUS_URL": ""}
        return {**inherited, **prometheus, "GRID_DEMO": "1", "GRID_VAR": str(self.var), "GRID_IMAGES": str(self.images)}

    def start(self, *, seconds: float = START_SECONDS) -> float:
        """Start it and give the seconds until it said that it is up."""
        started = time.monotonic()
        with self.terminal.open("wb") as terminal:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "manage.py", "up", "--port", str(self.port)),
                    *("--node-idle-seconds", str(self.node_idle_seconds)),
                    *(("--began", str(self.began)) if self.began is not None else ()),
                    *self.population,
                ],
                cwd=ROOT,
                env=self.environment(),
                stdout=terminal,
                stderr=subprocess.STDOUT,
            )
        wait_until(lambda: "Stop with Ctrl-C" in self.output or self.has_ended, seconds, f"a start:\n{self.output}")
        assert not self.has_ended, self.output
        return time.monotonic() - started

    @property
    def output(self) -> str:
        return self.terminal.read_text() if self.terminal.exists() else ""

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def processes(self) -> list[psutil.Process]:
        """The supervisor's children and all of theirs, as they are now."""
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pull_the_plug(self) -> None:
        """Nothing of it gets to end in order, as when the machine fails."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)  # or it starts again what is killed
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.kill()

    def kill_part(self, part: str, *, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Kill one of the programs and wait until the supervisor has started it again; `meanwhile` is called at once."""
        victim = next(process for process in self.processes() if part in process.cmdline())
        victim.kill()
        meanwhile()
        wait_until(lambda: self._runs_anew(part, victim), 20, f"a new {part}")

    def _runs_anew(self, part: str, victim: psutil.Process) -> bool:
        is_running = False
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                is_running = is_running or (part in process.cmdline() and process.pid != victim.pid)
        return is_running

    def password(self, username: str) -> str:
        accounts = json.loads((self.var / "demo-users.json").read_text())
        return next(str(account["password"]) for account in accounts if account["username"] == username)

    def kubectl(self, *arguments: str) -> str:
        """What kubectl prints, against the embedded cluster."""
        kubectl = Path(sys.executable).parent / "kubectl"
        environment = {**os.environ, "KUBECONFIG": str(self.var / "kubeconfig")}
        answer = subprocess.run([kubectl, *arguments], env=environment, capture_output=True, text=True, timeout=60)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@contextlib.contextmanager
def ending(grid: Grid) -> Iterator[Grid]:
    """It has ended when the block has, whatever happened."""
    try:
        yield grid
    finally:
        if grid.process is not None and not grid.has_ended:
            try:
                grid.interrupt()
            except subprocess.TimeoutExpired:
                grid.kill()  # its programs end with it
                raise
