"""Sources of usage: one round of measurements per call, from metrics.k8s.io or from Prometheus; and what polls them for ever.

Both raise `NoMetrics` with a sentence when the installation has no such source, which is a normal state, and ClusterUnavailable when it has
one that is failing.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol, TypeVar

import msgspec
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException

from grid.core.decoding import prepared
from grid.core.errors import ClusterUnavailable, GridError, NotFound, why_unreached
from grid.core.quantity import millicores, whole
from grid.core.translation import gettext as _
from grid.kube.api import KubeApi
from grid.kube.objects import Metadata
from grid.kube.resources import NODE_METRICS, POD_METRICS, Resource
from grid.kube.slim import Slim
from grid.metrics.expressions import node_cpu, node_memory, pod_cpu, pod_memory, pods_waiting
from grid.metrics.usage import Measured, Usage, UsageStore

logger = logging.getLogger(__name__)

T = TypeVar("T")

PROMETHEUS_SECONDS = 10.0
PERIOD = 15.0  # metrics-server and most Prometheus set-ups measure no more often
ABSENT_PERIOD = 300.0  # metrics may be installed any day, so checking seldom is enough
_FORGET_AFTER = 8  # failed rounds, two minutes: older numbers would mislead
# 5 ms: this API has no pages, and a large cluster's answer would keep the loop from its work for a second.
_DECODED_AT_ONCE = 500


class NoMetrics(GridError):
    """This installation measures no usage; the message says what to do about it."""


class UsageSource(Protocol):
    """Knows the last usage of every node and pod."""

    async def measure(self) -> Measured: ...


class _Consumed(Slim, frozen=True, kw_only=True):
    usage: dict[str, str] = {}


class _Metrics(Slim, frozen=True, kw_only=True):
    metadata: Metadata
    timestamp: str = ""
    usage: dict[str, str] = {}
    containers: tuple[_Consumed, ...] = ()


class _Page(Slim, frozen=True, kw_only=True):
    items: tuple[msgspec.Raw, ...] = ()


class MetricsApi:
    """metrics.k8s.io, as served by metrics-server or the embedded cluster."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    async def measure(self) -> Measured:
        try:
            (nodes, _unused), (pods, pods_at) = await self._read(NODE_METRICS), await self._read(POD_METRICS)
        except NotFound as error:
            sentence = _(
                "This cluster does not measure usage: metrics-server is not installed. Everything else works without it."
            )
            raise NoMetrics(sentence) from error
        return Measured(nodes, pods, pods_at)

    async def measure_pods(self, namespace: str) -> dict[str, Usage]:
        try:
            return (await self._read(POD_METRICS, namespace))[0]
        except NotFound as error:
            raise NoMetrics(_("metrics-server is not installed.")) from error

    async def _read(self, resource: Resource, namespace: str = "") -> tuple[dict[str, Usage], dict[str, float]]:
        """Return what is measured, and when it was, each by the object's key."""
        body = await self._api.list_page(resource, namespace=namespace, limit=0)
        decoder, measured, times = msgspec.json.Decoder(prepared(_Metrics)), dict[str, Usage](), dict[str, float]()
        try:
            items = msgspec.json.decode(body, type=prepared(_Page)).items
            for start in range(0, len(items), _DECODED_AT_ONCE):
                for metrics in map(decoder.decode, items[start : start + _DECODED_AT_ONCE]):
                    if (usage := self._usage(metrics)) is not None:
                        measured[metrics.metadata.key] = usage
                        times[metrics.metadata.key] = _seconds(metrics.timestamp)
                await asyncio.sleep(0)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClusterUnavailable(_("The cluster's answer about usage was not understood.")) from error
        return measured, times

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


def _seconds(timestamp: str) -> float:
    """Return the seconds since 1970; 0 for what is no time, which is then a measurement that nothing tells from others."""
    try:
        moment = datetime.fromisoformat(timestamp)
        return max(0.0, moment.timestamp()) if moment.tzinfo is not None else 0.0
    except ValueError:
        return 0.0


def prometheus_client(base_url: str) -> PrometheusConnect:
    """Return a client of a Prometheus, whose `base_url` may carry a user and password. It does not retry: its callers ask again anyway."""
    return PrometheusConnect(url=base_url.rstrip("/"), timeout=PROMETHEUS_SECONDS, retry=0)


@contextmanager
def answers_expected() -> Iterator[None]:
    """Raise ClusterUnavailable for whatever is raised, without its text, which may hold the URL with its password."""
    try:
        yield
    except PrometheusApiClientException as error:
        raise ClusterUnavailable(_("Prometheus answers with an error; its log says more.")) from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ClusterUnavailable(_("Prometheus cannot be asked: {why}.", why=why_unreached(error))) from error


class Prometheus:
    """A Prometheus that scrapes the kubelets' cAdvisor, asked with five instant queries in a thread. `base_url` may carry a user and
    password; no message ever shows it."""

    def __init__(self, base_url: str, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._client = prometheus_client(base_url)

    async def measure(self) -> Measured:
        return await asyncio.to_thread(self._measure)

    async def measure_pods(self, namespace: str) -> dict[str, Usage]:
        labels = ("namespace", "pod")
        queries = (pod_cpu(namespace), labels), (pod_memory(namespace), labels)
        return await asyncio.to_thread(lambda: self._merged(*self._ask(*queries)))

    def _measure(self) -> Measured:
        node, pod = ("node",), ("namespace", "pod")
        at = self._clock()  # which an instant query answers for
        cpu, memory, cpu_of_pods, memory_of_pods, waiting = self._ask(
            (node_cpu(), node), (node_memory(), node), (pod_cpu(), pod), (pod_memory(), pod), (pods_waiting(), pod)
        )
        pods, times = self._merged(cpu_of_pods, memory_of_pods), dict.fromkeys(cpu_of_pods, at)
        waits = {key: float(percent) for key, percent in waiting.items()}
        measured = Measured(self._merged(cpu, memory), pods, times, waits)
        if measured.nodes or measured.pods:
            return measured
        raise NoMetrics(_("Prometheus answers but knows no containers; it must scrape the kubelets' cAdvisor metrics."))

    def _ask(self, *queries: tuple[str, tuple[str, ...]]) -> list[dict[str, Decimal]]:
        with answers_expected():
            return [_by(self._client.custom_query(query), *labels) for query, labels in queries]

    def _merged(self, cpu: Mapping[str, Decimal], memory: Mapping[str, Decimal]) -> dict[str, Usage]:
        return {
            key: Usage(math.ceil(cpu.get(key, Decimal(0)) * 1000), math.ceil(memory.get(key, Decimal(0))))
            for key in cpu.keys() | memory.keys()
        }


class WithFallback:
    """A Prometheus, and metrics.k8s.io while it does not answer or has not scraped anything: what is used now is known in both."""

    def __init__(self, prometheus: Prometheus, api: MetricsApi) -> None:
        self._prometheus, self._api = prometheus, api
        self._is_away = False

    async def measure(self) -> Measured:
        return await self._first(lambda source: source.measure())

    async def measure_pods(self, namespace: str) -> dict[str, Usage]:
        return await self._first(lambda source: source.measure_pods(namespace))

    async def _first(self, ask: Callable[[Prometheus | MetricsApi], Awaitable[T]]) -> T:
        """Return the first answer. Where the cluster has no metrics, what is wrong is said of Prometheus, which somebody has chosen."""
        try:
            answer = await ask(self._prometheus)
        except GridError as problem:
            if not self._is_away:
                logger.warning("metrics.k8s.io is asked for usage until Prometheus answers reason=%s", str(problem))
            self._is_away = True
            try:
                return await ask(self._api)
            except NoMetrics:
                raise problem from None
        self._is_away = False
        return answer


def _by(answer: Iterable[Mapping[str, Any]], *labels: str) -> dict[str, Decimal]:
    """Return the values of a PromQL vector by their labels; series without all labels or without a number are left out."""
    values = {}
    for series in answer:
        parts = [series.get("metric", {}).get(label, "") for label in labels]
        with suppress(KeyError, IndexError, TypeError, ValueError):
            value = float(series["value"][1])
            if all(parts) and math.isfinite(value):
                values["/".join(parts)] = Decimal(str(series["value"][1]))
    return values


class UsagePoller:
    """Measures usage periodically. `publish` is called after each round that changed the store or its `unavailable` sentence."""

    def __init__(
        self, source: UsageSource, store: UsageStore, publish: Callable[[str], None], rng: random.Random | None = None
    ) -> None:
        self._source, self._store, self._publish = source, store, publish
        self._rng = rng or random.Random()
        self._failures = 0

    async def run(self) -> None:
        """Measure for ever, with about a period between two rounds, at random so that processes do not ask at the same time."""
        while True:
            period = await self._round()
            await asyncio.sleep(period * self._rng.uniform(0.9, 1.1))

    async def _round(self) -> float:
        try:
            measured = await self._source.measure()
        except NoMetrics as reason:
            self._say(str(reason), forget=True, level=logging.INFO)
            return ABSENT_PERIOD
        except Exception as error:
            self._failures += 1
            if isinstance(error, GridError):
                sentence = _("Usage is not being measured: {error}", error=error)
            else:
                logger.exception("measuring usage failed")
                sentence = _("Usage is not being measured: an answer was not understood; the log says more.")
            self._say(sentence, forget=self._failures >= _FORGET_AFTER)
        else:
            if self._failures:
                logger.info("usage is measured again")
            self._failures = 0
            self._store.replace(measured)
            self._publish(self._store.name)
        return PERIOD

    def _say(self, sentence: str, *, forget: bool, level: int = logging.WARNING) -> None:
        if self._store.mark_unavailable(sentence, forget=forget):
            logger.log(level, "no usage reason=%s", sentence)
            self._publish(self._store.name)
