"""The form of a rush plan: how many places, of which tier, with which environment's image, and when."""

from datetime import datetime, time, timedelta
from typing import Any

from django import forms

from grid.core.translation import gettext as _
from grid.core.wording import date_words
from grid.models import Environment, HardwareTier, RushPlan
from grid.models.dataplane import LOCAL
from grid.models.fields import validate_time, validate_time_zone
from grid.models.tier import MOST_EARLY_MINUTES, MOST_PLACES
from grid.tiers.rushplans import plan_hours
from grid.tiers.warmhours import DAY_NAMES

_FURTHEST = timedelta(days=366)
_ARCHIVED = {
    "tier": _("{name} is archived. Choose another tier, or ask an admin to restore it."),
    "environment": _("{name} is archived. Choose another environment, or ask an admin to restore it."),
}


def _time_field(label: str, help: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"type": "time"})
    return forms.CharField(label=label, validators=[validate_time], widget=widget, help_text=help)


class RushForm(forms.Form):
    places = forms.IntegerField(
        label=_("Places"),
        min_value=1,
        max_value=MOST_PLACES,
        help_text=_("How many launches at once need no wait for a node."),
        error_messages={
            "min_value": _("Plan at least 1 place."),
            "max_value": _("Plan at most {most:,} places; for more, write several plans.", most=MOST_PLACES),
        },
    )
    tier = forms.ModelChoiceField(HardwareTier.objects.none(), label=_("Tier"), empty_label=None)
    environment = forms.ModelChoiceField(
        Environment.objects.none(),
        label=_("Environment"),
        empty_label=None,
        help_text=_("Its image is pulled onto the nodes beforehand."),
    )
    ready = _time_field(_("Ready at"), _("Such as 09:00."))
    until = _time_field(_("Until"), _("Such as 12:00. A time that is not later is one of the next day."))
    zone = forms.CharField(
        label=_("Time zone"),
        max_length=60,
        validators=[validate_time_zone],
        widget=forms.TextInput(attrs={"list": "time-zones", "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("Its name, such as Europe/Berlin."),
    )
    on = forms.DateField(
        label=_("On one day"),
        required=False,
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
        help_text=_("Leave empty to repeat it on days of the week."),
    )
    days = forms.MultipleChoiceField(
        label=_("On days of the week"),
        choices=list(DAY_NAMES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    early = forms.IntegerField(
        label=_("Begin early by"),
        required=False,
        min_value=1,
        max_value=MOST_EARLY_MINUTES,
        help_text=_("In minutes. Leave empty to begin as early as new nodes and pulls of the image have taken."),
    )

    def __init__(self, data: Any = None, *, now: datetime, **options: Any) -> None:
        super().__init__(data, **options)
        self._now = now
        for name, rows in (
            ("tier", HardwareTier.objects.filter(data_plane=LOCAL)),
            ("environment", Environment.objects.all()),
        ):
            field: Any = self.fields[name]
            field.queryset = rows  # archived ones too, so that the answer says what is wrong with them
            field.widget.choices = list(rows.filter(is_archived=False).values_list("pk", "name"))
        if data is None:
            self.fields["zone"].widget.attrs["data-browser-zone"] = True

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        for field, sentence in _ARCHIVED.items():
            if field in data and data[field].is_archived:
                self.add_error(field, sentence.format(name=data[field]))
        if self.errors:
            return data
        if data["ready"] == data["until"]:
            self.add_error("until", _("Choose a time other than the one at which the places are ready."))
        elif bool(data["on"]) == bool(data["days"]):
            self.add_error("on", _("Choose either one day or days of the week."))
        elif data["on"] and (problem := self._passed(data)):
            self.add_error("on", problem)
        return data

    def plan(self) -> RushPlan:
        """Return the plan, which is not stored; the form must be valid."""
        columns = {name: value for name, value in self.cleaned_data.items() if name != "early"}
        return RushPlan(**columns | {"days": [day for day in DAY_NAMES if day in columns["days"]]})

    def _passed(self, data: dict[str, Any]) -> str:
        """Return why the one day cannot be meant; "" when it can."""
        day = data["on"]
        if abs(day - self._now.date()) > _FURTHEST:
            return _("Choose a day within a year from today.")
        hours = plan_hours(self.plan())
        run = hours.next_run(datetime.combine(day, time(), self._now.tzinfo) - timedelta(days=2)) if hours else None
        if run is None:
            return _("These hours do not exist on that day: the clocks change. Choose other times.")
        if run[0] > self._now:
            return ""
        return _(
            "{time} on {day} has passed. Choose a time that is yet to come.", time=data["ready"], day=date_words(day)
        )
