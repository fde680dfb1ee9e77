"""Sources of usage: one round of measurements per call, from metrics.k8s.io or from Prometheus.

Both raise `NoMetrics` with a sentence when the installation has no such source, which is a normal state, and other errors of `grid.errors`
when it has one that is failing.
"""

import asyncio
import logging
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Protocol

import msgspec
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException

from grid.errors import ClusterUnavailable, GridError, NotFound
from grid.kube.api import KubeApi
from grid.kube.objects import Metadata
from grid.kube.resources import NODE_METRICS, POD_METRICS, Resource
from grid.kube.slim import Slim
from grid.metrics.usage import Measured, Usage
from grid.quantity import millicores, whole

logger = logging.getLogger(__name__)

PROMETHEUS_SECONDS = 10.0
# Rates over five minutes and their units, as Kubernetes' own mixins write them; an empty container is the pod's whole cgroup.
NODE_CPU = 'sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[5m]))'
NODE_MEMORY = 'sum by (node) (container_memory_working_set_bytes{id="/"})'
POD_CPU = 'sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[5m]))'
POD_MEMORY = 'sum by (namespace, pod) (container_memory_working_set_bytes{container!="",container!="POD"})'


class NoMetrics(GridError):
    """This installation measures no usage; the message says what to do about it."""


class UsageSource(Protocol):
    async def measure(self) -> Measured:
        """Return the last known usage of every node and pod."""
        ...


class _Consumed(Slim, frozen=True, kw_only=True):
    usage: dict[str, str] = {}


class _Metrics(Slim, frozen=True, kw_only=True):
    metadata: Metadata
    usage: dict[str, str] = {}
    containers: tuple[_Consumed, ...] = ()


class _Page(Slim, frozen=True, kw_only=True):
    items: tuple[msgspec.Raw, ...] = ()


# 5 ms: this API has no pages, and a large cluster's answer would keep the loop from its work for a second.
_DECODED_AT_ONCE = 500


class MetricsApi:
    """metrics.k8s.io, as served by metrics-server or the embedded cluster."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    async def measure(self) -> Measured:
        try:
            nodes, pods = await self._read(NODE_METRICS), await self._read(POD_METRICS)
        except NotFound as error:
            raise NoMetrics(
                "This cluster does not measure usage: metrics-server is not installed. Everything else works without it."
            ) from error
        return Measured(nodes, pods)

    async def measure_pods(self, namespace: str) -> dict[str, Usage]:
        """Return the last known usage of one namespace's pods."""
        try:
            return await self._read(POD_METRICS, namespace)
        except NotFound as error:
            raise NoMetrics("metrics-server is not installed.") from error

    async def _read(self, resource: Resource, namespace: str = "") -> dict[str, Usage]:
        body = await self._api.list_page(resource, namespace=namespace, limit=0)
        decoder, measured = msgspec.json.Decoder(_Metrics), dict[str, Usage]()
        try:
            items = msgspec.json.decode(body, type=_Page).items
            for start in range(0, len(items), _DECODED_AT_ONCE):
                for one in map(decoder.decode, items[start : start + _DECODED_AT_ONCE]):
                    if (usage := self._usage(one)) is not None:
                        measured[one.metadata.key] = usage
                await asyncio.sleep(0)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClusterUnavailable("The cluster's answer about usage was not understood.") from error
        return measured

    def _usage(self, measured: _Metrics) -> Usage | None:
        """Return the usage of a node or pod, None when it cannot be read; a pod's is the sum of its containers'."""
        parts = [measured.usage] if measured.usage else [container.usage for container in measured.containers]
        try:
            return Usage(
                cpu_millicores=sum(millicores(part.get("cpu", "0")) for part in parts),
                memory_bytes=sum(whole(part.get("memory", "0")) for part in parts),
            )
        except ValueError as error:
            logger.warning("unreadable usage skipped object=%s reason=%s", measured.metadata.key, error)
            return None


class Prometheus:
    """A Prometheus that scrapes the kubelets' cAdvisor, asked with four instant queries in a thread.

    `base_url` may carry a user and password; no message ever shows it.
    """

    def __init__(self, base_url: str) -> None:
        # No retries inside the library: the poller's own rhythm is the right one.
        self._client = PrometheusConnect(url=base_url.rstrip("/"), timeout=PROMETHEUS_SECONDS, retry=0)

    async def measure(self) -> Measured:
        node, pod = ("node",), ("namespace", "pod")
        node_cpu, node_memory, pod_cpu, pod_memory = await self._ask(
            (NODE_CPU, node), (NODE_MEMORY, node), (POD_CPU, pod), (POD_MEMORY, pod)
        )
        measured = Measured(self._merged(node_cpu, node_memory), self._merged(pod_cpu, pod_memory))
        if not measured.nodes and not measured.pods:
            raise NoMetrics(
                "Prometheus answers but knows no containers; it must scrape the kubelets' cAdvisor metrics."
            )
        return measured

    async def measure_pods(self, namespace: str) -> dict[str, Usage]:
        """Return the last known usage of one namespace's pods; the name comes from the settings, and is one of Kubernetes."""
        cpu, memory = (query.replace("{", f'{{namespace="{namespace}",', 1) for query in (POD_CPU, POD_MEMORY))
        return self._merged(*await self._ask((cpu, ("namespace", "pod")), (memory, ("namespace", "pod"))))

    async def _ask(self, *queries: tuple[str, tuple[str, ...]]) -> list[dict[str, Decimal]]:
        """Return the values of each query by the labels that are named with it."""
        try:
            answers = await asyncio.to_thread(lambda: [self._client.custom_query(query) for query, _ in queries])
            return [_by(answer, *labels) for answer, (_, labels) in zip(answers, queries, strict=True)]
        except (OSError, PrometheusApiClientException, ValueError, LookupError, TypeError, AttributeError) as error:
            # Everything that the library and its HTTP raise; the last four come of answers of an unexpected shape.
            # Their texts may hold the URL with a password in it.
            raise ClusterUnavailable(f"Prometheus does not answer as it should ({type(error).__name__}).") from error

    def _merged(self, cpu: Mapping[str, Decimal], memory: Mapping[str, Decimal]) -> dict[str, Usage]:
        return {
            key: Usage(
                cpu_millicores=math.ceil(cpu.get(key, Decimal(0)) * 1000),
                memory_bytes=math.ceil(memory.get(key, Decimal(0))),
            )
            for key in cpu.keys() | memory.keys()
        }


def _by(answer: Iterable[Mapping[str, Any]], *labels: str) -> dict[str, Decimal]:
    """Return the values of a PromQL vector by their labels; series without all labels or without a number are left out."""
    found = {}
    for series in answer:
        parts = [series.get("metric", {}).get(label, "") for label in labels]
        value = Decimal(str(series["value"][1])) if _is_number(series) else None
        if all(parts) and value is not None:
            found["/".join(parts)] = value
    return found


def _is_number(series: Mapping[str, Any]) -> bool:
    try:
        return math.isfinite(float(series["value"][1]))
    except (KeyError, IndexError, TypeError, ValueError):
        return False
