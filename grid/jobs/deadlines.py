"""Tells owners of jobs whose timeout is about to end them. Kubernetes counts it from the pod's start, so the pods are looked at."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from grid.core.translation import gettext as _
from grid.core.wording import duration, exact_duration
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.executions.caches import execution_of
from grid.kube.objects import Pod
from grid.models import Execution, StopWarning
from grid.notifications.outbox import tell_of_coming_stop
from grid.projects.departures import LIVES

WARNED_BEFORE = timedelta(minutes=10)
LONG = timedelta(hours=1)  # whoever sets a shorter timeout does not go away meanwhile
LOOK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a timeout ends an execution, and how long the timeout is."""

    at: datetime
    timeout: timedelta


def coming_deadlines(pods: Iterable[Pod], now: datetime) -> Mapping[str, Deadline]:
    """Return by execution which deadlines come soon (pure)."""
    deadlines = {}
    for pod in pods:
        limit, started = timedelta(seconds=pod.spec.active_deadline_seconds or 0), pod.status.start_time
        if limit <= LONG or started is None or pod.metadata.deletion_timestamp is not None:
            continue
        if pod.status.phase in ("Pending", "Running") and now < started + limit <= now + WARNED_BEFORE:
            deadlines[execution_of(pod)] = Deadline(started + limit, limit)
    return deadlines


def tell_deadlines(deadlines: Mapping[str, Deadline], *, now: datetime) -> None:
    """Tell each owner once; of what is being stopped anyway nothing is told."""
    warned = StopWarning.objects.filter(execution__in=deadlines).values("execution")
    living = Execution.objects.filter(LIVES, pk__in=deadlines).exclude(pk__in=warned).order_by()
    for id in living.values_list("pk", flat=True):
        with transaction.atomic():
            _unused, is_first = StopWarning.objects.get_or_create(execution_id=id, defaults={"at": now})
            if is_first:
                tell_of_coming_stop(id, _sentence(deadlines[id], now), now=now)


def _sentence(deadline: Deadline, now: datetime) -> str:
    timeout = exact_duration(int(deadline.timeout.total_seconds()))
    sentence = _(
        "Its timeout of {timeout} ends it in {wait}, at {end:%H:%M} UTC. "
        "What it has written to the project's files stays. Give the job a longer timeout before its next run."
    )
    return sentence.format(timeout=timeout, wait=duration(deadline.at - now), end=deadline.at)


class DeadlineWatch:
    def __init__(self, pods: Callable[[], Collection[Pod]], database: Database, clock: Callable[[], datetime]) -> None:
        self._pods, self._database, self._clock = pods, database, clock
        self._told: frozenset[str] = frozenset()

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("timeout warnings", LOOK_SECONDS, self.run_once)

    async def run_once(self) -> None:
        """Tell of the deadlines that have come near since the last run."""
        now = self._clock()
        coming = coming_deadlines(self._pods(), now)
        news = {id: deadline for id, deadline in coming.items() if id not in self._told}
        if news:
            await self._database(tell_deadlines, news, now=now)
        self._told = frozenset(coming)
