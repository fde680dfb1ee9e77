"""The form of a schedule. `grid.jobs.schedules` says what is wrong with it."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms

from dashboard.jobs.viewmodels.schedules import MISSED_WORDS, OVERLAP_WORDS
from grid.core.translation import gettext as _
from grid.jobs.schedules import ScheduleSettings

_TYPED = {"autocomplete": "off", "spellcheck": "false"}


@cache
def zone_names() -> Sequence[str]:
    """Return the time zones to offer: those of places, and UTC. They are read from hundreds of files, once."""
    return ("UTC", *sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/")))


class ScheduleForm(forms.Form):
    cron = forms.CharField(
        label=_("Schedule"),
        required=False,
        widget=forms.TextInput(attrs={"class": "mono", **_TYPED, "placeholder": "0 6 * * 1-5"}),
        help_text=_("Minute, hour, day of the month, month, day of the week, as in cron; or @daily and its like."),
    )
    time_zone = forms.CharField(
        label=_("Time zone"),
        required=False,
        widget=forms.TextInput(attrs={"list": "time-zones", **_TYPED}),
        help_text=_("Its name, such as Europe/Berlin. Runs follow its local time, in summer and in winter."),
    )
    overlap = forms.ChoiceField(
        label=_("If an earlier run has not ended"), choices=list(OVERLAP_WORDS.items()), widget=forms.RadioSelect
    )
    missed = forms.ChoiceField(
        label=_("If a run was missed during an outage"), choices=list(MISSED_WORDS.items()), widget=forms.RadioSelect
    )

    def __init__(self, data: Mapping[str, Any] | None, *, initial: Mapping[str, Any], takes_browser_zone: bool) -> None:
        super().__init__(data, initial={"overlap": "skip", "missed": "once", **initial})
        if takes_browser_zone and data is None:
            self.fields["time_zone"].widget.attrs["data-browser-zone"] = True

    def settings(self) -> ScheduleSettings:
        """Return what was typed; the form must have no errors."""
        return ScheduleSettings(**{name: self.cleaned_data[name] for name in ScheduleSettings.__struct_fields__})
