"""Changes that are found again wherever they are shown: each carries a number of its own.

A pod's number is its restart count, a node's the end of its instance type. Every latency is counted from the moment at which a bare
watch of the benchmark's own process gets the event; all clocks are the machine's monotonic one.
"""

import asyncio
import base64
import json
import os
import re
import ssl
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from grid.core.labels import INSTANCE_TYPE

FIRST = 100_000  # numbers of six digits are found in a message by themselves
STEP = 7  # a container that the population lets crash counts one further, and must not be taken for the next
_NUMBER = re.compile(r"(?<!\d)1\d{5}(?!\d)")
# Other numbers of six digits are among what the API server sends, such as resource versions.
_FIELD = re.compile(r'"restartCount": ?(1\d{5})\b|m5\.16xlarge-(1\d{5})"')
_MERGE = {"Content-Type": "application/merge-patch+json"}


@dataclass
class Arrivals:
    """When each number was seen first, in seconds; those that have not been sent are none of ours."""

    sent: set[int] = field(default_factory=set)
    events: dict[int, float] = field(default_factory=dict)
    kubectl: dict[int, float] = field(default_factory=dict)

    def note(self, into: dict[int, float], text: str) -> None:
        """What a person's program shows."""
        self._note(into, _NUMBER.findall(text))

    def note_event(self, text: str) -> None:
        """What the API server sends."""
        self._note(self.events, (pod or node for pod, node in _FIELD.findall(text)))

    def _note(self, into: dict[int, float], numbers: Iterable[str]) -> None:
        now = time.perf_counter()
        for number in map(int, numbers):
            if number in self.sent:
                into.setdefault(number, now)

    def delays(self, seen: dict[int, float], expected: Iterable[int] | None = None) -> list[float]:
        """Seconds from the event on; of what was expected there, if only that counts."""
        numbers = seen if expected is None else seen.keys() & set(expected)
        return [seen[number] - self.events[number] for number in numbers if number in self.events]


def connect(kubeconfig: Path) -> tuple[str, aiohttp.ClientSession]:
    """Address of the API server and a session that may use it."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    token = next(user["user"]["token"] for user in config["users"] if user["name"].endswith("admin"))
    trusted = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    connector = aiohttp.TCPConnector(ssl=trusted, limit=0)
    return cluster["server"], aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {token}"})


@dataclass(frozen=True, slots=True)
class Cluster:
    """The API server, as this benchmark asks it."""

    server: str
    http: aiohttp.ClientSession
    kubeconfig: Path

    async def pod(self, namespace: str, name: str) -> dict[str, Any] | None:
        async with self.http.get(f"{self.server}/api/v1/namespaces/{namespace}/pods/{name}") as answer:
            read = await answer.json()
        # The rest is let go: thousands are held.
        return {part: read[part] for part in ("metadata", "status")} if answer.status == 200 else None

    async def mark_pod(self, pod: dict[str, Any], number: int) -> bool:
        """Whether it is there still. `pod` as it was read."""
        first, *others = pod["status"]["containerStatuses"]
        statuses = [{**first, "restartCount": number}, *others]
        path = f"namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
        return await self._patch(path, {"status": {"containerStatuses": statuses}})

    async def mark_node(self, name: str, number: int) -> bool:
        return await self._patch(f"nodes/{name}", {"metadata": {"labels": {INSTANCE_TYPE: f"m5.16xlarge-{number}"}}})

    async def follow(self, path: str, arrivals: Arrivals) -> None:
        """Watch from now on, and note when each number comes."""
        forever = aiohttp.ClientTimeout(total=None)
        url = f"{self.server}/api/v1/{path}"
        async with self.http.get(url, params={"limit": "1"}) as answer:
            now = (await answer.json())["metadata"]["resourceVersion"]
        params = {"watch": "1", "resourceVersion": now}
        async with self.http.get(url, params=params, timeout=forever, read_bufsize=2**22) as answer:
            async for line in answer.content:
                arrivals.note_event(line.decode())

    async def follow_with_kubectl(self, command: Sequence[str], arrivals: Arrivals) -> None:
        """`kubectl get -w` of these arguments."""
        process = await asyncio.create_subprocess_exec(
            *(str(Path(sys.executable).parent / "kubectl"), "get", *command, "-w"),
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                arrivals.note(arrivals.kubectl, line.decode())
        finally:
            process.kill()
            await process.wait()

    async def _patch(self, path: str, body: dict[str, Any]) -> bool:
        async with self.http.patch(f"{self.server}/api/v1/{path}", data=json.dumps(body), headers=_MERGE) as answer:
            text = await answer.text()
            assert answer.status in (200, 404), text
            return answer.status == 200


@asynccontextmanager
async def running(*tasks: "asyncio.Task[Any]") -> AsyncIterator[None]:
    """End them with the block."""
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def percentile(values: Sequence[float], share: float) -> float:
    if len(values) < 2:
        return values[0] if values else float("nan")
    return statistics.quantiles(values, n=1000, method="inclusive")[round(share * 1000) - 1]


def say_delays(name: str, delays: Sequence[float], remark: str = "") -> None:
    """One row: p50, p95, p99 and the longest in milliseconds."""
    shares = " | ".join(f"{percentile(delays, share) * 1000:8.1f}" for share in (0.5, 0.95, 0.99))
    print(f"{name:<34} | {shares} | {max(delays, default=float('nan')) * 1000:8.1f} | {remark}", flush=True)


def say_head(unit: str = "ms") -> None:
    print(f"{f'event at the API server to, {unit}':<34} | {'p50':>8} | {'p95':>8} | {'p99':>8} | {'longest':>8} |")
