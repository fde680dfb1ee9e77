"""The form that changes a running cluster's number of workers."""

from django import forms

from dashboard.clusters.viewmodels.clusters import ClusterRecord
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.core.wording import plural

_LARGEST = 10_000  # larger numbers are typing errors; the quota and the admin's limit decide what is allowed
_PATHS = {"workers_minimum": "minimum", "workers_maximum": "maximum"}


class ResizeForm(forms.Form):
    """The new bounds. `grid.clusters.changes.resize` checks all further rules; `refuse` shows its problems at their fields."""

    minimum = forms.IntegerField(
        min_value=1, max_value=_LARGEST, label=_("Minimum workers"), help_text=_("Never scales below this.")
    )
    maximum = forms.IntegerField(
        min_value=1,
        max_value=_LARGEST,
        label=_("Maximum workers"),
        help_text=_(
            "Each worker up to the maximum takes a slot of your quota, whether it exists or not. Equal to the minimum: fixed size."
        ),
    )

    @classmethod
    def of(cls, cluster: ClusterRecord) -> "ResizeForm":
        return cls(initial={"minimum": cluster.workers_minimum, "maximum": cluster.workers_maximum})

    def clean(self) -> None:
        minimum, maximum = self.cleaned_data.get("minimum"), self.cleaned_data.get("maximum")
        if minimum is not None and maximum is not None and maximum < minimum:
            self.add_error("maximum", _("The maximum cannot be less than the minimum of {minimum}.", minimum=minimum))

    def refuse(self, rejected: Rejected) -> None:
        for problem in rejected.problems:
            self.add_error(_PATHS.get(problem.path), problem.message)

    @property
    def words(self) -> str:
        """The new size, such as "1 to 5 workers"."""
        low, workers = self.cleaned_data["minimum"], plural(self.cleaned_data["maximum"], "worker", "workers")
        return workers if low == self.cleaned_data["maximum"] else _("{low} to {workers}", low=low, workers=workers)
