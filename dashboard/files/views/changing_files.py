"""Deletes and moves files of a project that keeps them in Git, each as a commit on the main branch under the person's name."""

import logging
from collections.abc import Sequence

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.files.forms.uploading import MoveForm
from dashboard.files.viewmodels.files import Place
from dashboard.files.views.uploading import ARCHIVED, files_url, own_repository, why_unwritten
from dashboard.shell.viewmodels.listing import Confirmation
from grid.core.errors import GridError
from grid.core.gitnames import COMMIT, MAIN
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.files.changing import UploadRefused, count_files, delete, move
from grid.files.git import AnswerTooLong
from grid.files.repositories import Repository, TreeEntry, is_path
from grid.models import Project

logger = logging.getLogger(__name__)

_NOTHING_LOST = _(
    "Nothing is lost: the history keeps each version, and shows and downloads it from any commit before yours."
)
_ACTIVE = _(
    "Executions that are active keep their copies. One that has changed what you delete saves to a branch of its own."
)
_NOT_CHANGED = _("Nothing was changed.")


@require_http_methods(["GET", "HEAD", "POST"])
def project_file_delete(request: HttpRequest, id: str) -> HttpResponse:
    """Delete a file or folder, after a question that says what stays."""
    project, repository = own_repository(request, id)
    asked = request.POST if request.method == "POST" else request.GET
    path, shown = asked.get("path", ""), asked.get("at", "")
    if request.method != "POST":
        return render(request, "shell/question.html", {"question": _question(request, repository, path, shown)})
    who = request.user.get_username()
    if project.is_archived:
        messages.error(request, ARCHIVED)
        return redirect(files_url(id, _nearest(repository, path)))
    try:
        commit = delete(repository, path, shown=shown, author=who)
    except (GridError, OSError) as error:
        messages.error(request, _problem(project, who, error))
    else:
        logger.info("files deleted project=%s by=%s commit=%s", project.pk, who, commit)
        messages.success(request, _("Deleted: {path}. The history keeps it.", path=path))
    return redirect(files_url(id, _nearest(repository, path)))


@require_http_methods(["GET", "HEAD", "POST"])
def project_file_move(request: HttpRequest, id: str) -> HttpResponse:
    project, repository = own_repository(request, id)
    path, shown = request.GET.get("path", ""), request.GET.get("at", "")
    _entry(repository, path, shown)
    form = MoveForm(request.POST if request.method == "POST" else None, initial={"target": path})
    if form.is_bound and project.is_archived:
        form.add_error(None, ARCHIVED)
    if form.is_bound and form.is_valid():
        target, who = form.cleaned_data["target"], request.user.get_username()
        try:
            commit = move(repository, path, target, shown=shown, author=who)
        except UploadRefused as error:
            form.add_error("target", str(error))
        except (GridError, OSError) as error:
            form.add_error(None, _problem(project, who, error))
        else:
            logger.info("files moved project=%s by=%s commit=%s", project.pk, who, commit)
            messages.success(
                request,
                _("{path} is {target} now. Executions launched from now on have the change.", path=path, target=target),
            )
            return redirect(files_url(id, target))
    context = {"project": project, "form": form, "place": Place(MAIN, shown, path, is_branch=True)}
    return render(request, "files/files_move.html", context, status=422 if form.is_bound else 200)


def _question(request: HttpRequest, repository: Repository, path: str, shown: str) -> Confirmation:
    entry = _entry(repository, path, shown)
    return Confirmation(
        _("Delete {subject}"),
        path,
        _sentences(repository, entry, path, shown),
        action_url=request.path,
        answer=_("Delete"),
        keep=_("Keep it"),
        keep_url=f"{request.path.removesuffix('delete/')}?{Place(MAIN, shown, path, is_branch=True).here}",
        fields=(("path", path), ("at", shown)),
    )


def _sentences(repository: Repository, entry: TreeEntry, path: str, shown: str) -> Sequence[str]:
    what = _("The file goes from the branch {main}, with a commit of yours.", main=MAIN)
    if entry.is_folder:
        try:
            files = plural(count_files(repository, shown, path), "file", "files")
        except AnswerTooLong:
            files = _("all its files")
        except (GridError, OSError) as error:
            raise Http404 from error
        what = _("The folder goes from the branch {main} with {files}, in one commit of yours.", main=MAIN, files=files)
    return (what, _NOTHING_LOST, _ACTIVE)


def _entry(repository: Repository, path: str, shown: str) -> TreeEntry:
    """Return what the page showed. Raise Http404 when it showed no such thing."""
    if not path or not is_path(path) or not COMMIT.fullmatch(shown):
        raise Http404
    try:
        entry = repository.entry(shown, path)
    except (GridError, OSError) as error:
        raise Http404 from error
    if entry is None:
        raise Http404
    return entry


def _problem(project: Project, who: str, error: Exception) -> str:
    if isinstance(error, UploadRefused):
        return f"{_NOT_CHANGED} {error}"
    logger.warning("files not changed project=%s by=%s reason=%s", project.pk, who, error)
    return why_unwritten(error)


def _nearest(repository: Repository, path: str) -> str:
    """Return the path if it is on the main branch, or else the nearest folder above it that is."""
    try:
        now = repository.resolve(MAIN)
        while now is not None and path and is_path(path):
            if repository.entry(now, path) is not None:
                return path
            path = path.rpartition("/")[0]
    except (GridError, OSError):
        pass  # the page that follows says what is wrong
    return ""
