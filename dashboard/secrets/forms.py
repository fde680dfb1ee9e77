"""The form with which a secret gets its value: typed, or read from a file. No page ever shows a value again."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from grid.core.translation import gettext as _
from grid.models import Project
from grid.secrets.storedsecrets import MAXIMUM_BYTES

ONE_LINE = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}
_FILE_NEEDED = _("This file is not text. Encode it first, for example with base64, and let your program decode it.")


class UnshownTextarea(forms.Textarea):
    """A textarea that never contains what was typed: a form with a mistake in another field comes back without the value."""

    def format_value(self, value: Any) -> None:
        return None


class SecretForm(forms.Form):
    """A name with a value. `projects` are those of which one may be chosen for a person's own secret; None for a project's secret."""

    name = forms.CharField(
        label=_("Name"), max_length=100, widget=forms.TextInput(attrs={**ONE_LINE, "placeholder": "DB_PASSWORD"})
    )
    is_file = forms.BooleanField(label=_("Mount it as a file instead of setting a variable"), required=False)
    value = forms.CharField(
        label=_("Value"),
        required=False,
        strip=False,
        widget=UnshownTextarea(attrs={**ONE_LINE, "rows": 3, "class": "mono"}),
        help_text=_("At most 16 KiB. It is stored encrypted, and no page shows it again."),
    )
    file = forms.FileField(label=_("Or choose a file with the value"), required=False, allow_empty_file=True)
    project = forms.ModelChoiceField(
        label=_("For"),
        queryset=Project.objects.none(),
        required=False,
        empty_label=_("Your executions in any project"),
        error_messages={"invalid_choice": _("Choose one of your projects; this one is archived or not yours.")},
    )

    def __init__(self, *args: Any, projects: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if projects is None:
            del self.fields["project"]
        else:
            field: Any = self.fields["project"]
            field.queryset = projects

    def clean_value(self) -> str:
        """Return the value with the line ends that were typed: browsers send every one as two characters."""
        return str(self.cleaned_data["value"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        file = cleaned.get("file")
        if isinstance(file, UploadedFile):
            if cleaned.get("value"):
                self.add_error("file", _("Type the value or choose a file, not both."))
            elif (file.size or 0) > MAXIMUM_BYTES:
                self.add_error("file", _("A secret has at most 16 KiB; this file has {size:,} bytes.", size=file.size))
            else:
                try:
                    cleaned["value"] = file.read().decode()
                except UnicodeDecodeError:
                    self.add_error("file", _FILE_NEEDED)
        return cleaned
