"""Says whether a project takes launches, from what the controller counted last: a few rows by their keys, whatever was spent."""

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal

from grid.core.errors import Problem
from grid.models import BudgetMonth, Membership, ProjectBudget
from grid.usage.budgets.rules import Budget, closed_sentence, month_of, waiting_sentence

CLOSED = "over_budget"


def budgets(projects: Collection[str] | None = None) -> dict[str, Budget]:
    """Return by project the budgets that have an amount; of all projects, or of these."""
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


def closed_projects(projects: Collection[str], now: datetime) -> dict[str, str]:
    """Return those of the projects whose stop line is reached, each with the sentence that says so to what waits."""
    return {
        budget.project_id: waiting_sentence(budget, month_of(now), owner=owner)
        for budget, _, owner in _closed(projects, now)
    }


def problems_of_budget(project_id: str, now: datetime) -> list[Problem]:
    """Return why nothing new may be launched in the project now; [] when it may."""
    return [
        Problem("", closed_sentence(budget, spent, month_of(now), owner=owner), CLOSED)
        for budget, spent, owner in _closed([project_id], now)
    ]


def _closed(projects: Collection[str], now: datetime) -> list[tuple[Budget, Decimal, str]]:
    """Return the budgets whose stop line is reached, each with what was spent and who owns the project."""
    found = budgets(projects)
    spent = counted(found, now) if found else {}
    closed = [id for id, budget in found.items() if id in spent and budget.is_closed(spent[id])]
    if not closed:
        return []
    owners = Membership.objects.filter(project__in=closed, role=Membership.Role.OWNER).order_by()
    names = dict(owners.values_list("project_id", "user__username"))
    return [(found[id], spent[id], names.get(id, "")) for id in closed]
