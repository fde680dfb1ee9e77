"""The forms of an environment's revisions; the rules of `grid.environments.revisions` decide what is valid."""

from collections.abc import Iterable
from typing import Any

from django import forms

from grid.core.errors import Problem
from grid.core.translation import gettext as _
from grid.environments.revisions import LONGEST_TEXT

_ONE_LINE = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}
IMAGE, BUILT = "image", "built"


class RevisionForm(forms.Form):
    """A new revision: an image, or requirements on top of one that is ready."""

    what = forms.ChoiceField(
        label=_("What it is"),
        choices=[(IMAGE, _("An image")), (BUILT, _("Requirements on top of a revision"))],
        widget=forms.RadioSelect,
        initial=IMAGE,
    )
    image = forms.CharField(
        label=_("Image"),
        required=False,
        max_length=255,
        widget=forms.TextInput(attrs={**_ONE_LINE, "class": "mono"}),
        help_text=_("For an image: its name with tag or digest, such as registry.example.com/lab:4."),
    )
    base = forms.TypedChoiceField(label=_("On top of"), coerce=int, required=False)
    requirements = forms.CharField(
        label=_("Requirements"),
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={**_ONE_LINE, "rows": 6, "class": "mono"}),
        help_text=_(
            "For requirements: Python packages, one a line, such as polars==1.9.0. No options, files or addresses."
        ),
    )
    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=300,
        widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off"}),
        help_text=_("What is new in it, for people who choose."),
    )

    def __init__(self, data: Any, *, bases: Iterable[tuple[int, str]], initial: dict[str, Any]) -> None:
        super().__init__(data, initial=initial)
        field = self.fields["base"]
        assert isinstance(field, forms.TypedChoiceField)
        field.choices = list(bases)

    @property
    def is_built(self) -> bool:
        return bool(self.cleaned_data["what"] == BUILT)

    def add_problems(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.add_error(problem.path if problem.path in self.fields else None, problem.message)


class DeprecationForm(forms.Form):
    """Why a revision is deprecated."""

    because = forms.CharField(
        label=_("Why"),
        required=False,
        max_length=300,
        widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off"}),
        help_text=_("Shown to people who still have it, with the number of the current revision."),
    )
