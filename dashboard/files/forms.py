"""The forms of a project's files: where they are kept, the remote repository, uploading, and moving. No page ever shows a secret again."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from dashboard.secrets.forms import ONE_LINE, UnshownTextarea
from grid.core.errors import GridError
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.files.changing import LONGEST_PATH, problem_of_folder, problem_of_name
from grid.files.repositories import Repositories
from grid.files.stored_remotes import is_usable
from grid.models import Project

MOST_FILES = 50
# What browsers write for a quotation mark and ends of lines, but not for the percent sign: https://html.spec.whatwg.org/#multipart-form-data
_BY_BROWSERS = ("%22", "%0A", "%0D")
_MADE_BY_BROWSER = _(
    "“{name}” may not be the file's own name: browsers write %22 for a quotation mark, and %0A and %0D for the end of a line. "
    "Rename the file first."
)
_TOO_MUCH = _(
    "These files have {total} together; at most {most} are taken. Upload fewer at one time, or keep large data elsewhere."
)


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
        widget=forms.TextInput(attrs=ONE_LINE),
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
            count = plural(len(files), "file", "files")
            raise forms.ValidationError(_("These are {n}; at most {most} go at one time.", n=count, most=MOST_FILES))
        total = sum(file.size or 0 for file in files)
        if total > self._most:
            raise forms.ValidationError(_TOO_MUCH.format(total=format_bytes(total), most=format_bytes(self._most)))
        contents: dict[str, bytes] = {}
        for file in files:
            name = str(file.name)
            if problem := problem_of_name(name):
                raise forms.ValidationError(problem)
            if any(written in name for written in _BY_BROWSERS):
                raise forms.ValidationError(_MADE_BY_BROWSER.format(name=name))
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
        widget=forms.TextInput(attrs=ONE_LINE),
    )

    def clean_target(self) -> str:
        target: str = self.cleaned_data["target"].removesuffix("/")
        if problem := problem_of_folder(target) or (None if target else _("A name cannot be empty.")):
            raise forms.ValidationError(problem)
        return target


FILES_HELP = _(
    "A shared volume: every execution writes to the same files at once, without a history. Git: each workspace and job gets a copy and "
    "saves its changes as a commit when it ends, in a repository of this installation or on a Git server of your own. A change holds "
    "for later launches and moves no files: what is there stays there."
)
_REMOTE_LATER = _("Save the project with a shared volume, and set up its remote repository then.")
_REMOTE_FIRST = _(
    "Set up the remote repository first, on its own page: its URL and secret and, for SSH, the server's key."
)
_NOT_CREATED = _(
    "The project's repository could not be created: {error}. Ask an operator to look at the repositories' volume."
)


class ProjectFilesMixin:
    """Offers Git where the installation has a volume for repositories, and makes the repository when it is chosen."""

    fields: dict[str, forms.Field]
    instance: Project
    cleaned_data: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not settings.REPOSITORIES:
            del self.fields["files"]
            return
        self.fields["files"].required = False
        self.fields["files"].help_text = FILES_HELP

    def clean_files(self) -> str:
        chosen: str = self.cleaned_data["files"] or self.instance.files
        id = self.cleaned_data.get("id") or self.instance.pk
        if chosen == Project.Files.REMOTE and self.instance.files != chosen:
            if self.instance._state.adding:
                raise forms.ValidationError(_REMOTE_LATER)
            if not is_usable(self.instance):
                raise forms.ValidationError(_REMOTE_FIRST)
        # Beside a remote repository, it is where changes that could not be pushed are kept.
        if chosen != Project.Files.VOLUME and id and self.instance.files != chosen:
            try:
                Repositories(settings.REPOSITORIES).of(id).create()
            except (OSError, GridError) as error:
                raise forms.ValidationError(_NOT_CREATED.format(error=error)) from error
        return chosen


class RemoteForm(forms.Form):
    url = forms.CharField(
        label="URL",
        max_length=500,
        widget=forms.TextInput(attrs={**ONE_LINE, "placeholder": "https://git.example.com/group/name.git"}),
        help_text=_("https:// with a token, or ssh:// or git@host:path with a key. Leave names and tokens out of it."),
    )
    branch = forms.CharField(
        label=_("Branch"),
        max_length=200,
        initial="main",
        widget=forms.TextInput(attrs=ONE_LINE),
        help_text=_("Where executions begin, and what they push to."),
    )
    username = forms.CharField(
        label=_("User name"),
        max_length=100,
        required=False,
        widget=forms.TextInput(attrs=ONE_LINE),
        help_text=_("Only for HTTPS. Most servers look at the token alone; leave it empty there."),
    )
    secret = forms.CharField(
        label=_("Token or private key"),
        required=False,
        strip=False,
        widget=UnshownTextarea(attrs={**ONE_LINE, "rows": 4, "class": "mono"}),
        help_text=_(
            "It is stored encrypted, and no page shows it again. Everybody who launches in the project works with it: give it no "
            "more rights than to read and write this repository."
        ),
    )

    def __init__(self, *args: object, has_secret: bool = False, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if has_secret:
            self.fields["secret"].label = _("Another token or private key")
            again = _("Leave it empty to keep the stored one; another URL needs it again.")
            self.fields["secret"].help_text += f" {again}"
