"""Counts what projects with a budget spend, tells people of the lines that are reached, and stops what is to be stopped.

The leading controller does it every half minute. Two at once count the same, and the row of the month says who tells it: one of them.

It is one statement (`dailyusage.held`), which sees one moment: what ends, or is deleted, meanwhile is counted once.
"""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal

from django.db import transaction
from django.db.models import QuerySet

from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.executions.stopping import BUDGET_USED_UP, request_stop
from grid.models import BudgetMonth, Execution, JobRun, ProjectBudget, State
from grid.notifications.outbox import tell_of_budget, tell_of_coming_stop
from grid.projects.departures import BY, LIVES
from grid.usage import dailyusage
from grid.usage.budgets.closing import budget_of, budgets
from grid.usage.budgets.rules import GRACE, Budget, coming_stop_sentence, month_of, stop_sentence, warning_sentence

logger = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
_PLACES = Decimal("0.0001")
Spent = dict[str, Decimal]  # by project
_HOUR = 3600


def spent(projects: Collection[str], now: datetime) -> Spent:
    """Return what each project has spent in the month of `now` until then."""
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    keys = ("project_id", "price_per_hour")
    for project, price, seconds, *_ in dailyusage.held(
        keys, month_of(now), now.astimezone(UTC).date(), now, project__in=projects
    ):
        sums[project] += price * seconds
    return {project: sums[project] / _HOUR for project in projects}


def count(*, now: datetime) -> None:
    """Count what was spent, tell of lines that are reached, and stop what is due."""
    by_project = budgets()
    months = _stored(spent(by_project, now), now) if by_project else {}
    for id, budget in by_project.items():
        _act(budget, months[id], now)


@transaction.atomic
def set_budget(row: ProjectBudget, *, now: datetime) -> None:
    """Store a budget and count at once what is spent, so that it is in force. Its lines are new ones: they are told again when reached."""
    row.save()
    # Runs that wait are tried again: it may be for the budget.
    JobRun.objects.filter(job__project=row.project_id, outcome="", next_attempt_at__gt=now).update(next_attempt_at=now)
    BudgetMonth.objects.filter(project=row.project_id, month=month_of(now)).update(warned_at=None, stopped_at=None)
    if row.amount is not None:
        month = _stored(spent([row.project_id], now), now)[row.project_id]
        _act(budget_of(row), month, now)


def _stored(spent: Mapping[str, Decimal], now: datetime) -> Mapping[str, BudgetMonth]:
    """Write what changed, and return the rows of the month by project."""
    month = month_of(now)
    rows = {row.project_id: row for row in BudgetMonth.objects.filter(project__in=spent, month=month)}
    changed = []
    for id, amount in spent.items():
        row = rows.setdefault(id, BudgetMonth(project_id=id, month=month))
        counted = amount.quantize(_PLACES, rounding=ROUND_DOWN)
        if row.pk is None or row.spent != counted:
            row.spent, row.counted_at = counted, now
            changed.append(row)
    BudgetMonth.objects.bulk_create(
        [BudgetMonth(project_id=row.project_id, month=month, spent=row.spent, counted_at=now) for row in changed],
        update_conflicts=True,
        unique_fields=["project", "month"],
        update_fields=["spent", "counted_at"],
    )
    return rows


def _act(budget: Budget, row: BudgetMonth, now: datetime) -> None:
    if budget.is_closed(row.spent):
        if row.stopped_at is None:
            _tell_stop(budget, row, now)
        elif budget.stops_running and now - row.stopped_at >= GRACE:
            _stop_running(budget, now)
        return
    if row.stopped_at is not None:
        # Less was spent than was thought: when the line is reached, it is told, with time to act.
        _month(row).filter(stopped_at=row.stopped_at).update(stopped_at=None)
    elif budget.is_near(row.spent) and row.warned_at is None:
        _tell_warning(budget, row, now)


@transaction.atomic
def _tell_warning(budget: Budget, row: BudgetMonth, now: datetime) -> None:
    if _is_current(budget) and _month(row).filter(warned_at=None).update(warned_at=now):
        tell_of_budget(budget.project_id, warning_sentence(budget, row.spent, row.month), now=now)


@transaction.atomic
def _tell_stop(budget: Budget, row: BudgetMonth, now: datetime) -> None:
    """Tell of the stop line, and of the warning line if it is reached at once; whoever runs something is told of its stop, if chosen."""
    if not _is_current(budget):
        return
    if not _month(row).filter(stopped_at=None).update(stopped_at=now, warned_at=row.warned_at or now):
        return
    logger.info("project=%s has reached the stop line of its budget", budget.project_id)
    tell_of_budget(budget.project_id, stop_sentence(budget, row.spent, row.month), now=now)
    if budget.stops_running:
        why = coming_stop_sentence(budget, row.spent, row.month, now)
        for id in _running(budget).values_list("pk", flat=True):
            tell_of_coming_stop(id, why, now=now)


def _stop_running(budget: Budget, now: datetime) -> None:
    for execution in _running(budget):
        with transaction.atomic():
            if not _is_current(budget):
                return
            request_stop(execution, by=BY, reason=BUDGET_USED_UP, now=now)
        logger.info("execution=%s ends, the budget of its project is used up", execution.pk)


def _is_current(budget: Budget) -> bool:
    """Return whether no admin has changed the budget since it was read, and let nobody change it until this transaction ends."""
    stored = ProjectBudget.objects.select_for_update(no_key=True).filter(pk=budget.project_id).first()
    return stored is not None and stored.amount is not None and budget_of(stored) == budget


def _running(budget: Budget) -> QuerySet[Execution]:
    """Return what runs in the project, without what waits for a slot, and clusters that end with what they are attached to."""
    rows = Execution.objects.unsettled().filter(LIVES, project=budget.project_id, attached_to=None)
    return rows.exclude(state=State.QUEUED).order_by("requested_at", "pk")


def _month(row: BudgetMonth) -> QuerySet[BudgetMonth]:
    return BudgetMonth.objects.filter(project=row.project_id, month=row.month)


class BudgetKeeper:
    """Counts what projects spend."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def periodic(self, *, after: Callable[[], Awaitable[None]]) -> PeriodicTask:
        """Return the task. It begins `after` what ended while nobody led is known: until then that counts as running."""
        return PeriodicTask("budgets", LOOK_SECONDS, self.run_once, ready=after)

    async def run_once(self) -> None:
        await self._database(count, now=self._clock())
