"""The form by which a file or folder of a project's repository gets another path."""

from django import forms

from grid.core.translation import gettext as _
from grid.files.uploading import LONGEST_PATH, problem_of_folder


class MoveForm(forms.Form):
    target = forms.CharField(
        label=_("New path"),
        strip=False,
        max_length=LONGEST_PATH,
        help_text=_("Below the project's files, such as data/raw/a.csv; a new folder's name creates it."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )

    def clean_target(self) -> str:
        target: str = self.cleaned_data["target"].removesuffix("/")
        if problem := problem_of_folder(target) or (None if target else _("A name cannot be empty.")):
            raise forms.ValidationError(problem)
        return target
