"""Reads budgets of projects for pages; synchronously."""

from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal

from dashboard.usage.usage_records import read_everybody
from dashboard.usage.viewmodels.budgets import BudgetView, PastMonth, budget_view, left_words, past_month
from grid.models import BudgetMonth, Project
from grid.usage.budgets.closing import budgets, counted
from grid.usage.budgets.rules import month_of

_PAST_MONTHS = 6


def budget_of_project(project: Project, now: datetime) -> BudgetView | None:
    """Return the budget with what was spent until now; None for a project without one."""
    budget = budgets([project.pk]).get(project.pk)
    return budget_view(budget, costs_by_day(project.pk, now), now) if budget is not None else None


def past_months(project: Project, now: datetime) -> list[PastMonth]:
    """Return the latest earlier months in which the project had a budget, as the controller counted them last."""
    rows = BudgetMonth.objects.filter(project=project, month__lt=month_of(now)).order_by("-month")[:_PAST_MONTHS]
    return [past_month(row.month, row.spent, warned_at=row.warned_at, stopped_at=row.stopped_at) for row in rows]


def costs_by_day(project_id: str, now: datetime) -> dict[date, Decimal]:
    """Return what the project has spent on each day of this month until now; days without any are left out."""
    month = month_of(now)
    _, days = read_everybody(month, now.date(), now, {"project_id": project_id})
    costs: defaultdict[date, Decimal] = defaultdict(Decimal)
    for row in days:
        costs[row.day] += row.price_per_hour * row.pod_seconds / 3600
    return dict(costs)


def left_of_budget(project_id: str, price: Decimal, now: datetime) -> str:
    """Return what is left for a launch in the project at a price per hour; "" without a budget, and when nothing is."""
    budget = budgets([project_id]).get(project_id)
    if budget is None:
        return ""
    return left_words(budget, counted([project_id], now).get(project_id, Decimal(0)), price, now)
