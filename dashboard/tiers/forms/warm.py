"""The part of a tier's form about its warm-up hours."""

from django import forms

from grid.configuration import WARM_PLACES, value_of
from grid.core.translation import gettext as _
from grid.tiers.warmhours import DAY_NAMES

WARM_FIELDS = ("warm_places", "warm_from", "warm_until", "warm_zone", "warm_days")
WARM_LABELS = {
    "warm_places": _("Warm places"),
    "warm_from": _("From"),
    "warm_until": _("Until"),
    "warm_zone": _("Time zone"),
}
WARM_HELP = {
    "warm_places": _("How many placeholder pods keep room ready on the pool’s nodes. Leave empty for none."),
    "warm_from": _("Such as 08:00."),
    "warm_until": _("Such as 18:00. A time that is not later is one of the next day."),
    "warm_zone": _("Such as Europe/Berlin. Leave empty for UTC."),
}
WARM_WIDGETS = {
    "warm_from": forms.TextInput(attrs={"type": "time"}),
    "warm_until": forms.TextInput(attrs={"type": "time"}),
    "warm_zone": forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
}


class WarmFieldsMixin(forms.Form):
    """Adds the days, and the bound that the central configuration sets."""

    warm_days = forms.MultipleChoiceField(
        label=_("Days"),
        choices=list(DAY_NAMES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("The days on which the hours begin."),
    )

    def clean_warm_places(self) -> int | None:
        places: int | None = self.cleaned_data["warm_places"]
        if places and "warm_places" in self.changed_data and places > (most := value_of(WARM_PLACES)):
            allowed = _("The central configuration allows none: “{setting}”.")
            if most:
                allowed = _("The central configuration allows at most {most} of all tiers together: “{setting}”.")
            raise forms.ValidationError(allowed.format(most=most, setting=WARM_PLACES.title))
        return places
