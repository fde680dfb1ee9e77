"""What the browser tests of budgets put on the stage: a month of spending in a project with a budget."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from asgiref.sync import sync_to_async

from grid.models import AuditEntry, BudgetMonth, Notification, Project, ProjectBudget, UsageInterval
from grid.usage.budgets.keeper import set_budget
from tests.browser import using
from tests.browser.server import Stage


def _budget(amount: str) -> None:
    """Set the budget of each project; each has cost something on each day of the month until now."""
    now = datetime.now(UTC)
    row = UsageInterval.objects.order_by("pk").first()
    assert row is not None
    for project in Project.objects.all():
        for day in range(1, now.day + 1):
            began = now.replace(day=day, hour=0, minute=0, second=0, microsecond=0)
            row.pk, row.pod_uid, row.project, row.price_per_hour = None, f"{project.pk}-{day}", project, Decimal("1.25")
            row.began_at, row.ended_at = began, began + timedelta(minutes=1)
            UsageInterval.objects.bulk_create([row])
        set_budget(ProjectBudget(project=project, amount=Decimal(amount)), now=now)


def _no_budget() -> None:
    ProjectBudget.objects.all().delete()
    BudgetMonth.objects.all().delete()
    Notification.objects.filter(event="budget").delete()
    AuditEntry.objects.filter(object_type="projectbudget").delete()


async def month(stage: Stage) -> None:
    await using.two_months(stage)
    await sync_to_async(_budget)("130")


async def nothing(stage: Stage) -> None:
    await sync_to_async(_no_budget)()
    await using.nothing(stage)
