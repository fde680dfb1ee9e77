"""A real Prometheus that scrapes the embedded cluster while a real process works in a pod: points come through to what asks for them."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from grid.core.errors import GridError
from grid.core.labels import NODE_POOL
from grid.metrics.expressions import in_columns, node_columns, pods_columns
from grid.metrics.history import PrometheusHistory
from grid.metrics.sources import Prometheus
from grid.metrics.usage import Measured
from grid.sandbox.client import PODS, Client
from grid.sandbox.kubelet import FleetSettings
from grid.sandbox.pools import DEFAULT_POOLS, NodePool
from grid.sandbox.prometheus import prepare
from tests.sandbox.machines import embedded_cluster
from tests.support.prometheus import MISSING, PROGRAM, SECONDS, RealPrometheus

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.skipif(not PROGRAM, reason=MISSING)]
CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
POOL = NodePool(name="work", instance_type="small", capacity=CAPACITY, minimum=1, maximum=1, initial=1)
# Works, holds 64 MiB, and writes to the disk for good.
_WORK = """
import os
kept = bytearray(os.urandom(1)) * (64 * 2**20)
while True:
    with open("written", "wb") as file:
        file.write(kept[:2**20])
        file.flush()
        os.fsync(file.fileno())
"""


@dataclass(frozen=True, slots=True)
class Scraped:
    kubeconfig: Path
    prometheus: RealPrometheus


@pytest.fixture
async def scraped(tmp_path: Path, real_prometheus: RealPrometheus) -> AsyncIterator[Scraped]:
    """An embedded cluster with one node of the pool "work", and the Prometheus that scrapes it."""
    pools, fleet = (DEFAULT_POOLS[0], POOL), FleetSettings(boot_seconds=0.0, ready_seconds=0.0)
    async with embedded_cluster(tmp_path, pools=pools, fleet=fleet) as kubeconfig:
        prepare(tmp_path / "prometheus", kubeconfig, port=0, seconds=1)
        written = yaml.safe_load((tmp_path / "prometheus" / "prometheus.yml").read_text())
        try:
            await asyncio.to_thread(real_prometheus.follow, written)
            yield Scraped(kubeconfig, real_prometheus)
        finally:
            await asyncio.to_thread(real_prometheus.follow, {})


async def until_known(ask: Callable[[], Awaitable[object]], scraped: Scraped) -> None:
    """Ask until the answer is true; a Prometheus that still starts is no answer."""
    deadline = time.monotonic() + SECONDS
    while True:
        answer: object = None
        try:
            answer = await ask()
        except GridError as error:
            problem: object = error
        else:
            problem = "nothing is known"
        if answer:
            return
        assert not scraped.prometheus.is_hopeless(deadline), f"{problem}\n{scraped.prometheus.log()}"
        await asyncio.sleep(0.2)


async def test_real_process_is_measured_in_present_and_past(scraped: Scraped) -> None:
    resources = {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}}
    container = {"name": "run", "image": "compute-grid/test:1", "command": ["python3", "-c", _WORK]}
    spec = {"nodeSelector": {NODE_POOL: "work"}, "containers": [{**container, "resources": resources}]}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "busy"},
        "spec": {**spec, "terminationGracePeriodSeconds": 1},
    }
    async with Client.from_kubeconfig(scraped.kubeconfig) as client:
        await client.create(PODS.path("default"), body)
        url = scraped.prometheus.url
        source, history = Prometheus(url), PrometheusHistory(url, pool_label=NODE_POOL)
        measured = Measured({}, {})

        async def present() -> bool:
            nonlocal measured
            measured = await source.measure()
            pod = measured.pods.get("default/busy")
            return pod is not None and pod.cpu_millicores > 0 and pod.memory_bytes > 64 * 2**20

        await until_known(present, scraped)
        pod = (await client.get(PODS.path("default", "busy")))["spec"]
        assert measured.nodes[pod["nodeName"]].memory_bytes >= measured.pods["default/busy"].memory_bytes

        async def past() -> bool:
            now = int(time.time() // 60)
            known = await asyncio.to_thread(history.read, "work", now - 5, now + 1, 1)
            newest = known[max(known)] if known else {}
            return newest.get("requested_millicores") == 500 and newest.get("used_mebibytes", 0) > 64

        await until_known(past, scraped)

        async def charts() -> bool:
            now, measured = int(time.time() // 60), {}
            for name, columns in (("pod", pods_columns("default", "busy")), ("node", node_columns(pod["nodeName"]))):
                known = await asyncio.to_thread(history.ask, in_columns(columns), now - 5, now + 1, 1)
                measured[name] = known[max(known)] if known else {}
            of_pod, of_node = measured["pod"], measured["node"]
            assert not {"throttled", "received", "gpu"} & (of_pod.keys() | of_node.keys()), "which nobody measures"
            written = of_pod.get("written", 0) > 0 and of_node.get("written", 0) > 0
            return written and of_pod.get("memory_limit") == 2**29 and of_node.get("cpu_limit", 0) > 0

        await until_known(charts, scraped)
