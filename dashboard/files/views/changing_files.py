"""Uploads, deletes and moves files of a project that keeps them in Git, each as a commit on the main branch under the person's name."""

import logging

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard.files.forms import MoveForm, UploadForm
from dashboard.files.viewmodels.files import Place
from dashboard.files.views.files import BUSY, project_repository
from dashboard.shell.viewmodels.listing import Confirmation
from grid import configuration as centralconfig
from grid.core.errors import GridError
from grid.core.gitnames import COMMIT, MAIN
from grid.core.translation import gettext as _
from grid.core.wording import listed, plural
from grid.files.changing import AlreadyThere, UploadRefused, count_files, delete, move, upload
from grid.files.git import AnswerTooLong, GitBusy
from grid.files.repositories import Repository, TreeEntry, is_path
from grid.models import Project

logger = logging.getLogger(__name__)

_NOTHING_LOST = _(
    "Nothing is lost: the history keeps each version, and shows and downloads it from any commit before yours."
)
_ACTIVE = _(
    "Executions that are active keep their copies. One that has changed what you delete saves to a branch of its own."
)
_FAILED = _(
    "Nothing was saved: the repository cannot be written now. Ask an operator to look at the repositories' volume."
)
_ARCHIVED = _("This project is archived, so its files stay as they are.")
_AGAIN = _(
    "Choose the files again, and tick “Replace files that exist” if they are to be replaced. Earlier versions stay in the history."
)


@require_http_methods(["GET", "HEAD", "POST"])
def project_upload(request: HttpRequest, id: str) -> HttpResponse:
    project, repository = _own_repository(request, id)
    initial = {"folder": request.GET.get("path", "")[:1000]}
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    form = UploadForm(*sent, initial=initial, most=centralconfig.value_of(centralconfig.UPLOAD_SIZE) * 2**20)
    if form.is_bound and project.is_archived:
        form.add_error(None, _ARCHIVED)
    if form.is_valid() and _save(request, project, repository, form):
        return redirect(_files_url(id, form.cleaned_data["folder"]))
    context = {"project": project, "form": form}
    return render(request, "files/files_upload.html", context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def project_file_delete(request: HttpRequest, id: str) -> HttpResponse:
    """Delete a file or folder, after a question that says what stays."""
    project, repository = _own_repository(request, id)
    asked = request.POST if request.method == "POST" else request.GET
    path, shown = asked.get("path", ""), asked.get("at", "")
    if request.method != "POST":
        return render(request, "shell/question.html", {"question": _question(request, repository, path, shown)})
    who = request.user.get_username()
    if project.is_archived:
        messages.error(request, _ARCHIVED)
        return redirect(_files_url(id, _nearest(repository, path)))
    try:
        commit = delete(repository, path, shown=shown, author=who)
        logger.info("files deleted project=%s by=%s commit=%s", project.pk, who, commit)
        messages.success(request, _("Deleted: {path}. The history keeps it.", path=path))
    except (GridError, OSError) as error:
        messages.error(request, _problem(project, who, error))
    return redirect(_files_url(id, _nearest(repository, path)))


@require_http_methods(["GET", "HEAD", "POST"])
def project_file_move(request: HttpRequest, id: str) -> HttpResponse:
    project, repository = _own_repository(request, id)
    path, shown = request.GET.get("path", ""), request.GET.get("at", "")
    _entry(repository, path, shown)
    form = MoveForm(request.POST if request.method == "POST" else None, initial={"target": path})
    if form.is_bound and project.is_archived:
        form.add_error(None, _ARCHIVED)
    if form.is_bound and form.is_valid():
        target, who = form.cleaned_data["target"], request.user.get_username()
        try:
            commit = move(repository, path, target, shown=shown, author=who)
            logger.info("files moved project=%s by=%s commit=%s", project.pk, who, commit)
            moved = _("{path} is {target} now. Executions launched from now on have the change.")
            messages.success(request, moved.format(path=path, target=target))
            return redirect(_files_url(id, target))
        except UploadRefused as error:
            form.add_error("target", str(error))
        except (GridError, OSError) as error:
            form.add_error(None, _problem(project, who, error))
    context = {"project": project, "form": form, "place": Place(MAIN, shown, path, is_branch=True)}
    return render(request, "files/files_move.html", context, status=422 if form.is_bound else 200)


def _question(request: HttpRequest, repository: Repository, path: str, shown: str) -> Confirmation:
    return Confirmation(
        _("Delete {subject}"),
        path,
        (_deletion_sentence(repository, path, shown), _NOTHING_LOST, _ACTIVE),
        action_url=request.path,
        answer=_("Delete"),
        keep_url=f"{request.path.removesuffix('delete/')}?{Place(MAIN, shown, path, is_branch=True).here}",
        fields=(("path", path), ("at", shown)),
    )


def _deletion_sentence(repository: Repository, path: str, shown: str) -> str:
    if not _entry(repository, path, shown).is_folder:
        return _("The file goes from the branch {main}, with a commit of yours.", main=MAIN)
    try:
        files = plural(count_files(repository, shown, path), "file", "files")
    except AnswerTooLong:
        files = _("all its files")
    except (GridError, OSError) as error:
        raise Http404 from error
    return _("The folder goes from the branch {main} with {files}, in one commit of yours.", main=MAIN, files=files)


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
        return _("Nothing was changed. {error}", error=error)
    logger.warning("files not changed project=%s by=%s reason=%s", project.pk, who, error)
    return _why_unwritten(error)


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


def _own_repository(request: HttpRequest, id: str) -> tuple[Project, Repository]:
    """Return the project and its repository. Raise as `project_repository` does, and Http404 where the files are in a remote one."""
    project, repository = project_repository(request, id)
    if project.files == Project.Files.REMOTE:  # no execution would see a change: they begin with what the server has
        raise Http404
    return project, repository


def _files_url(id: str, path: str) -> str:
    return reverse("project-files", args=[id], query={"path": path} if path else None)


def _why_unwritten(error: Exception) -> str:
    return BUSY if isinstance(error, GitBusy) else _FAILED


def _save(request: HttpRequest, project: Project, repository: Repository, form: UploadForm) -> bool:
    """Commit the files; return False with the reason in the form."""
    data, who = form.cleaned_data, request.user.get_username()
    files: dict[str, bytes] = data["chosen"]
    largest = centralconfig.value_of(centralconfig.REPOSITORY_SIZE)
    try:
        repository.create()
        commit = upload(repository, data["folder"], files, author=who, replace=data["replace"], largest=largest)
    except AlreadyThere as error:
        form.add_error("chosen", f"{error} {_AGAIN}")
    except UploadRefused as error:
        form.add_error("chosen", str(error))
    except (GridError, OSError) as error:
        logger.warning("not uploaded project=%s by=%s reason=%s", project.pk, who, error)
        form.add_error(None, _why_unwritten(error))
    else:
        logger.info("uploaded project=%s by=%s files=%d commit=%s", project.pk, who, len(files), commit)
        names = listed(files) if len(files) < 4 else plural(len(files), "file", "files")
        messages.success(request, _("Saved: {names}. Executions launched from now on have the change.", names=names))
        return True
    return False
