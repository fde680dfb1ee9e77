"""The form with which people change their own display name and e-mail address."""

from typing import Any

from django import forms

from grid.core.translation import gettext as _
from grid.models import User
from grid.notifications.channels import sends_mail

_CONFIRMED = _(
    "For notifications. A new one is used once you have opened the link that is sent to it. Admins see it; leave it empty for none."
)
_UNCONFIRMED = _(
    "This installation sends no e-mail, so it is stored as you type it. Admins see it; leave it empty for none."
)


class ProfileForm(forms.Form):
    """What other people may call the user, and where notifications are sent. The display name is one field, kept as Django's first name."""

    name = forms.CharField(
        label=_("Display name"),
        max_length=150,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "name", "dir": "auto"}),
        help_text=_("Shown with your username, which stays as it is. Leave it empty to show the username alone."),
    )
    email = forms.EmailField(
        label=_("E-mail address"),
        max_length=254,
        required=False,
        widget=forms.EmailInput(attrs={"autocomplete": "email", "spellcheck": "false"}),
    )

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data, initial=profile_of(user))
        self.fields["email"].help_text = _CONFIRMED if sends_mail() else _UNCONFIRMED

    def clean_name(self) -> str:
        """Return the name with single spaces. Refuse what cannot be seen, such as marks that turn the direction of writing."""
        name = " ".join(str(self.cleaned_data["name"]).split())
        if not name.isprintable():
            raise forms.ValidationError(_("Use visible characters, in one line."), code="invisible")
        return name


def profile_of(user: User) -> dict[str, str]:
    return {"name": user.get_full_name(), "email": user.email}
