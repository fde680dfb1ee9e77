"""The forms with which files are put into a project's repository, and get another path in it."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.files.changing import LONGEST_PATH, problem_of_folder, problem_of_name

MOST_FILES = 50
# What browsers write for a quotation mark and ends of lines, but not for the percent sign: https://html.spec.whatwg.org/#multipart-form-data
_BY_BROWSERS = ("%22", "%0A", "%0D")


class SeveralFilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class SeveralFilesField(forms.FileField):
    """Several files; `clean` returns a list of them."""

    widget = SeveralFilesInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        files = [file for file in (data if isinstance(data, Sequence) else [data]) if isinstance(file, UploadedFile)]
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
        help_text = _("Up to {most} files, together at most {limit}. Git keeps each version.")
        self.fields["chosen"].help_text = help_text.format(most=MOST_FILES, limit=format_bytes(most))

    def clean_folder(self) -> str:
        folder: str = self.cleaned_data["folder"].removesuffix("/")
        if problem := problem_of_folder(folder):
            raise forms.ValidationError(problem)
        return folder

    def clean_chosen(self) -> dict[str, bytes]:
        files: list[UploadedFile[Any]] = self.cleaned_data["chosen"]
        if len(files) > MOST_FILES:
            raise forms.ValidationError(
                _(
                    "These are {files}; at most {most} go at one time.",
                    files=plural(len(files), "file", "files"),
                    most=MOST_FILES,
                )
            )
        total = sum(file.size or 0 for file in files)
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
        for file in files:
            name = str(file.name)
            if problem := problem_of_name(name):
                raise forms.ValidationError(problem)
            if any(written in name for written in _BY_BROWSERS):
                raise forms.ValidationError(
                    _(
                        "“{name}” may not be the file's own name: browsers write %22 for a quotation mark, and %0A and %0D for the end "
                        "of a line. Rename the file first.",
                        name=name,
                    )
                )
            if name in contents:
                raise forms.ValidationError(_("Two of these files are called “{name}”.", name=name))
            contents[name] = file.read()
        return contents


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
