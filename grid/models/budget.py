"""Budgets: what a project may cost in a calendar month, and what it has cost so far."""

from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from grid.core.translation import gettext as _
from grid.models.project import Project

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
            models.CheckConstraint(
                condition=models.Q(warning_percent__lte=models.F("stop_percent")), name="budget_warns_before_it_stops"
            )
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
        constraints = [models.UniqueConstraint(fields=["project", "month"], name="one_budget_month_of_a_project")]

    def __str__(self) -> str:
        return _(
            "{project_id} in {month:%Y-%m}: {spent}", project_id=self.project_id, month=self.month, spent=self.spent
        )
