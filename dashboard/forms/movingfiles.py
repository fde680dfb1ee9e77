"""The form by which a file or folder of a project's repository gets another path."""

from django import forms

from grid.files.uploading import LONGEST_PATH, problem_of_folder


class MoveForm(forms.Form):
    target = forms.CharField(
        label="New path",
        strip=False,
        max_length=LONGEST_PATH,
        help_text="Below the project's files, such as data/raw/a.csv; a new folder's name creates it.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )

    def clean_target(self) -> str:
        target: str = self.cleaned_data["target"].removesuffix("/")
        if problem := problem_of_folder(target) or ("" if target else "A name cannot be empty."):
            raise forms.ValidationError(problem)
        return target
