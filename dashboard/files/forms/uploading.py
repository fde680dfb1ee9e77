"""The form with which files are put into a project's repository."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.files.uploading import problem_of_folder, problem_of_name

MOST_FILES = 50


class SeveralFilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class SeveralFilesField(forms.FileField):
    """Several files; `clean` returns a list of them."""

    widget = SeveralFilesInput

    def to_python(self, data: Any) -> Any:
        return data or None

    def clean(self, data: Any, initial: Any = None) -> Any:
        files = [one for one in (data if isinstance(data, Sequence) else [data]) if isinstance(one, UploadedFile)]
        if not files:
            raise forms.ValidationError(_("Choose at least one file."))
        return files


class UploadForm(forms.Form):
    """A folder, the files, and whether to replace those that exist. `most` is how many bytes they may have together."""

    folder = forms.CharField(
        label=_("Folder"),
        required=False,
        strip=False,
        max_length=1000,
        help_text=_("Below the project's files, such as data/raw; a new name creates a folder. Empty: the top."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )
    chosen = SeveralFilesField(label=_("Files"))
    replace = forms.BooleanField(label=_("Replace files that exist"), required=False)

    def __init__(self, *args: Any, most: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._most = most
        limit = format_bytes(most)
        self.fields["chosen"].help_text = _(
            "Up to {most} files, together at most {limit}. Git keeps each version.",
            most=MOST_FILES,
            limit=limit,
        )
        self.fields["chosen"].widget = SeveralFilesInput(attrs={"multiple": True})

    def clean_folder(self) -> str:
        folder: str = self.cleaned_data["folder"].removesuffix("/")
        if problem := problem_of_folder(folder):
            raise forms.ValidationError(problem)
        return folder

    def clean_chosen(self) -> dict[str, bytes]:
        """Return the files' contents by name."""
        files: list[UploadedFile[Any]] = self.cleaned_data["chosen"]
        if len(files) > MOST_FILES:
            raise forms.ValidationError(
                _(
                    "These are {files}; at most {most} go at one time.",
                    files=plural(len(files), "file", "files"),
                    most=MOST_FILES,
                )
            )
        total = sum(one.size or 0 for one in files)
        if total > self._most:
            raise forms.ValidationError(
                _(
                    "These files have {total} together; at most {most} are taken. "
                    "Upload fewer at one time, or keep large data elsewhere.",
                    total=format_bytes(total),
                    most=format_bytes(self._most),
                )
            )
        contents: dict[str, bytes] = {}
        for one in files:
            name = str(one.name)
            if problem := problem_of_name(name):
                raise forms.ValidationError(problem)
            if name in contents:
                raise forms.ValidationError(_("Two of these files are called “{name}”.", name=name))
            contents[name] = one.read()
        return contents
