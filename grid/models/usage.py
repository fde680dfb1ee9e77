"""Usage: the intervals in which pods held nodes, their daily totals, and the budgets of projects."""

from decimal import Decimal

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint

from grid.core.translation import gettext as _
from grid.models.execution import Execution
from grid.models.project import Project
from grid.models.tier import HardwareTier

_ENDED = Q(ended_at__isnull=False, seconds__isnull=False, ended_at__gte=F("began_at"))


class UsageInterval(models.Model):
    """The time for which one pod of an execution held a node, in whole seconds; `ended_at` and `seconds` are null while it does. Requests
    and price are those at launch. A pod's uid is never used again, so writing an interval twice changes nothing. It protects its execution
    from being deleted until it was added up into `DailyUsage`, which counts it from then on."""

    execution = models.ForeignKey(Execution, on_delete=models.PROTECT, related_name="usage", db_index=False)
    pod_uid = models.CharField(max_length=64, unique=True)
    pod_name = models.CharField(max_length=253)
    node_name = models.CharField(max_length=253)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", db_index=False)
    tier = models.ForeignKey(HardwareTier, on_delete=models.PROTECT, related_name="+", db_index=False)
    node_pool = models.CharField(max_length=63)
    millicores = models.PositiveBigIntegerField()
    mebibytes = models.PositiveBigIntegerField(help_text="Of memory.")
    gpus = models.PositiveIntegerField()
    price_per_hour = models.DecimalField(max_digits=10, decimal_places=4)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    seconds = models.PositiveBigIntegerField(null=True, help_text="From the beginning to the end, so that SQL sums it.")
    # The database's default is for a controller of before, which may still write while a new version is rolled out.
    added_up = models.BooleanField(default=False, db_default=False, help_text="`DailyUsage` counts it.")

    class Meta:
        ordering = ["began_at", "id"]
        indexes = [
            # A covering index for the cost of an execution.
            Index(fields=["execution", "price_per_hour", "seconds"], name="usage_by_execution"),
            Index(fields=["execution"], condition=Q(ended_at__isnull=True), name="usage_open"),
            Index(fields=["owner"], condition=Q(added_up=False), name="usage_to_add_by_owner"),
            Index(fields=["project"], condition=Q(added_up=False), name="usage_to_add_by_project"),
        ]
        constraints = [
            CheckConstraint(
                condition=Q(ended_at__isnull=True, seconds__isnull=True) | _ENDED, name="usage_ends_after_it_began"
            )
        ]

    def __str__(self) -> str:
        return _("{pod_name} on {node_name} since {began_at}").format(
            pod_name=self.pod_name, node_name=self.node_name, began_at=self.began_at
        )


class _AddedUp(models.Model):
    """The total of the intervals of one key that are added up, whether they are deleted meanwhile or not. The price is a part of the key,
    so that the cost stays exact: `price_per_hour * pod_seconds / 3600`."""

    day = models.DateField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", db_index=False)
    tier = models.ForeignKey(HardwareTier, on_delete=models.PROTECT, related_name="+", db_index=False)
    node_pool = models.CharField(max_length=63)
    kind = models.CharField(
        max_length=20, blank=True, default="", help_text="Empty where the executions were deleted before it was kept."
    )
    price_per_hour = models.DecimalField(max_digits=10, decimal_places=4)
    pod_seconds = models.PositiveBigIntegerField(default=0)
    millicore_seconds = models.PositiveBigIntegerField(default=0)
    mebibyte_seconds = models.PositiveBigIntegerField(default=0, help_text="Of memory.")
    gpu_seconds = models.PositiveBigIntegerField(default=0)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return _(
            "{pod_seconds} s of {tier_id} on {day}", pod_seconds=self.pod_seconds, tier_id=self.tier_id, day=self.day
        )


_KEY = ["owner", "project", "tier", "node_pool", "kind"]
_SUMS = ["pod_seconds", "millicore_seconds", "gpu_seconds"]


class DailyUsage(_AddedUp):
    """The totals of one day (UTC)."""

    class Meta:
        ordering = ["day", "id"]
        indexes = [
            Index(fields=["project", "day"], name="daily_usage_by_project"),
            # A covering index for the picture of everybody's month.
            Index(fields=["day", "price_per_hour", *_SUMS], name="daily_usage_by_price"),
        ]
        constraints = [UniqueConstraint(fields=["day", *_KEY, "price_per_hour"], name="one_daily_usage_of_a_kind")]


class MonthlyUsage(_AddedUp):
    """The same totals of a month, whose first day `day` is: few rows for what everybody used, and for what projects have spent."""

    class Meta:
        ordering = ["day", "id"]
        constraints = [UniqueConstraint(fields=["day", *_KEY, "price_per_hour"], name="one_monthly_usage_of_a_kind")]


_PERCENT = (MinValueValidator(1), MaxValueValidator(100))


class ProjectBudget(models.Model):
    """What a project may cost in a calendar month (UTC), as admins set it; without an amount it may cost anything. The price of what runs
    is that of its tier at launch, so a changed price changes nothing that was spent."""

    class AtStop(models.TextChoices):
        REFUSE = "refuse", _("Refuse new launches; running executions continue")
        STOP = "stop", _("Refuse new launches, and stop running executions")

    project = models.OneToOneField(Project, on_delete=models.CASCADE, primary_key=True, related_name="budget")
    amount = models.DecimalField(
        max_digits=12, decimal_places=2, null=True, blank=True, validators=[MinValueValidator(Decimal("0.01"))]
    )
    warning_percent = models.PositiveSmallIntegerField(default=80, validators=_PERCENT)
    stop_percent = models.PositiveSmallIntegerField(default=100, validators=_PERCENT)
    at_stop = models.CharField(max_length=10, choices=AtStop.choices, default=AtStop.REFUSE)

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(warning_percent__lte=F("stop_percent")), name="budget_warns_before_it_stops")
        ]

    def __str__(self) -> str:
        return _("budget of {project_id}", project_id=self.project_id)


class BudgetMonth(models.Model):
    """What a project with a budget has spent in a month, as the controller counted it last, and when its owner and the admins were told
    that a line is reached. There is one of each project and month: two controllers tell it once."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="budget_months", db_index=False)
    month = models.DateField(help_text=_("Its first day, in UTC."))
    spent = models.DecimalField(max_digits=16, decimal_places=4, default=Decimal(0))
    counted_at = models.DateTimeField()
    warned_at = models.DateTimeField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [UniqueConstraint(fields=["project", "month"], name="one_budget_month_of_a_project")]

    def __str__(self) -> str:
        return _(
            "{project_id} in {month:%Y-%m}: {spent}", project_id=self.project_id, month=self.month, spent=self.spent
        )
