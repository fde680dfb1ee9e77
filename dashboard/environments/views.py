"""Environments as admins edit them, and their revisions: the list, one with the log of its build, a new one, and deprecating one."""

from collections.abc import Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.administration.views import EditedKind, Pools
from dashboard.environments.forms import BUILT, IMAGE, DeprecationForm, EnvironmentForm, RevisionForm
from dashboard.environments.viewmodel import ImageFacts, RevisionLine, deprecation_sentences, revision_line
from dashboard.logs.viewmodels.log import LogQuery, LogView
from dashboard.logs.viewmodels.log_lines import cursor_before, cursor_text, parse_cursor
from dashboard.logs.views.logs import kept_lines, read_rows
from dashboard.platformhealth.records import framework_lines_of
from dashboard.shell.access import admin_required, user_of
from dashboard.shell.exports import attachment
from dashboard.shell.forms.fields import add_problems
from grid.audit import entries as audit
from grid.core.errors import GridError, NotAllowed, NotFound, Rejected, rejection
from grid.core.translation import gettext as _
from grid.diagnosis.nodeimages import on_nodes
from grid.environments import revisions as rules
from grid.environments.revisionbuilds import NO_BUILDER, build_repository, build_settings
from grid.models import AuditEntry, Environment, EnvironmentRevision
from grid.queue.wait_estimate.reading import recent_pace, usual_pull
from grid.runtime import Runtime, get_runtime


@require_safe
@admin_required
def revision_list(request: HttpRequest, id: str) -> HttpResponse:
    environment = get_object_or_404(Environment, pk=id)
    newest = environment.revisions.select_related("base").defer("log", "base__log")[:_SHOWN]
    context = {"environment": environment, "revisions": lines_of(environment, list(newest))}
    return render(request, "environments/revisions.html", context)


@require_safe
@admin_required
async def revision(request: HttpRequest, id: str, number: int) -> HttpResponse:
    """Show one revision with the log of its build; the lines alone for the log's script, or the log as a file."""
    stored = await sync_to_async(_stored)(id, number)
    if request.GET.get("download") == "1":
        return attachment(stored.log, f"{stored.environment_id}-{stored.number}.log", "text/plain; charset=utf-8")
    view = await _log(request, stored) if stored.base else None
    if request.GET.get("part") == "rows":
        return await sync_to_async(render)(request, "logs/fragments/log_rows.html", {"log": view or LogView()})
    return await sync_to_async(_revision_page)(request, stored, view)


def _revision_page(request: HttpRequest, stored: EnvironmentRevision, view: LogView | None) -> HttpResponse:
    environment = stored.environment
    (line,) = lines_of(environment, [stored])
    context = {"environment": environment, "line": line, "digest": stored.digest, "log": view}
    return render(request, "environments/revision.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
async def revision_new(request: HttpRequest, id: str) -> HttpResponse:
    return await sync_to_async(_new)(request, id, await builds_images(get_runtime()))


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def revision_deprecate(request: HttpRequest, id: str, number: int) -> HttpResponse:
    stored = _stored(id, number)
    environment = stored.environment
    form = DeprecationForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        before = audit.snapshot(environment)
        try:
            rules.deprecate(id, number, because=form.cleaned_data["because"])
            _record(request, environment, before)
            deprecated = _("Revision {number} of {environment} is deprecated.")
            messages.success(request, deprecated.format(number=number, environment=environment))
        except Rejected as refused:
            messages.error(request, refused.sentences)
        return redirect("environment-revisions", id)
    uses = rules.uses_of(id).get(number, rules.RevisionUses())
    line = revision_line(stored, current=environment.current_revision, uses=uses)
    states = environment.revisions.exclude(number=number).values_list("number", "state")
    sentences = deprecation_sentences(uses, rules.current_number(states))
    context = {"environment": environment, "line": line, "form": form, "sentences": sentences}
    return render(request, "environments/revision_deprecate.html", context, status=422 if form.errors else 200)


async def builds_images(runtime: Runtime) -> bool:
    """Return whether a builder is set, or the cluster builds images itself; one that does not answer is taken for one that does."""
    if build_settings() is not None:
        return True
    try:
        await runtime.api.ask_sandbox("GET", "population")
    except (NotFound, NotAllowed):
        return False
    except GridError:
        pass
    return True


def _new(request: HttpRequest, id: str, is_built_here: bool) -> HttpResponse:
    environment = get_object_or_404(Environment, pk=id)
    data = request.POST if request.method == "POST" else None
    ready = environment.revisions.filter(state=EnvironmentRevision.State.READY).defer("log")[:_SHOWN]
    bases = [(row.number, _("Revision {n}: {image}", n=row.number, image=row.image)[:120]) for row in ready]
    form = RevisionForm(data, bases=bases, initial=_initial(request, environment))
    if form.is_bound and form.is_valid():
        before = audit.snapshot(environment)
        try:
            made = _made(form, request, environment, is_built_here)
            _record(request, environment, before)
            sentence = _BEING_BUILT if form.is_built else _("Revision {number} of {environment} is the current one.")
            messages.success(request, sentence.format(number=made.number, environment=environment))
            return redirect("environment-revision", id, made.number)
        except Rejected as refused:
            add_problems(form, refused.problems)
    context = {"environment": environment, "form": form, "no_builder": "" if is_built_here else NO_BUILDER}
    return render(request, "environments/revision_new.html", context, status=422 if form.is_bound else 200)


def _made(
    form: RevisionForm, request: HttpRequest, environment: Environment, is_built_here: bool
) -> EnvironmentRevision:
    data = form.cleaned_data
    about: dict[str, Any] = {"note": data["note"], "by": request.user.get_username(), "now": timezone.now()}
    if not form.is_built:
        return rules.make_image(environment.pk, data["image"], **about)
    if not is_built_here:
        raise rejection(NO_BUILDER, "no_builder", path="requirements")
    about["repository"] = build_repository()
    return rules.make_built(environment.pk, data["base"] or 0, data["requirements"], **about)


def _initial(request: HttpRequest, environment: Environment) -> dict[str, Any]:
    """Return what the form begins with: of `?from=NUMBER` what that revision was, such as one that failed."""
    initial: dict[str, Any] = {"what": IMAGE, "base": environment.current_revision}
    asked = request.GET.get("from", "")
    is_number = asked.isascii() and asked.isdigit() and len(asked) < 9
    like = environment.revisions.select_related("base").filter(number=asked).first() if is_number else None
    if like is None:
        return initial
    if like.base is None:
        return {**initial, "image": like.image}
    return {"what": BUILT, "base": like.base.number, "requirements": like.requirements, "note": like.note}


def _record(request: HttpRequest, environment: Environment, before: dict[str, Any]) -> None:
    environment.refresh_from_db()
    audit.record(actor=user_of(request), instance=environment, action=AuditEntry.Action.CHANGED, before=before)


def _stored(id: str, number: int) -> EnvironmentRevision:
    rows = EnvironmentRevision.objects.select_related("environment", "base").defer("base__log")
    return get_object_or_404(rows, environment=id, number=number)


async def _log(request: HttpRequest, stored: EnvironmentRevision) -> LogView:
    page = reverse("environment-revision", args=[stored.environment_id, stored.number])
    asked = LogQuery.parse(request.GET.dict())
    kept = await kept_lines(stored.log, asked)
    rows, problem = await read_rows(kept)
    is_building = stored.state == EnvironmentRevision.State.BUILDING
    return LogView(
        page,
        page,
        asked=asked,
        scope=_("The end of the build’s log, at most 64 KiB."),
        rows=rows,
        problem=problem,
        before=cursor_text(cursor_before(kept.lines, parse_cursor(asked.before))) if kept.has_earlier else "",
        why_empty=_("It has not begun yet.")
        if is_building
        else _("The build wrote nothing, or ended before logs were kept."),
    )


class _Environments(EditedKind):
    __slots__ = ()

    def edit_context(self, form: Any, instance: Any, pools: Pools | None) -> dict[str, Any]:
        return {"framework_lines": framework_lines_of(instance)}


ENVIRONMENTS = _Environments(
    "environments",
    "environment",
    _("Environments"),
    Environment,
    EnvironmentForm,
    _("The images and commands that run."),
    _("New environment"),
    _("Archive the environment {name}?"),
    is_frozen_at_launch=True,
)
_SHOWN = 200
_BEING_BUILT = _("Revision {number} of {environment} is being built; launches take it as soon as it is ready.")


def lines_of(environment: Environment, rows: Sequence[EnvironmentRevision]) -> list[RevisionLine]:
    """Return the revisions in words, each with who uses it and what nodes report of its image."""
    uses = rules.uses_of(environment.pk)
    current = environment.current_revision
    images = {row.image for row in rows} | {row.base.image for row in rows if row.base}
    seen, pace = on_nodes(images, list(get_runtime().nodes.values())), usual_pull(1, recent_pace())
    lines = []
    for row in rows:
        facts = ImageFacts(seen[row.image], seen[row.base.image].size if row.base else None, pace)
        used = uses.get(row.number, rules.RevisionUses())
        lines.append(revision_line(row, current=current, uses=used, image=facts))
    return lines
