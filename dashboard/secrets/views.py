"""Secrets: one's own and a project's. Whoever may set them sees their names; nobody sees a value.

A project's secrets are set and deleted by its owner and contributors, who could read them in what they launch; admins delete them only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from dashboard.secrets.forms import SecretForm
from dashboard.shell.access import may_administer, may_contribute, seen_project, user_of
from dashboard.shell.forms.fields import add_problems
from dashboard.shell.viewmodels.listing import Confirmation
from grid.core.errors import Rejected
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed_up_to
from grid.executions.launchrequest import projects_for
from grid.executions.progress import CREATED
from grid.jobs.jobrows import waiting_runs
from grid.models import Execution, Project, Schedule, State, StoredSecret, User
from grid.models.execution import object_name_of
from grid.secrets import storedsecrets

_NAMED = 3


@dataclass(frozen=True, slots=True)
class SecretUses:
    """The executions that have yet to get the secret and those that have it; active schedules and waiting runs that would get it."""

    queued: Sequence[str] = ()
    running: Sequence[str] = ()
    schedules: int = 0
    waiting: int = 0


def deletion_sentences(uses: SecretUses) -> list[str]:
    return [
        _("The value cannot be recovered: no page shows it, and no copy is kept."),
        *_uses_sentences(uses),
        _("Later launches get no secret of this name, unless another one that applies to them has it."),
    ]


def _uses_sentences(uses: SecretUses) -> Iterator[str]:
    if uses.running:
        yield ngettext(
            "{count:,} active execution has it and keeps it until it ends: {names}.",
            "{count:,} active executions have it and keep it until they end: {names}.",
            len(uses.running),
            names=listed_up_to(_NAMED, uses.running),
        )
    if uses.queued:
        yield ngettext(
            "{count:,} queued execution needs it and fails when it starts: {names}.",
            "{count:,} queued executions need it and fail when they start: {names}.",
            len(uses.queued),
            names=listed_up_to(_NAMED, uses.queued),
        )
    if uses.waiting:
        yield ngettext(
            "{count:,} waiting run of jobs starts without it.",
            "{count:,} waiting runs of jobs start without it.",
            uses.waiting,
        )
    if not (uses.running or uses.queued or uses.waiting):
        yield _("No active or queued execution uses it.")
    if uses.schedules:
        yield ngettext(
            "{count:,} active schedule starts its runs without it.",
            "{count:,} active schedules start their runs without it.",
            uses.schedules,
        )


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("value")
def own_secrets(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    form = SecretForm(request.POST or None, request.FILES or None, projects=projects_for(user))
    if form.is_valid() and _put(request, form, owner=user, project=form.cleaned_data["project"]):
        return redirect("secrets")
    return _page(request, form, {"secrets": storedsecrets.of_person(user).defer("ciphertext"), "may_set": True})


@require_http_methods(["GET", "HEAD", "POST"])
def own_secret_delete(request: HttpRequest, id: int) -> HttpResponse:
    secret = get_object_or_404(storedsecrets.of_person(user_of(request)), pk=id)
    return _delete(request, secret, back=reverse("secrets"))


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("value")
def project_secrets(request: HttpRequest, id: str) -> HttpResponse:
    project, may_set = _project(request, id)
    if request.method == "POST" and not may_set:
        raise PermissionDenied(_("Only the project's owner and contributors set its secrets; admins can delete them."))
    form = SecretForm(request.POST or None, request.FILES or None)
    if form.is_valid() and _put(request, form, owner=None, project=project):
        return redirect("project-secrets", id)
    secrets = storedsecrets.of_project(project).defer("ciphertext")
    return _page(request, form, {"secrets": secrets, "project": project, "may_set": may_set})


@require_http_methods(["GET", "HEAD", "POST"])
def project_secret_delete(request: HttpRequest, id: str, secret: int) -> HttpResponse:
    project, _may_set = _project(request, id)
    stored = get_object_or_404(storedsecrets.of_project(project), pk=secret)
    return _delete(request, stored, back=reverse("project-secrets", args=[id]))


def _put(request: HttpRequest, form: SecretForm, *, owner: User | None, project: Project | None) -> bool:
    """Store what the form says; return False with its problems in the form."""
    typed = {name: form.cleaned_data[name] for name in ("name", "is_file", "value")}
    try:
        secret = storedsecrets.put(by=user_of(request), owner=owner, project=project, now=timezone.now(), **typed)
    except Rejected as refused:
        add_problems(form, refused.problems)
        return False
    messages.success(request, _("{name} is stored. New launches get it.", name=secret.name))
    return True


def _delete(request: HttpRequest, secret: StoredSecret, *, back: str) -> HttpResponse:
    if request.method != "POST":
        question = Confirmation(
            _("Delete the secret {subject}"),
            secret.name,
            deletion_sentences(uses_of(secret)),
            action_url=request.path,
            answer=_("Delete the secret"),
            keep_url=back,
        )
        return render(request, "shell/question.html", {"question": question})
    storedsecrets.delete(secret, by=user_of(request))
    messages.success(request, _("{name} was deleted. Active executions keep it until they end.", name=secret.name))
    return redirect(back)


def _page(request: HttpRequest, form: SecretForm, context: dict[str, Any]) -> HttpResponse:
    return render(request, "secrets/secrets.html", {"form": form, **context}, status=422 if form.is_bound else 200)


def _project(request: HttpRequest, id: str) -> tuple[Project, bool]:
    """Return the project, and whether the user may set its secrets. Raise Http404 for strangers, PermissionDenied for who only looks."""
    project, roles = seen_project(request, id)
    may_set = may_contribute(request.user, roles)
    if not may_set and not may_administer(request.user):
        raise PermissionDenied(_("Only the project's owner and contributors see which secrets it has."))
    return project, may_set


def uses_of(secret: StoredSecret) -> SecretUses:
    """Return the uses of a secret: executions name those they were launched with, runs and schedules get what applies to each launch."""
    holders = {"owner": secret.owner_id, "project": secret.project_id}
    scope: dict[str, Any] = {name: holder for name, holder in holders.items() if holder is not None}
    active = Execution.objects.unsettled().filter(ended_at__isnull=True, **scope).order_by("requested_at", "pk")
    queued: list[str] = []
    running: list[str] = []
    columns = active.values_list("pk", "kind", "title", "state", "reason", "spec__secrets")
    for id, kind, title, state, reason, secrets in columns:
        if any(launched["id"] == secret.pk for launched in secrets or ()):
            # The values are read when its objects are created.
            needs_it = state == State.QUEUED or (state == State.DEPLOYING and reason != CREATED)
            (queued if needs_it else running).append(title or object_name_of(kind, id))
    of_jobs = {f"job__{name}": of for name, of in scope.items()}
    schedules = Schedule.objects.filter(next_at__isnull=False, job__deleted_at__isnull=True, **of_jobs)
    return SecretUses(queued, running, schedules.count(), waiting_runs().filter(**of_jobs).count())
