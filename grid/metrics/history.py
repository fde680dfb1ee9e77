"""The past of node pools, nodes, pods and executions from a Prometheus that scrapes kube-state-metrics and the kubelets' cAdvisor.

kube-state-metrics must be allowed to tell the nodes' pool label (`--metric-labels-allowlist=nodes=[LABEL]`); else it knows no pools, and
nothing is found.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from grid.metrics.expressions import in_columns, metric_label, pool_columns
from grid.metrics.sources import answers_expected, prometheus_client

Column = str


class PrometheusHistory:
    """Asks for all columns of a pool in one range query. `base_url` may carry a user and password; no message ever shows it."""

    def __init__(self, base_url: str, *, pool_label: str) -> None:
        self._client = prometheus_client(base_url)
        self._label = metric_label(pool_label)

    def read(self, pool: str | None, first: int, last: int, step: int) -> dict[int, dict[Column, int]]:
        """Return the known columns of `PoolSample` by minute, each `step` minutes; of all pools together with None. It blocks; call it in a
        thread. Raise ClusterUnavailable."""
        minutes = self.ask(self.query(pool), first, last, step).items()
        return {minute: {name: max(0, round(value)) for name, value in known.items()} for minute, known in minutes}

    def ask(self, query: str, first: int, last: int, step: int) -> dict[int, dict[Column, float]]:
        """Return what an expression with the label `column` was each `step` minutes, by minute. It blocks; call it in a thread. Raise
        ClusterUnavailable."""
        start, end = (datetime.fromtimestamp(minute * 60, UTC) for minute in (first, last))
        with answers_expected():
            return _by_minute(self._client.custom_query_range(query, start, end, f"{step * 60}s"))

    def query(self, pool: str | None) -> str:
        """Return one expression for all columns, told apart by the label `column`."""
        return in_columns(pool_columns(pool, self._label))


def _by_minute(answer: list[Mapping[str, Any]]) -> dict[int, dict[Column, float]]:
    columns = defaultdict[int, dict[Column, float]](dict)
    for series in answer:
        column = series["metric"]["column"]
        for at, text in series["values"]:
            if math.isfinite(value := float(text)):
                columns[round(float(at) / 60)][column] = value
    return dict(columns)
