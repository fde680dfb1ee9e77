"""The stored values of an on-demand cluster beyond those of every execution, and its price; pure."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from dashboard.executions.viewmodels.execution import Companion, ExecutionRecord
from dashboard.executions.viewmodels.kind_record import KindRecord
from dashboard.shell.viewmodels.format import size_words
from dashboard.shell.viewmodels.states import framework_name
from dashboard.usage.viewmodels.usage import price_words
from grid.core.translation import gettext as _
from grid.core.wording import plural


@dataclass(frozen=True, slots=True)
class ClusterRecord(KindRecord):
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

    has_members = True

    @property
    def framework_name(self) -> str:
        return framework_name(self.framework)

    @property
    def words(self) -> str:
        return _("{framework} cluster", framework=self.framework_name)

    @property
    def open_word(self) -> str:
        return _("Open {framework_name}", framework_name=self.framework_name)

    @property
    def head(self) -> tuple[str, str]:
        return self.head_tier_name, size_words(self.head_millicores, self.head_memory_bytes, self.head_gpus)

    def prices(self, cost_per_hour: Decimal, *, workers: int, has_started: bool) -> tuple[str, str]:
        """Before a cluster starts, the price is that of its minimum; one of a fixed size has no bounds."""
        workers = workers if has_started else max(workers, self.workers_minimum)
        is_fixed = self.workers_minimum == self.workers_maximum
        return self._price(cost_per_hour, workers), "" if is_fixed else self.price_at_bounds(cost_per_hour)

    def slots_words(self, slots: int) -> str:
        return _("{slots}: one for the head, one for each worker that it may have", slots=slots)

    def price_at_bounds(self, worker_cost_per_hour: Decimal) -> str:
        counts = dict.fromkeys((self.workers_minimum, self.workers_maximum))
        return ", ".join(self._price(worker_cost_per_hour, count) for count in counts)

    def _price(self, worker_cost_per_hour: Decimal, workers: int) -> str:
        """Return for example "$1.40 an hour with 3 workers"."""
        price = price_words(self.head_cost_per_hour + worker_cost_per_hour * workers)
        return _("{price} with {workers}", price=price, workers=plural(workers, "worker", "workers"))


def cluster_of(record: ExecutionRecord | Companion) -> ClusterRecord | None:
    return record.kind_record if isinstance(record.kind_record, ClusterRecord) else None


def workers_words(minimum: int, maximum: int, *, autoscale: bool) -> str:
    """Return for example "1 to 5 workers, depending on the load" or "3 workers"."""
    if autoscale and maximum > minimum:
        return _(
            "{minimum} to {workers}, depending on the load",
            minimum=minimum,
            workers=plural(maximum, "worker", "workers"),
        )
    return plural(minimum, "worker", "workers")
