"""Budgets and what was spent, for the tests of them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from grid.core.errors import Rejected
from grid.models import Execution, Notification, ProjectBudget, State, UsageInterval
from grid.usage.budgets.keeper import count, set_budget
from tests.support.shop import NOW, Shop

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MARCH = datetime(2026, 3, 1, tzinfo=UTC)
APRIL = datetime(2026, 4, 1, tzinfo=UTC)


def interval(
    execution: Execution, began: datetime, ended: datetime | None, *, price: str = "1", project: str = ""
) -> UsageInterval:
    number = UsageInterval.objects.count()
    return UsageInterval.objects.create(
        execution=execution, pod_uid=f"u{number}", pod_name="p", node_name="n", owner=execution.owner,
        project_id=project or execution.project_id, tier=execution.tier, node_pool="default", millicores=1000, mebibytes=1,
        gpus=0, price_per_hour=price, began_at=began, ended_at=ended,
        seconds=None if ended is None else round((ended - began).total_seconds()),
    )  # fmt: skip


def spend(shop: Shop, amount: str, *, at: datetime = NOW) -> None:
    """Record an ended execution that has cost so much within the hour before `at`."""
    row = Execution.objects.filter(title="Spent").first() or shop.launch(title="Spent")
    Execution.objects.filter(pk=row.pk).update(state=State.STOPPED, settled_at=NOW, ended_at=NOW)
    interval(row, at - HOUR, at, price=amount)


def budget(shop: Shop, amount: str | None = "100", *, now: datetime = NOW, **fields: Any) -> None:
    row = ProjectBudget.objects.filter(project=shop.project).first() or ProjectBudget(project=shop.project)
    row.amount = None if amount is None else Decimal(amount)
    for name, value in fields.items():
        setattr(row, name, value)
    set_budget(row, now=now)


def use_up(shop: Shop, **fields: Any) -> None:
    """Spend the whole of a new budget, and have that counted."""
    budget(shop, **fields)
    spend(shop, "100")
    count(now=NOW)


def notified(event: str = "budget") -> list[tuple[str, str]]:
    rows = Notification.objects.filter(event=event).order_by("pk")
    return list(rows.values_list("user__username", "sentence"))


def messages(refused: Rejected) -> str:
    return " ".join(problem.message for problem in refused.problems)
