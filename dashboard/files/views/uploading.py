"""Puts files into a project that keeps them in Git: a form, and a commit on the main branch under the person's name."""

import logging

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard.files.forms.uploading import UploadForm
from dashboard.files.views.files import BUSY, project_repository
from grid import configuration as centralconfig
from grid.configuration import REPOSITORY_SIZE, UPLOAD_SIZE
from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.core.wording import listed, plural
from grid.files.changing import AlreadyThere, UploadRefused, upload
from grid.files.git import GitBusy
from grid.files.repositories import Repository
from grid.models import Project

logger = logging.getLogger(__name__)

_MIB = 2**20
_FAILED = _(
    "Nothing was saved: the repository cannot be written now. Ask an operator to look at the repositories' volume."
)
ARCHIVED = _("This project is archived, so its files stay as they are.")
_AGAIN = _(
    "Choose the files again, and tick “Replace files that exist” if they are to be replaced. Earlier versions stay in the history."
)


@require_http_methods(["GET", "HEAD", "POST"])
def project_upload(request: HttpRequest, id: str) -> HttpResponse:
    project, repository = own_repository(request, id)
    most = centralconfig.value_of(UPLOAD_SIZE) * _MIB
    if request.method != "POST":
        form = UploadForm(initial={"folder": request.GET.get("path", "")[:1000]}, most=most)
        return _page(request, project, form)
    form = UploadForm(request.POST, request.FILES, most=most)
    if project.is_archived:
        form.add_error(None, ARCHIVED)
    if form.is_valid() and _save(request, project, repository, form):
        return redirect(files_url(id, form.cleaned_data["folder"]))
    return _page(request, project, form)


def own_repository(request: HttpRequest, id: str) -> tuple[Project, Repository]:
    """Return the project and its repository. Raise as `project_repository` does, and Http404 where the files are in a remote one."""
    project, repository = project_repository(request, id)
    if project.files == Project.Files.REMOTE:  # no execution would see a change: they begin with what the server has
        raise Http404
    return project, repository


def files_url(id: str, path: str) -> str:
    return reverse("project-files", args=[id], query={"path": path} if path else None)


def why_unwritten(error: Exception) -> str:
    return BUSY if isinstance(error, GitBusy) else _FAILED


def _save(request: HttpRequest, project: Project, repository: Repository, form: UploadForm) -> bool:
    """Commit the files; return False with the reason in the form."""
    data, who = form.cleaned_data, request.user.get_username()
    files: dict[str, bytes] = data["chosen"]
    largest = centralconfig.value_of(REPOSITORY_SIZE)
    try:
        repository.create()
        commit = upload(repository, data["folder"], files, author=who, replace=data["replace"], largest=largest)
    except AlreadyThere as error:
        form.add_error("chosen", f"{error} {_AGAIN}")
    except UploadRefused as error:
        form.add_error("chosen", str(error))
    except (GridError, OSError) as error:
        logger.warning("not uploaded project=%s by=%s reason=%s", project.pk, who, error)
        form.add_error(None, why_unwritten(error))
    else:
        logger.info("uploaded project=%s by=%s files=%d commit=%s", project.pk, who, len(files), commit)
        names = listed(files) if len(files) < 4 else plural(len(files), "file", "files")
        messages.success(request, _("Saved: {names}. Executions launched from now on have the change.", names=names))
        return True
    return False


def _page(request: HttpRequest, project: Project, form: UploadForm) -> HttpResponse:
    context = {"project": project, "form": form}
    return render(request, "files/files_upload.html", context, status=422 if form.is_bound else 200)
