"""An embedded cluster of its own process for benchmarks: containers only simulated, nodes there from the start, requests counted.

    python -m benchmarks.embedded FOLDER NODES

The nodes are not scaled, so that waiting for machines is no part of what is measured.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import aiohttp

from grid.kube.credentials import CredentialSource
from grid.sandbox.client import Client
from grid.sandbox.cluster import EmbeddedClusterSettings, run_cluster
from grid.sandbox.kubelet import FleetSettings
from grid.sandbox.pools import DEFAULT_POOLS, NodePool

AGENT = "benchmark"
_LINE = re.compile(
    r'apiserver_request_total\{client="([^"]*)",verb="([^"]*)",group="[^"]*",resource="([^"]*)",subresource="([^"]*)"\} (\d+)'
)
_CAPACITY = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1000Gi", "pods": "110"}
_TICKS = os.sysconf("SC_CLK_TCK")


class Request(NamedTuple):
    client: str
    verb: str
    resource: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process has used since its start."""

    cpu_seconds: float
    peak_mib: float

    @classmethod
    def of(cls, pid: int) -> "Spent":
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return cls((int(fields[11]) + int(fields[12])) / _TICKS, int(peak.split()[1]) / 1024)


@contextmanager
def process(
    command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that is ended with the block; what it says goes into the file."""
    with log.open("ab") as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **(env or {})})
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(30)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextmanager
def embedded(folder: Path, nodes: int) -> Iterator[Path]:
    """The kubeconfig of a cluster that runs until the block ends."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "benchmarks.embedded", str(folder), str(nodes)]
    with process(command, log=folder / "sandbox.log") as started:
        deadline = time.monotonic() + 120
        while not kubeconfig.exists():
            assert started.poll() is None, (folder / "sandbox.log").read_text()
            assert time.monotonic() < deadline, "the embedded cluster does not start"
            time.sleep(0.1)
        yield kubeconfig


def client(kubeconfig: Path) -> Client:
    """The benchmark's own, whose requests are told apart from others'."""
    return Client.from_kubeconfig(kubeconfig, user_agent=AGENT)


async def requests(kubeconfig: Path) -> Counter[Request]:
    """All requests since the start, by who asked; subresources as "pods/status"."""
    place = await CredentialSource(str(kubeconfig)).load()
    headers = {"Authorization": await place.authorization() or "", "User-Agent": AGENT}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.get(f"{place.server}/metrics", ssl=place.tls or True) as answer,
    ):
        text = await answer.text()
    requests: Counter[Request] = Counter()
    for who, verb, resource, subresource, count in _LINE.findall(text):
        requests[Request(who, verb, f"{resource}/{subresource}" if subresource else resource)] += int(count)
    return requests


async def _run(folder: Path, nodes: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    pool = NodePool("default", "benchmark", _CAPACITY, minimum=nodes, maximum=nodes, initial=nodes)
    settings = EmbeddedClusterSettings(
        data=folder / "data",
        port=0,
        kubeconfig=folder / "kubeconfig",
        images=folder / "images",
        pools=[DEFAULT_POOLS[0], pool],
        fleet=FleetSettings(boot_seconds=0.1, ready_seconds=0.1, simulated=True),
    )
    await run_cluster(settings, stop, lambda url: None)


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), int(sys.argv[2])))
