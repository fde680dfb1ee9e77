"""The form of a project's remote repository. No page ever shows the secret again."""

from django import forms

from dashboard.secrets.forms import UnshownTextarea
from grid.core.translation import gettext as _

_ONE_LINE = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}


class RemoteForm(forms.Form):
    url = forms.CharField(
        label="URL",
        max_length=500,
        widget=forms.TextInput(attrs={**_ONE_LINE, "placeholder": "https://git.example.com/group/name.git"}),
        help_text=_("https:// with a token, or ssh:// or git@host:path with a key. Leave names and tokens out of it."),
    )
    branch = forms.CharField(
        label=_("Branch"),
        max_length=200,
        initial="main",
        widget=forms.TextInput(attrs=_ONE_LINE),
        help_text=_("Where executions begin, and what they push to."),
    )
    username = forms.CharField(
        label=_("User name"),
        max_length=100,
        required=False,
        widget=forms.TextInput(attrs=_ONE_LINE),
        help_text=_("Only for HTTPS. Most servers look at the token alone; leave it empty there."),
    )
    secret = forms.CharField(
        label=_("Token or private key"),
        required=False,
        strip=False,
        widget=UnshownTextarea(attrs={**_ONE_LINE, "rows": 4, "class": "mono"}),
        help_text=_(
            "It is stored encrypted, and no page shows it again. Everybody who launches in the project works with it: give it no "
            "more rights than to read and write this repository."
        ),
    )

    def __init__(self, *args: object, has_secret: bool = False, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if has_secret:
            self.fields["secret"].label = _("Another token or private key")
            self.fields["secret"].help_text += " " + _(
                "Leave it empty to keep the stored one; another URL needs it again."
            )
