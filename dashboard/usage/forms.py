"""The form with which admins set a project's budget."""

from decimal import Decimal
from typing import Any

from django import forms

from grid.core.translation import gettext as _
from grid.core.wording import CURRENCY
from grid.models import ProjectBudget


class BudgetForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = ProjectBudget
        fields = ("amount", "warning_percent", "stop_percent", "at_stop")
        labels = {
            "amount": _("Amount per calendar month ({currency})", currency=CURRENCY),
            "warning_percent": _("Warning line (%)"),
            "stop_percent": _("Stop line (%)"),
            "at_stop": _("At the stop line"),
        }
        help_texts = {
            "amount": _("Months are those of UTC. Leave empty for no budget."),
            "warning_percent": _("The owner and the admins are told here, once a month."),
            "stop_percent": _("New launches are refused from here on, and the owner and the admins are told."),
            "at_stop": _("Queued executions wait. Who runs something is told 10 minutes before it is stopped."),
        }

    def clean_amount(self) -> Decimal | None:
        """Return the amount as it is stored, so that typing it again in another way is no change."""
        amount: Decimal | None = self.cleaned_data["amount"]
        return amount if amount is None else amount.quantize(Decimal("0.01"))

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        warning, stop = data.get("warning_percent"), data.get("stop_percent")
        if warning is not None and stop is not None and warning > stop:
            self.add_error("warning_percent", _("Warn at {stop} % or before: launches are refused there.", stop=stop))
        return data

    def validate_constraints(self) -> None:
        """Leave the constraint to `clean`, which names the field."""
