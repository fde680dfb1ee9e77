"""Says whether a project takes launches, from what the controller counted last: a few rows by their keys, whatever was spent."""

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal

from grid.core.reasons import Reason
from grid.database.prepared import Prepared
from grid.models import BudgetMonth, Membership, ProjectBudget
from grid.usage.budgets.rules import Budget, month_of, reason_of

_WITH_AMOUNT = Prepared(0, lambda: ProjectBudget.objects.exclude(amount=None).values_list("project_id", flat=True))


def budgets(projects: Collection[str] | None = None) -> dict[str, Budget]:
    """Return by project the budgets that have an amount; of all projects, or of these."""
    if not any(projects is None or id in projects for id in _WITH_AMOUNT()):
        return {}  # as a rule
    rows = ProjectBudget.objects.filter(amount__isnull=False).select_related("project")
    if projects is not None:
        rows = rows.filter(project__in=projects)
    return {row.project_id: budget_of(row) for row in rows}


def budget_of(row: ProjectBudget) -> Budget:
    assert row.amount is not None, "a budget without an amount is none"
    return Budget(
        project_id=row.project_id,
        project=row.project.name,
        amount=row.amount,
        warning_percent=row.warning_percent,
        stop_percent=row.stop_percent,
        stops_running=row.at_stop == ProjectBudget.AtStop.STOP,
    )


def counted(projects: Collection[str], now: datetime) -> dict[str, Decimal]:
    """Return what was counted last of what these projects have spent in the month of `now`; nothing of one that was not counted yet."""
    rows = BudgetMonth.objects.filter(project__in=projects, month=month_of(now)).order_by()
    return dict(rows.values_list("project_id", "spent"))


def closed_projects(projects: Collection[str], now: datetime) -> dict[str, Reason]:
    """Return those of the projects whose stop line is reached, each with the reason why nothing starts in it."""
    amounts = budgets(projects)
    spent = counted(amounts, now) if amounts else {}
    closed = [id for id, budget in amounts.items() if id in spent and budget.is_closed(spent[id])]
    if not closed:
        return {}
    owners = Membership.objects.filter(project__in=closed, role=Membership.Role.OWNER).order_by()
    names = dict(owners.values_list("project_id", "user__username"))
    return {id: reason_of(amounts[id], spent[id], month_of(now), owner=names.get(id, "")) for id in closed}
