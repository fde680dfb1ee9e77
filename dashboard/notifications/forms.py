"""The address that somebody's notifications are posted to."""

from django import forms

from grid.core.translation import gettext as _


class WebhookForm(forms.Form):
    """`grid.notifications.channels` decides whether the address can be used."""

    url = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=2000,
        widget=forms.URLInput(attrs={"autocomplete": "off", "placeholder": "https://example.com/hook"}),
        help_text=_("It begins with https://. Each notification that you choose is posted there as JSON."),
    )
