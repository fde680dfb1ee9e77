"""The pages on which admins edit tiers, environments, projects and the knowledge base; the views differ only in their `EditedKind`."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models import Prefetch, Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.administration.forms import CatalogueForm
from dashboard.administration.viewmodel import HistoryLine, history_line, history_lines, in_use_sentence
from dashboard.shell.access import admin_required, user_of
from dashboard.shell.archiving import archiving_means
from dashboard.shell.viewmodels.listing import Confirmation
from grid.audit import entries as audit
from grid.core.translation import gettext as _
from grid.diagnosis.nodeshapes import PoolShapes
from grid.models import AuditEntry, Execution, HardwareTier, KnowledgeEntry
from grid.models.execution import ACTIVE_STATES

Pools = Mapping[str, PoolShapes]


@dataclass(frozen=True, slots=True)
class EditedKind:
    """One kind of object that admins edit; `name` and `singular` begin its URL names. Its room overrides the methods with what it adds."""

    name: str
    singular: str
    title: str
    model: type[models.Model]
    form: type[CatalogueForm]
    purpose: str
    new: str  # the title of the page for a new one
    archive: str  # the question before one is archived, with {name} in it
    related: tuple["str | Prefetch[Any]", ...] = ()  # the relations that its list fetches along
    is_frozen_at_launch: bool = False  # an execution keeps a copy, so an edit changes nothing that runs
    while_archived: str = _("nobody can choose it")
    roles: frozenset[str] = frozenset()  # the names of people's roles in its history, which are no fields of the model

    @property
    def table(self) -> str:
        return f"{self.name}/fragments/{self.singular}_table.html"

    @property
    def form_name(self) -> str:
        """The name of the URL of the form in which one is edited."""
        return self.singular

    @property
    def object_type(self) -> str:
        return self.model._meta.model_name or ""

    async def pools(self) -> Pools | None:
        """Return the shapes of the pools' nodes; None until the nodes are read, and of a kind that needs none."""
        return None

    def words(self, instance: Any) -> object:
        return None

    def list_context(self, instances: Sequence[Any], pools: Pools | None) -> dict[str, Any]:
        return {}

    def edit_context(self, form: Any, instance: Any, pools: Pools | None) -> dict[str, Any]:
        """Return more of the template context of the form; `instance` is None for a new object."""
        return {}

    def frame(self, request: HttpRequest, instance: Any) -> dict[str, Any]:
        """Return the context of what is around the form of a stored object, such as its tabs."""
        return {}

    def doubts(self, form: Any) -> Sequence[str]:
        """Return sentences about what saving a valid form does that hardly anybody means, or that others lose by; none as a rule."""
        return ()

    def question(self, form: Any, request: HttpRequest) -> Confirmation | None:
        """Return what to ask before a valid form is saved; None when nothing is, or when the answer was yes."""
        if "confirmed" in request.POST or not (sentences := self.doubts(form)):
            return None
        sent = [
            (name, value) for name, values in request.POST.lists() if name != "csrfmiddlewaretoken" for value in values
        ]
        return Confirmation(
            _("Save changes to {subject}"),
            str(form.instance),
            sentences,
            action_url=request.path,
            answer=_("Save"),
            keep=_("Do not save"),
            keep_url=request.path,
            fields=[*sent, ("confirmed", "on")],
        )

    def has_problem(self, instance: Any, pools: Pools | None) -> bool:
        """Return whether the saved object has a problem, which its own page says."""
        return False

    def restore_roles(self, instance: Any, entry: AuditEntry) -> None:
        """Undo the part of a change that is of `roles`. Raise ValidationError when that cannot be."""


_HISTORY_LENGTH = 50
_CHANGED_MEANWHILE = _(
    "Somebody changed this while you were editing. Your entries are still here; compare and save again."
)


@require_safe
@admin_required
async def catalogue_list(request: HttpRequest, catalogue: EditedKind) -> HttpResponse:
    return await sync_to_async(_list)(request, catalogue, await catalogue.pools())


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
async def catalogue_edit(request: HttpRequest, catalogue: EditedKind, id: str = "") -> HttpResponse:
    return await sync_to_async(_edit)(request, catalogue, id, await catalogue.pools())


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def catalogue_archive(request: HttpRequest, catalogue: EditedKind, id: str) -> HttpResponse:
    """Archive the object, after a question that says who uses it, or restore it; what executions refer to is never deleted."""
    if request.method != "POST":
        asked: Any = get_object_or_404(catalogue.model, pk=id, is_archived=False)
        context = {
            "catalogue": catalogue,
            "object": asked,
            "object_name": str(asked),
            "question": catalogue.archive.partition("{name}"),
            "archive_name": f"{catalogue.singular}-archive",
            "consequences": archiving_means(asked),
        }
        return render(request, "administration/catalogue_archive.html", context)
    with transaction.atomic():
        instance: Any = get_object_or_404(catalogue.model.objects.select_for_update(no_key=True), pk=id)  # type: ignore[attr-defined]
        before = audit.snapshot(instance)
        instance.is_archived = not instance.is_archived
        if instance.is_archived and hasattr(instance, "is_default"):
            instance.is_default = False
        instance.save()
        action = AuditEntry.Action.ARCHIVED if instance.is_archived else AuditEntry.Action.RESTORED
        audit.record(actor=user_of(request), instance=instance, action=action, before=before)
    outcome = _("{name} is restored.")
    if instance.is_archived and isinstance(instance, KnowledgeEntry):
        outcome = _("{name} is archived: {while_archived}.")
    elif instance.is_archived:
        outcome = _("{name} is archived: running executions continue, and {while_archived}.")
    messages.success(request, outcome.format(name=instance, while_archived=catalogue.while_archived))
    return redirect(catalogue.name)


@require_POST
@admin_required
def catalogue_revert(request: HttpRequest, catalogue: EditedKind, id: str, entry_id: int) -> HttpResponseRedirect:
    """Undo one recorded change, if the old values are still valid."""
    entry = get_object_or_404(AuditEntry, pk=entry_id, object_type=catalogue.object_type, object_id=id)
    try:
        with transaction.atomic():
            instance = get_object_or_404(catalogue.model.objects.select_for_update(no_key=True), pk=id)  # type: ignore[attr-defined]
            before = audit.snapshot(instance)
            _apply_old_values(catalogue, instance, entry)
            audit.record(actor=user_of(request), instance=instance, action=AuditEntry.Action.CHANGED, before=before)
        messages.success(request, _("The change of {at:%Y-%m-%d %H:%M} is undone.", at=entry.at))
    except ValidationError as error:
        messages.error(request, _("This cannot be undone: {reason}", reason=" ".join(error.messages)))
    return HttpResponseRedirect(reverse(catalogue.form_name, args=[id]))


def _list(request: HttpRequest, catalogue: EditedKind, pools: Pools | None) -> HttpResponse:
    everything = list(catalogue.model._default_manager.select_related().prefetch_related(*catalogue.related))
    rows = [(instance, catalogue.words(instance)) for instance in everything]
    context = {
        "catalogue": catalogue,
        "rows": [row for row in rows if not row[0].is_archived],  # type: ignore[attr-defined]
        "archived": [row for row in rows if row[0].is_archived],  # type: ignore[attr-defined]
        "new_name": f"{catalogue.singular}-new",
        **catalogue.list_context(everything, pools),
    }
    return render(request, "administration/catalogue.html", context)


def _edit(request: HttpRequest, catalogue: EditedKind, id: str, pools: Pools | None) -> HttpResponse:
    instance = get_object_or_404(catalogue.model, pk=id) if id else None
    title = str(instance) if instance else ""
    form = catalogue.form(request.POST if request.method == "POST" else None, instance=instance, pools=pools)
    only_checked = request.method != "POST" or "check" in request.POST
    stale = not only_checked and instance is not None and request.POST.get("version") != _version(instance)
    saved = None
    if not only_checked and not stale and form.is_valid():
        if question := catalogue.question(form, request):
            return render(request, "shell/question.html", {"question": question})
        saved = _save(form, request.user, version=request.POST.get("version", ""))
        stale = saved is None
    if stale and instance is None:
        form.add_error("id", _("This id was just taken; choose another."))
    elif stale:
        form.add_error(None, _CHANGED_MEANWHILE)
    if saved is not None:
        outcome = _("{saved} is saved. {consequence}", saved=saved, consequence=form.consequence())
        messages.success(request, outcome.strip())
        # The page of a tier that cannot run says so.
        has_problem = catalogue.has_problem(saved, pools)
        return redirect(catalogue.form_name, saved.pk) if has_problem else redirect(catalogue.name)
    context = {
        "catalogue": catalogue,
        "form": form,
        "sections": form.sections(),
        "object": instance,
        "object_name": title,
        "version": _version(instance) if instance else "",
        **catalogue.edit_context(form, instance, pools),
        **(catalogue.frame(request, instance) if instance else {}),
        "in_use": in_use_sentence(_active(instance)) if instance and catalogue.is_frozen_at_launch else "",
        "history": _history(catalogue, id, form),
        "has_repositories": bool(settings.REPOSITORIES),
        "archive_name": f"{catalogue.singular}-archive",
        "revert_name": f"{catalogue.singular}-revert",
    }
    return render(request, "administration/catalogue_edit.html", context, status=400 if form.errors else 200)


@transaction.atomic
def _save(form: CatalogueForm, actor: Any, *, version: str) -> models.Model | None:
    """Save the form and an audit entry; None, and nothing, if the stored object is not the `version` shown or the id was just taken."""
    is_new, before = form.instance._state.adding, None
    stored = type(form.instance)._default_manager.select_for_update(no_key=True).filter(pk=form.instance.pk).first()
    if is_new != (stored is None) or (stored is not None and _version(stored) != version):
        return None
    if stored is not None:
        before = audit.snapshot(stored)
    try:
        with transaction.atomic():
            if getattr(form.instance, "is_default", False):
                for other in HardwareTier.objects.filter(is_default=True).exclude(pk=form.instance.pk):
                    was = audit.snapshot(other)
                    other.is_default = False
                    other.save()
                    audit.record(actor=actor, instance=other, action=AuditEntry.Action.CHANGED, before=was)
            instance: models.Model = form.save()
    except IntegrityError:
        if is_new and type(form.instance)._default_manager.filter(pk=form.instance.pk).exists():
            return None
        raise
    action = AuditEntry.Action.CREATED if is_new else AuditEntry.Action.CHANGED
    audit.record(actor=actor, instance=instance, action=action, before=before)
    return instance


def _apply_old_values(catalogue: EditedKind, instance: models.Model, entry: AuditEntry) -> None:
    """Set the old values again. Raise ValidationError when one is not valid any more, or when a project's roles changed since."""
    changes = entry.changes
    if not _is_undoable(catalogue, entry):
        raise ValidationError(_("the history does not keep what was there. Set it again on its own page."))
    many = audit.choices_of(instance)
    roles = changes.keys() & catalogue.roles
    for name in changes.keys() - many.keys() - roles:
        setattr(instance, instance._meta.get_field(name).attname, changes[name][0])  # type: ignore[union-attr]
    instance.full_clean()
    instance.save()
    for name in changes.keys() & many.keys():
        related: Any = many[name]
        getattr(instance, name).set(related.objects.filter(name__in=changes[name][0] or []))
    if roles:
        catalogue.restore_roles(instance, entry)


def latest_changes(labels: Mapping[str, str], **columns: str) -> list[HistoryLine]:
    """Return the latest audit entries with these columns, in words; `labels` are the form's labels by field name."""
    return history_lines(AuditEntry.objects.filter(**columns)[:_HISTORY_LENGTH], labels)


def _history(catalogue: EditedKind, id: str, form: CatalogueForm) -> list[HistoryLine]:
    entries = AuditEntry.objects.filter(object_type=catalogue.object_type, object_id=id)[:_HISTORY_LENGTH] if id else []
    labels = {name: str(form[name].label) for name in form.fields} | {"is_archived": _("Archived")}
    return [history_line(entry, labels, is_reversible=_is_undoable(catalogue, entry)) for entry in entries]


def _is_undoable(catalogue: EditedKind, entry: AuditEntry) -> bool:
    """Return whether the entry is of fields alone: of a secret, the history has the name and never the value."""
    meta = catalogue.model._meta
    fields = {field.name for field in (*meta.concrete_fields, *meta.many_to_many)}
    return set(entry.changes) <= fields | catalogue.roles


def _active(instance: Any) -> int:
    uses = Q(head_tier=instance) | Q(tier=instance) if isinstance(instance, HardwareTier) else Q(environment=instance)
    return Execution.objects.unsettled().filter(uses, state__in=ACTIVE_STATES).count()


def _version(instance: models.Model) -> str:
    """Return a hash of the stored object, so that concurrent edits are detected."""
    stored = type(instance)._default_manager.get(pk=instance.pk)
    return hashlib.sha256(json.dumps(audit.snapshot(stored), sort_keys=True).encode()).hexdigest()[:16]
