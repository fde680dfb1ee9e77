"""The past of the node pools from a Prometheus that scrapes kube-state-metrics and the kubelets' cAdvisor.

kube-state-metrics must be allowed to tell the nodes' pool label (`--metric-labels-allowlist=nodes=[LABEL]`); else it knows no pools, and
nothing is found.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException

from grid.errors import ClusterUnavailable
from grid.metrics.sources import NODE_CPU, NODE_MEMORY, PROMETHEUS_SECONDS

Column = str
_LIVING = 'max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Running"} == 1)'
_MEBIBYTE = 2**20


class PrometheusHistory:
    """Asks for all columns of a pool in one range query. `base_url` may carry a user and password; no message ever shows it."""

    def __init__(self, base_url: str, *, pool_label: str) -> None:
        self._client = PrometheusConnect(url=base_url.rstrip("/"), timeout=PROMETHEUS_SECONDS, retry=0)
        self._label = metric_label(pool_label)

    def read(self, pool: str | None, first: int, last: int, step: int) -> dict[int, dict[Column, int]]:
        """Return the known columns of `PoolSample` each `step` minutes, by minute; of all pools together with None. It blocks; call it in a
        thread. Raise ClusterUnavailable."""
        start, end = (datetime.fromtimestamp(minute * 60, UTC) for minute in (first, last))
        try:
            answer = self._client.custom_query_range(self.query(pool), start, end, f"{step * 60}s")
            return _by_minute(answer)
        except (OSError, PrometheusApiClientException, ValueError, LookupError, TypeError, AttributeError) as error:
            # As in `Prometheus.measure`: their texts may hold the URL with a password in it.
            raise ClusterUnavailable(f"Prometheus does not answer as it should ({type(error).__name__}).") from error

    def query(self, pool: str | None) -> str:
        """Return one expression for all columns, told apart by the label `column`."""
        chosen = f'{self._label}="{_escaped(pool)}"' if pool is not None else ""
        nodes = f"group by (node) (kube_node_labels{{{chosen}}})"

        def on_nodes(each: str) -> str:
            return f"sum({each} * on (node) group_left () {nodes})"

        def requested(resource: str) -> str:
            asked = f"kube_pod_container_resource_requests{{resource{resource}}}"
            return on_nodes(f"sum by (node) ({asked} * on (namespace, pod) group_left () {_LIVING})")

        def allocatable(resource: str) -> str:
            return on_nodes(f"sum by (node) (kube_node_status_allocatable{{resource{resource}}})")

        ready = 'max by (node) (kube_node_status_condition{condition="Ready",status="true"})'
        cpu, memory, gpu = '="cpu"', '="memory"', '=~".+_gpu"'
        columns = {
            "nodes": f"count({nodes})",
            "nodes_ready": on_nodes(ready),
            "requested_millicores": f"1000 * {requested(cpu)}",
            "allocatable_millicores": f"1000 * {allocatable(cpu)}",
            "used_millicores": f"1000 * {on_nodes(NODE_CPU)}",
            "requested_mebibytes": f"{requested(memory)} / {_MEBIBYTE}",
            "allocatable_mebibytes": f"{allocatable(memory)} / {_MEBIBYTE}",
            "used_mebibytes": f"{on_nodes(NODE_MEMORY)} / {_MEBIBYTE}",
            "requested_gpus": requested(gpu),
            "allocatable_gpus": allocatable(gpu),
        }
        return " or ".join(f'label_replace({each}, "column", "{name}", "", "")' for name, each in columns.items())


def metric_label(label: str) -> str:
    """Return the name that kube-state-metrics gives a Kubernetes label: snake case, and "_" for what Prometheus does not take."""
    snake = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", label).lower()
    return "label_" + re.sub(r"[^a-z0-9_]", "_", snake)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _by_minute(answer: list[Mapping[str, Any]]) -> dict[int, dict[Column, int]]:
    found: dict[int, dict[Column, int]] = {}
    for series in answer:
        column = series["metric"]["column"]
        for at, text in series["values"]:
            value = float(text)
            if math.isfinite(value):
                found.setdefault(round(float(at) / 60), {})[column] = max(0, round(value))
    return found
