"""A cluster in words: its stored values beyond those of every execution, its price, its problems, and what a restart loses; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from dashboard.executions.viewmodels.execution import Companion, ExecutionRecord, KindRecord
from dashboard.executions.viewmodels.node_reasons import NodeReasons, node_reasons
from dashboard.shell.viewmodels.format import size_words
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import framework_name
from dashboard.usage.viewmodels.usage import price_words
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.diagnosis import Diagnosis


@dataclass(frozen=True, slots=True)
class ClusterRecord(KindRecord):
    """A stored cluster. Targets are in percent of the requests, 0 for none; `wanted_before` is of the last 20 minutes."""

    framework: str
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
        price = price_words(self.head_cost_per_hour + worker_cost_per_hour * workers)
        return _("{price} with {workers}", price=price, workers=plural(workers, "worker", "workers"))


def cluster_of(record: ExecutionRecord | Companion) -> ClusterRecord | None:
    return record.kind_record if isinstance(record.kind_record, ClusterRecord) else None


def workers_words(minimum: int, maximum: int, *, autoscale: bool) -> str:
    """Return for example "1 to 5 workers, depending on the load" or "3 workers"."""
    if autoscale and maximum > minimum:
        workers = plural(maximum, "worker", "workers")
        return _("{minimum} to {workers}, depending on the load", minimum=minimum, workers=workers)
    return plural(minimum, "worker", "workers")


_LOST = {
    "dask": (
        _("The scheduler forgets every task and every result that is not written to a file; running work is lost."),
        _("Workers connect to the new scheduler by themselves, with empty memory."),
        _("In notebooks, make a new Client() and start the computation again."),
    ),
    "ray": (
        _("All jobs, actors and objects of this cluster are lost: only the head knows where they are."),
        _("Workers end with the head and start again by themselves."),
        _("In notebooks, call ray.shutdown() and ray.init() again, and start the work again."),
    ),
    "spark": (
        _(
            "The master forgets the applications that are registered; their executors end, and what they had cached is lost."
        ),
        _("Workers register with the new master by themselves."),
        _("A running cell would wait for ever: interrupt it, stop the SparkSession and build it again."),
    ),
}
_KEPT = _("The project's files, the cluster's address, its number of workers and its history are kept.")


def lost_by_restart(framework: str) -> tuple[str, ...]:
    """Return sentences about what is lost; the last one says what is kept."""
    unknown = (_("Everything that is only in the head's memory is lost, and the workers' unfinished work with it."),)
    return (*_LOST.get(framework, unknown), _KEPT)


_WHO = {
    "you": _("You can change this."), "admin": _("Your admin can change this."), "operator": _("An operator can help."),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trouble:
    diagnosis: Diagnosis
    word: str
    who: str
    reasons: NodeReasons | None = None


def troubles(diagnoses: Sequence[Diagnosis], *, is_operator: bool, sees_all: bool = False) -> Fragment:
    """Return a card for each diagnosis; an operator is not advised to ask an operator. Only who `sees_all` is led to pages about nodes."""
    cards = []
    for diagnosis in diagnoses:
        reasons = node_reasons(diagnosis, sees_all=sees_all)
        # The table of the nodes says itself who can change something.
        is_known = reasons is not None or (diagnosis.who == "operator" and is_operator)
        word = _("Problem") if diagnosis.severity == "problem" else _("Note")
        cards.append(Trouble(diagnosis, word, "" if is_known else _WHO.get(diagnosis.who, ""), reasons))
    return Fragment("troubles", "clusters/fragments/troubles.html", tuple(cards))
