"""A framework's programs as real processes of this machine, each with a loopback address of its own: what a kubelet would make of them."""

import contextlib
import itertools
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from grid.clusters.frameworks.base import LOCAL_PATH, ClusterReport, FrameworkSilent, Program
from grid.executions.spec import ExecutionSpec
from grid.sandbox.kubelet.environment import expand, expand_all
from grid.sandbox.kubelet.mounts import Mounts
from tests.support.waiting import eventually

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Other tests of other runs use other networks; the last number is the pod's.
_NETWORK = f"127.{os.getpid() // 250 % 250 + 2}.{os.getpid() % 250 + 2}"


@dataclass
class Container:
    """A running program. `environment` is what its hooks see as well."""

    name: str
    address: str
    program: Program
    environment: dict[str, str]
    mounts: Mounts
    process: subprocess.Popen[bytes]
    log: Path

    def run_hook(self, seconds: float) -> int:
        """Its pre-stop command, as the kubelet would run it; the exit code."""
        command = [self.mounts.rewrite(word) for word in expand_all(self.program.pre_stop, self.environment)]
        return subprocess.run(command, env=self.environment, timeout=seconds, check=False).returncode

    def end(self, seconds: float = 15) -> None:
        """SIGTERM, and SIGKILL for whoever stays."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(seconds)

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")


@dataclass
class Machine:
    """Starts containers with the programs of `image` and ends them all."""

    folder: Path
    image: Path
    spec: ExecutionSpec
    containers: dict[str, Container] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def address(self) -> str:
        """One that nobody else has."""
        return f"{_NETWORK}.{next(self._numbers)}"

    def start(self, name: str, program: Program, address: str = "") -> Container:
        address = address or self.address()
        root = self.folder / name
        (root / "local").mkdir(parents=True, exist_ok=True)
        mounts = Mounts({LOCAL_PATH: str(root / "local")})
        environment = {
            "PATH": f"{self.image / 'bin'}:{_SYSTEM_PATH}",
            "HOME": str(root),
            "LANG": "C.UTF-8",
            "POD_IP": address,
            "POD_NAME": name,
            # A dozen short-lived Java processes spend more on compiling well than they gain by it.
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        }
        for key, value in program.variables.items():
            environment[key] = mounts.rewrite(expand(value, environment))
        log = root / "log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [mounts.rewrite(word) for word in expand_all(program.command, environment)],
                env=environment,
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        container = Container(name, address, program, environment, mounts, process, log)
        self.containers[name] = container
        return container

    def end_all(self) -> None:
        left = [
            psutil.Process(container.process.pid)
            for container in self.containers.values()
            if container.process.poll() is None
        ]
        below = [child for process in left for child in process.children(recursive=True)]
        for container in reversed(self.containers.values()):
            container.end()
        for child in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


async def reported(
    ask: Callable[[], Awaitable[ClusterReport]], what: str, *, holds: Callable[[ClusterReport], bool], within: float
) -> ClusterReport:
    """The first report for which something holds; at first a head may be silent."""

    async def report() -> ClusterReport | None:
        try:
            return await ask()
        except FrameworkSilent:
            return None

    return await eventually(report, what, holds=lambda seen: seen is not None and holds(seen), within=within)
