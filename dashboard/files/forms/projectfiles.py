"""The choice where a project's files are kept, as a part of the forms of projects."""

from typing import Any

from django import forms
from django.conf import settings

from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.files.repositories import Repositories
from grid.files.stored_remotes import is_usable
from grid.models import Project

FILES_HELP = _(
    "A shared volume: every execution writes to the same files at once, without a history. Git: each workspace and job gets a copy and "
    "saves its changes as a commit when it ends, in a repository of this installation or on a Git server of your own. A change holds "
    "for later launches and moves no files: what is there stays there."
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
        """Return the choice; the present one where none was sent."""
        chosen: str = self.cleaned_data["files"] or self.instance.files
        id = self.cleaned_data.get("id") or self.instance.pk
        if chosen == Project.Files.REMOTE and self.instance.files != chosen:
            self._check_remote()
        # Beside a remote repository, it is where changes that could not be pushed are kept.
        if chosen != Project.Files.VOLUME and id and self.instance.files != chosen:
            try:
                Repositories(settings.REPOSITORIES).of(id).create()
            except (OSError, GridError) as error:
                raise forms.ValidationError(
                    _(
                        "The project's repository could not be created: {error}. Ask an operator to look at the repositories' volume.",
                        error=error,
                    )
                ) from error
        return chosen

    def _check_remote(self) -> None:
        if self.instance._state.adding or not is_usable(self.instance):
            raise forms.ValidationError(
                _("Save the project with a shared volume, and set up its remote repository then.")
                if self.instance._state.adding
                else _(
                    "Set up the remote repository first, on its own page: its URL and secret and, for SSH, the server's key."
                )
            )
