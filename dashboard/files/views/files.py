"""The files of a project that keeps them in Git: folders, files, commits, and what could not be pushed.

What people's programs wrote is shown as text, or as an image in a picture's place, and given away as a download: nothing of it is ever a
page of the dashboard's origin. Of a remote repository there is no copy here, only the results of executions: the page says where it is.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Generator, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_POST, require_safe

from dashboard.files.viewmodels.files import SHOWN_BYTES, Place, file, folder, image_type
from dashboard.files.viewmodels.notebooks import NOTEBOOK_BYTES, NotANotebook, is_notebook, notebook
from dashboard.shell.access import may_contribute, seen_project
from grid.audit.entries import write_entry
from grid.core.errors import GridError
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.edge import textwork
from grid.files import stored_remotes as remotes
from grid.files.git import AnswerTooLong, GitBusy, GitFailed
from grid.files.remotes import RemoteFailed
from grid.files.repositories import Branch, Repositories, Repository, TreeEntry, is_path
from grid.models import Project, RunFiles

logger = logging.getLogger(__name__)

_COMMITS = 50
_UNREADABLE = _("The project's files cannot be read now. Ask an operator to look at the repositories' volume.")
BUSY = _("Many people are reading files now. Try again in a moment.")
_TOO_LONG = _("There is too much in this place to list it here. Look at it in a workspace.")


@require_safe
async def project_files(request: HttpRequest, id: str) -> HttpResponse:
    context, status = await sync_to_async(_at_a_place)(request, id)
    content = context.pop("notebook_content", None)
    if content is not None:
        context |= await _notebook(content)
    return await sync_to_async(render)(request, "files/files.html", context, status=status)


def _at_a_place(request: HttpRequest, id: str) -> tuple[dict[str, Any], int]:
    """Return what the page shows, and its status; of a notebook its content, which is still to be read."""
    project, repository = project_repository(request, id)
    context: dict[str, Any] = {"project": project, "now": timezone.now(), "unpushed": ()}
    is_remote = project.files == Project.Files.REMOTE
    if is_remote:
        context["remote"] = remotes.of_project(project)
    try:
        if is_remote and not repository.has_results(request.GET.get("at", "")):
            # The page says where the remote repository is, and what could not be pushed there.
            return context | {"unpushed": repository.unpushed()}, 200
        branches = repository.branches() if repository.exists and not is_remote else []
        context["unpushed"] = repository.unpushed() if repository.exists else ()
        context["branches"] = branches
        if not branches and not request.GET.get("at"):
            return context, 200
        place = _place(request, repository, branches)
        context |= {"place": place, "last": next(iter(repository.history(place.commit, place.path, count=1)), None)}
        entry = repository.entry(place.commit, place.path) if place.path else None
        if place.path and entry is None:
            raise Http404
        if entry is None or entry.is_folder:
            context["folder"] = folder(place, repository.folder(place.commit, place.path))
        elif entry.is_module:
            raise Http404
        else:
            context |= _shown(place.name, entry, repository, as_text=request.GET.get("as") == "text")
    except (GridError, OSError) as error:
        return _unreadable(context, error), 503
    return context, 200


@require_safe
def project_history(request: HttpRequest, id: str) -> HttpResponse:
    project, repository = project_repository(request, id)
    if project.files == Project.Files.REMOTE:
        return redirect("project-files", id)
    context: dict[str, Any] = {"project": project, "now": timezone.now()}
    skip = request.GET.get("skip", "")
    before = int(skip) if skip.isascii() and skip.isdigit() and len(skip) < 9 else 0
    try:
        context["branches"] = repository.branches() if repository.exists else []
        if not context["branches"] and not request.GET.get("at"):
            return render(request, "files/files.html", context)
        place = _place(request, repository, context["branches"])
        commits = repository.history(place.commit, place.path, count=_COMMITS + 1, skip=before)
    except (GridError, OSError) as error:
        return render(request, "files/files.html", _unreadable(context, error), status=503)
    context |= {"place": place, "commits": commits[:_COMMITS], "skip": before}
    context |= {"next_skip": before + _COMMITS if len(commits) > _COMMITS else None}
    return render(request, "files/file_history.html", context)


@require_safe
async def project_file(request: HttpRequest, id: str) -> HttpResponseBase:
    """Give a file away as a download; an image has its type, so that a page of ours may show it as a picture."""
    name, entry, repository = await sync_to_async(_file)(request, id)
    read = repository.stream(entry)
    try:
        first = await asyncio.to_thread(next, read, b"")
    except GitFailed as error:
        logger.warning("file not read project=%s reason=%s", id, error)
        return HttpResponse(BUSY if isinstance(error, GitBusy) else _UNREADABLE, "text/plain", status=503)
    answer = StreamingHttpResponse(_chunks(first, read), content_type=image_type(name) or "application/octet-stream")
    answer["Content-Length"] = str(entry.size)
    answer["Content-Disposition"] = content_disposition_header(True, name)
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return answer


@require_POST
def project_push_again(request: HttpRequest, id: str) -> HttpResponse:
    """Take what an execution could not push into a branch that is named after it."""
    project, repository = project_repository(request, id)
    name = request.POST.get("name", "")
    try:
        if project.files == Project.Files.REMOTE:
            remotes.push_again(project, repository, name)
        else:
            repository.push_again(name)
    except (GridError, OSError) as error:
        logger.warning("not pushed again project=%s name=%s reason=%s", id, name[:60], error)
        why = str(error) if isinstance(error, RemoteFailed) else _("Try again later.")
        kept = _("The changes of {name} could not be pushed now; they stay kept. {why}", name=name[:60], why=why)
        messages.error(request, kept)
        return redirect("project-files", id)
    unpushed = RunFiles.objects.filter(execution=name.rpartition("-")[2], execution__project=project)
    by = request.user.get_username()
    with transaction.atomic():
        unpushed.update(branch=name, kept="", problem="")
        write_entry(by, project, {"files": ["", _("changes of {name} pushed again", name=name)]})
    logger.info("pushed again project=%s name=%s by=%s", id, name, by)
    messages.success(request, _("The changes of {name} are on branch {branch} now.", name=name, branch=name))
    return redirect("project-files", id)


async def _chunks(chunk: bytes, read: Generator[bytes, None, None]) -> AsyncIterator[bytes]:
    try:
        while chunk:
            yield chunk
            chunk = await asyncio.to_thread(next, read, b"")
    finally:
        await asyncio.to_thread(read.close)


def _file(request: HttpRequest, id: str) -> tuple[str, TreeEntry, Repository]:
    project, repository = project_repository(request, id)
    is_remote = project.files == Project.Files.REMOTE
    try:
        if is_remote and not repository.has_results(request.GET.get("at", "")):
            raise Http404
        place = _place(request, repository, () if is_remote else repository.branches())
        entry = repository.entry(place.commit, place.path) if place.path else None
    except (GitFailed, OSError) as error:
        raise Http404 from error
    if entry is None or entry.is_folder or entry.is_module:
        raise Http404
    return place.name, entry, repository


def project_repository(request: HttpRequest, id: str) -> tuple[Project, Repository]:
    """Return the project and its repository. Raise Http404 for who may not know of it, or where its files are not in Git."""
    project, roles = seen_project(request, id)
    if not may_contribute(request.user, roles):
        raise PermissionDenied(_("Only the owner and contributors of the project see its files."))
    if not project.is_in_git or not settings.REPOSITORIES:
        raise Http404
    return project, Repositories(settings.REPOSITORIES).of(project.pk)


def _shown(name: str, entry: TreeEntry, repository: Repository, *, as_text: bool) -> dict[str, Any]:
    """Return what the page shows of a file, of a notebook also its whole content, unless its text is asked for."""
    context: dict[str, Any] = {}
    if is_notebook(name) and not entry.is_link and not as_text:
        if entry.size > NOTEBOOK_BYTES:
            largest = format_bytes(NOTEBOOK_BYTES)
            context["notebook_problem"] = _("Notebooks over {size} are shown as text.", size=largest)
        else:
            context["notebook_content"] = repository.head_of(entry, NOTEBOOK_BYTES)
    return {**context, "file": file(name, entry, repository.head_of(entry, SHOWN_BYTES))}


async def _notebook(content: bytes) -> dict[str, Any]:
    try:
        return {"notebook": await textwork.workers.run(notebook, content, size=len(content))}
    except NotANotebook as error:
        return {"notebook_problem": str(error)}
    except textwork.TextTooLong:
        return {"notebook_problem": _("This notebook takes too long to show. Download it. Its text is shown here.")}
    except textwork.TextWorkFailed as error:
        return {"notebook_problem": _("{error} Until then its text is shown.", error=error)}


def _place(request: HttpRequest, repository: Repository, branches: Sequence[Branch]) -> Place:
    """Return the place that is asked for. Raise Http404 when there is no such branch, commit or path."""
    path = request.GET.get("path", "").strip("/")
    at = request.GET.get("at", "") or (branches[0].name if branches else "")
    commit = repository.resolve(at)
    if commit is None or (path and not is_path(path)):
        raise Http404
    return Place(at, commit, path, is_branch=any(branch.name == at for branch in branches))


def _unreadable(context: dict[str, Any], error: Exception) -> dict[str, Any]:
    logger.warning("files not read project=%s reason=%s", context["project"].pk, error)
    problem = BUSY if isinstance(error, GitBusy) else _TOO_LONG if isinstance(error, AnswerTooLong) else _UNREADABLE
    return {**context, "problem": problem}
