"""The stored values of an on-demand cluster beyond those of every execution, and its price; pure.

`ClusterRecord` is a part of `ExecutionRecord`; `Companion` is the other half of a pair that starts and ends together, a workspace
or job and its cluster.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from dashboard.shell.viewmodels.kinds import framework_name
from dashboard.usage.viewmodels.prices import price_words
from grid.core.translation import gettext as _
from grid.core.wording import plural


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """A stored cluster. The workers' tier is the execution's own. The targets are in percent of the requests; 0 means that the
    autoscaler ignores the metric. `wanted_before` has the desired number of workers over the last 20 minutes."""

    framework: str
    version: str
    head_tier_name: str
    head_millicores: int
    head_memory_bytes: int
    head_gpus: int
    head_cost_per_hour: Decimal
    workers_minimum: int
    workers_maximum: int
    autoscale: bool
    target_cpu: int
    target_memory: int
    on_demand: bool
    local_storage: str
    pending_tasks: int | None = None
    wanted_before: tuple[tuple[datetime, int], ...] = ()

    @property
    def framework_name(self) -> str:
        return framework_name(self.framework)


@dataclass(frozen=True, slots=True)
class Companion:
    """The attached cluster of a workspace or job; or, with `cluster` None, the workspace or job of an attached cluster."""

    id: str
    kind: str
    name: str
    object_name: str
    state: str
    node_pool: str = ""
    cluster: ClusterRecord | None = None


@dataclass(frozen=True, slots=True)
class CompanionCard:
    """A companion in words; `sentence` says its present state."""

    id: str
    kind: str
    name: str
    word: str
    severity: str
    sentence: str


def price_now(cluster: ClusterRecord, worker_cost_per_hour: Decimal, *, workers: int) -> str:
    """Return for example "$1.40 an hour with 3 workers"."""
    return _price(cluster, worker_cost_per_hour, workers)


def price_at_bounds(cluster: ClusterRecord, worker_cost_per_hour: Decimal) -> str:
    """Return the prices at the minimum and at the maximum of workers."""
    counts = dict.fromkeys((cluster.workers_minimum, cluster.workers_maximum))
    return ", ".join(_price(cluster, worker_cost_per_hour, count) for count in counts)


def _price(cluster: ClusterRecord, worker_cost_per_hour: Decimal, workers: int) -> str:
    price = price_words(cluster.head_cost_per_hour + worker_cost_per_hour * workers)
    return _("{price} with {workers}", price=price, workers=plural(workers, "worker", "workers"))


def workers_words(minimum: int, maximum: int, *, autoscale: bool) -> str:
    """Return for example "1 to 5 workers, depending on the load" or "3 workers"."""
    if autoscale and maximum > minimum:
        return _(
            "{minimum} to {workers}, depending on the load",
            minimum=minimum,
            workers=plural(maximum, "worker", "workers"),
        )
    return plural(minimum, "worker", "workers")
