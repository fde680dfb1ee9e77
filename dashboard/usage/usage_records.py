"""Reads what people used of the cluster, synchronously: sums of `dailyusage`, with names, and budgets with what was spent of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Model

from dashboard.usage.viewmodels.budgets import BudgetView, PastMonth, budget_view, left_words, past_month
from dashboard.usage.viewmodels.usage import HeldTime
from grid.models import BudgetMonth, HardwareTier, Project, User
from grid.usage import dailyusage
from grid.usage.budgets.closing import budgets, counted
from grid.usage.budgets.rules import month_of

_WHO = ("owner_id", "project_id", "tier_id", "node_pool")
_EVERYTHING: Mapping[str, str] = {}
_PAST_MONTHS = 6


def read_usage(
    first: date, last: date, now: datetime, user_id: int | None = None, only: Mapping[str, str] = _EVERYTHING
) -> list[HeldTime]:
    """Return what the user held on each of these days, or all users, whose kinds are not read; `only` are the values of some columns."""
    keys = ("day", *_WHO, *(() if user_id is None else ("kind",)), "price_per_hour")
    who: Mapping[str, Any] = {} if user_id is None else {"owner": user_id}
    return _named(keys, dailyusage.held(keys, first, last, now, **only, **who), first)


def read_everybody(
    first: date, last: date, now: datetime, only: Mapping[str, str] = _EVERYTHING
) -> tuple[list[HeldTime], list[HeldTime]]:
    """Return what everybody held in all of these days, by person, project, tier and pool, and on each day: both keys at once would be as
    many rows as the two multiplied. `only` are the values of some of these columns."""
    by_whom, by_day = (*_WHO, "price_per_hour"), ("day", "price_per_hour")
    whole, days = (_named(keys, dailyusage.held(keys, first, last, now, **only), first) for keys in (by_whom, by_day))
    return whole, days


def _named(keys: Sequence[str], rows: Iterable[tuple[Any, ...]], first: date) -> list[HeldTime]:
    """Return the rows with names; what is no key of theirs is empty, and their day is the first."""
    known = [(dict(zip(keys, row, strict=False)), row[len(keys) :]) for row in rows]
    usernames, projects, tiers = (
        _names(model, field, {row.get(column) for row, _sums in known})
        for column, model, field in (
            ("owner_id", User, "username"),
            ("project_id", Project, "name"),
            ("tier_id", HardwareTier, "name"),
        )
    )
    return [
        HeldTime(
            *(row.get("day", first), owner, usernames.get(owner, ""), project, projects.get(project, "")),
            *(tier, tiers.get(tier, ""), row.get("node_pool", ""), row.get("kind", ""), row["price_per_hour"], *sums),
        )
        for row, sums in known
        for owner, project, tier in [(row.get("owner_id", 0), row.get("project_id", ""), row.get("tier_id", ""))]
    ]


def _names(model: type[Model], field: str, keys: set[Any]) -> Mapping[Any, str]:
    return dict(model._default_manager.filter(pk__in=keys - {None}).order_by().values_list("pk", field))


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
    _, days = read_everybody(month_of(now), now.date(), now, {"project_id": project_id})
    costs: defaultdict[date, Decimal] = defaultdict(Decimal)
    for row in days:
        costs[row.day] += row.price_per_hour * row.pod_seconds / 3600
    return dict(costs)


def left_of_budget(project_id: str, price: Decimal, now: datetime) -> str:
    """Return what is left for a launch in the project at a price per hour; "" without a budget, and when nothing is."""
    budget = budgets([project_id]).get(project_id)
    return left_words(budget, counted([project_id], now).get(project_id, Decimal(0)), price, now) if budget else ""
