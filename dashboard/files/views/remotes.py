"""The remote repository of a project: its owner and admins store it, test the connection, and say whose server it is."""

import logging

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms.models import model_to_dict
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.files.forms import RemoteForm
from dashboard.shell.access import may_manage_project, seen_project, user_of
from dashboard.shell.forms.fields import add_problems
from dashboard.shell.viewmodels.listing import Confirmation
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.database.encryption import Undecryptable
from grid.files import stored_remotes as remotes
from grid.files.remotes import HostKey, HostKeyRefused, Remote, RemoteFailed
from grid.files.remoteurls import parse
from grid.models import Project, RemoteRepository

logger = logging.getLogger(__name__)

_FORGOTTEN = _("The remote repository and its secret are forgotten here. Nothing in it was changed.")
_SAME_KEY = _("The server showed another key than the confirmed one, and now that again. Ask who runs it.")
_ASK_FOR_NEW = _(
    "Ask whoever runs the server first whether it has a new key. If it has none, somebody else answers in its place."
)
_COMPARE = _(
    "Compare it with what the server's administrators publish. Whoever answers in the server's place has another one."
)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("secret")
def project_remote(request: HttpRequest, id: str) -> HttpResponse:
    project = _project(request, id)
    known = remotes.of_project(project)
    initial = model_to_dict(known, ("url", "branch", "username")) if known else {}
    data = request.POST if request.method == "POST" else None
    form = RemoteForm(data, initial=initial, has_secret=known is not None)
    if form.is_valid():
        try:
            stored = remotes.put(project, by=user_of(request), now=timezone.now(), **form.cleaned_data)
            more = "" if stored.is_usable else _(" Nobody has confirmed its server's key yet: test the connection.")
            messages.success(request, _("The remote repository is stored. New launches get it.{more}", more=more))
            return redirect("project-remote", id)
        except Rejected as refused:
            add_problems(form, refused.problems)
    is_used, fingerprint = project.files == Project.Files.REMOTE, _fingerprint(known)
    context = {"project": project, "remote": known, "form": form, "is_used": is_used, "fingerprint": fingerprint}
    return render(request, "files/remote.html", context, status=422 if form.is_bound else 200)


@require_POST
def project_remote_test(request: HttpRequest, id: str) -> HttpResponse:
    """Connect with what is stored, and say what came of it; of an SSH server that nobody knows, show the key and ask."""
    project = _project(request, id)
    remote = remotes.of_project(project)
    if remote is None:
        raise Http404
    try:
        connection = remotes.connection(remote)
        if not remote.is_usable:
            return _ask(request, project, remote, connection.host_key())
        try:
            branches = connection.branches()
        except HostKeyRefused:
            return _ask(request, project, remote, _other_key(connection, remote))
    except Undecryptable:
        messages.error(request, _("The stored secret can no longer be read. Store it again."))
    except RemoteFailed as error:
        logger.info("remote repository not reached project=%s reason=%s", id, error)
        messages.error(request, _("The connection does not work. {error}", error=error))
    else:
        _tell(request, remote, branches)
    return redirect("project-remote", id)


@require_POST
def project_remote_confirm(request: HttpRequest, id: str) -> HttpResponse:
    """Trust the server's key that the person has compared."""
    project = _project(request, id)
    try:
        typed = {name: request.POST.get(name, "") for name in ("key", "url")}
        key = remotes.confirm(project, by=user_of(request), **typed)
        known = _("The server is known by {fingerprint}. Test the connection once more.", fingerprint=key.fingerprint)
        messages.success(request, known)
    except Rejected as refused:
        messages.error(request, refused.problems[0].message)
    return redirect("project-remote", id)


@require_POST
def project_remote_remove(request: HttpRequest, id: str) -> HttpResponse:
    try:
        remotes.remove(_project(request, id), by=user_of(request))
        messages.success(request, _FORGOTTEN)
    except Rejected as refused:
        messages.error(request, refused.problems[0].message)
    return redirect("project-remote", id)


def _tell(request: HttpRequest, remote: RemoteRepository, branches: list[str]) -> None:
    sentence = _("The connection works, but it has no branch {branch}. Choose one that it has.")
    if not branches:
        sentence = _("The connection works. It has no branches yet; the first save creates {branch}.")
    elif remote.branch in branches:
        sentence = _("The connection works, and it has the branch {branch}. Writing was not tried.")
    is_usable = not branches or remote.branch in branches
    (messages.success if is_usable else messages.error)(request, sentence.format(branch=remote.branch))


def _other_key(connection: Remote, remote: RemoteRepository) -> HostKey:
    """Return the key that the server shows now, in place of the confirmed one. Raise RemoteFailed when it is that again."""
    key = connection.host_key()
    if f"{key.type} {key.text}" == remote.host_key:
        raise RemoteFailed(_SAME_KEY)
    return key


def _ask(request: HttpRequest, project: Project, remote: RemoteRepository, key: HostKey) -> HttpResponse:
    shown = {"type": key.type, "fingerprint": key.fingerprint}
    if remote.host_key:
        title, answer = _("Has the key been changed by {subject}"), _("It is the new key: confirm")
        sentences = [
            _("The server was known by the fingerprint {fingerprint}.", fingerprint=_fingerprint(remote)),
            _("Now it shows another key, of type {type} with the fingerprint {fingerprint}.", **shown),
            _ASK_FOR_NEW,
        ]
    else:
        title, answer = _("Is this the key of {subject}"), _("It is the same: confirm")
        sentences = [_("It shows a key of type {type} with the fingerprint {fingerprint}.", **shown), _COMPARE]
    question = Confirmation(
        title,
        parse(remote.url).known_host,
        [*sentences, _("Once it is confirmed, executions talk to a server with this key only.")],
        action_url=reverse("project-remote-confirm", args=[project.pk]),
        answer=answer,
        keep=_("Do not confirm"),
        keep_url=reverse("project-remote", args=[project.pk]),
        fields=(("key", f"{key.type} {key.text}"), ("url", remote.url)),
        is_danger=bool(remote.host_key),
    )
    return render(request, "shell/question.html", {"question": question})


def _fingerprint(known: RemoteRepository | None) -> str:
    try:
        return HostKey.parse(known.host_key).fingerprint if known is not None and known.host_key else ""
    except ValueError:
        return ""


def _project(request: HttpRequest, id: str) -> Project:
    """Return the project. Raise Http404 for strangers and where Git is not offered, PermissionDenied for who may not change it."""
    project, roles = seen_project(request, id)
    if not may_manage_project(request.user, roles):
        raise PermissionDenied(_("Only the owner of the project and admins set up its remote repository."))
    if not settings.REPOSITORIES:
        raise Http404
    return project
