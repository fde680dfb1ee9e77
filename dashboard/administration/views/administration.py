"""The pages on which admins edit tiers, environments, projects and the knowledge base; the views differ only in their `EditedKind`."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.accounts.records import losses
from dashboard.administration.forms import CatalogueForm, TierForm
from dashboard.administration.viewmodel import (
    HistoryLine,
    PeopleWords,
    TierWords,
    history_lines,
    in_use_sentence,
    people_words,
    pool_words,
)
from dashboard.administration.views.edited_kinds import TIERS, EditedKind
from dashboard.platformhealth.records import framework_lines_of
from dashboard.projects.forms import ProjectForm
from dashboard.shell.access import admin_required
from dashboard.shell.archiving import archiving_means
from dashboard.shell.viewmodels.confirmation import Confirmation
from dashboard.shell.viewmodels.format import either
from dashboard.tiers.tier_records import known_shapes, listed_tier, outgrown, tier_checks
from dashboard.tiers.views.tier_checking import Pools, check_context
from grid.audit import entries as audit
from grid.core.translation import gettext as _
from grid.diagnosis.nodeshapes import PoolShapes
from grid.models import AuditEntry, Execution, HardwareTier, KnowledgeEntry, Membership, Project, User
from grid.models.execution import ACTIVE_STATES
from grid.runtime import get_runtime
from grid.tiers.tierdoctor import examine
from grid.tiers.tierrequests import sidecars, tier_request

_HISTORY_LENGTH = 50
# The roles of a project's members by their field names in an audit entry.
_ROLES = {
    "owner": Membership.Role.OWNER,
    "contributors": Membership.Role.CONTRIBUTOR,
    "viewers": Membership.Role.VIEWER,
}


@require_safe
@admin_required
async def catalogue_list(request: HttpRequest, catalogue: EditedKind) -> HttpResponse:
    answer: HttpResponse = await sync_to_async(_list)(request, catalogue, await _pools(catalogue))
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
async def catalogue_edit(request: HttpRequest, catalogue: EditedKind, id: str = "") -> HttpResponse:
    answer: HttpResponse = await sync_to_async(_edit)(request, catalogue, id, await _pools(catalogue))
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def catalogue_archive(request: HttpRequest, catalogue: EditedKind, id: str) -> HttpResponse:
    """Archive the object, after a question that says who uses it, or restore an archived one. Objects that executions refer to are
    never deleted."""
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
        audit.record(actor=_actor(request), instance=instance, action=action, before=before)
    named = {"name": instance, "while_archived": catalogue.while_archived}
    if not instance.is_archived:
        said = _("{name} is restored.", name=instance)
    elif isinstance(instance, KnowledgeEntry):
        said = _("{name} is archived: {while_archived}.", **named)
    else:
        said = _("{name} is archived: running executions continue, and {while_archived}.", **named)
    messages.success(request, said)
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
            _apply_old_values(instance, entry)
            audit.record(actor=_actor(request), instance=instance, action=AuditEntry.Action.CHANGED, before=before)
    except ValidationError as error:
        messages.error(request, _("This cannot be undone: {reason}", reason=" ".join(error.messages)))
    else:
        messages.success(request, _("The change of {at:%Y-%m-%d %H:%M} is undone.", at=entry.at))
    return HttpResponseRedirect(reverse(catalogue.singular, args=[id]))


def _list(request: HttpRequest, catalogue: EditedKind, pools: Pools | None) -> HttpResponse:
    everything = list(catalogue.model._default_manager.select_related().prefetch_related(*catalogue.related))
    rows = [(one, _words(one)) for one in everything]
    tiers = [one for one in everything if isinstance(one, HardwareTier)]
    checks = tier_checks(tiers, pools) if pools is not None else {}
    context = {
        "checks": [(one, checks[one.pk]) for one in tiers if one.pk in checks],
        "outgrown": outgrown(tiers, checks, pools) if checks and pools is not None else [],
        "catalogue": catalogue,
        "rows": [row for row in rows if not row[0].is_archived],  # type: ignore[attr-defined]
        "archived": [row for row in rows if row[0].is_archived],  # type: ignore[attr-defined]
        "new_name": f"{catalogue.singular}-new",
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
        if question := _question(form, request):
            return render(request, "shell/question.html", {"question": question})
        saved = _save(form, request.user, version=request.POST.get("version", ""))
        stale = saved is None
    if stale and instance is None:
        form.add_error("id", _("This id was just taken; choose another."))
    elif stale:
        form.add_error(
            None,
            _("Somebody changed this while you were editing. Your entries are still here; compare and save again."),
        )
    if saved is not None:
        messages.success(
            request, _("{saved} is saved. {consequence}", saved=saved, consequence=form.consequence()).strip()
        )
        # The page of a tier that cannot run says so.
        return redirect(catalogue.singular, saved.pk) if _has_problem(saved, pools) else redirect(catalogue.name)
    context = {
        "catalogue": catalogue,
        "form": form,
        "sections": form.sections(),
        "object": instance,
        "object_name": title,
        "pools": pool_words((pools or {}).values()),
        "version": _version(instance) if instance else "",
        **_doctor(form, pools),
        "in_use": in_use_sentence(_active(instance)) if instance and catalogue.is_frozen_at_launch else "",
        "history": _history(catalogue, id, form),
        "has_repositories": bool(settings.REPOSITORIES),
        "framework_lines": framework_lines_of(instance),
        "archive_name": f"{catalogue.singular}-archive",
        "revert_name": f"{catalogue.singular}-revert",
    }
    return render(request, "administration/catalogue_edit.html", context, status=400 if form.errors else 200)


def _question(form: CatalogueForm, request: HttpRequest) -> Confirmation | None:
    """Return what to ask before saving: whose executions in a project it stops. None when it stops none, or when the answer was yes."""
    if not isinstance(form, ProjectForm) or form.instance._state.adding or "confirmed" in request.POST:
        return None
    sentences = losses(form.instance, form.contributing())
    sent = [(name, value) for name, values in request.POST.lists() if name != "csrfmiddlewaretoken" for value in values]
    question = Confirmation(
        _("Save changes to {subject}"),
        str(form.instance),
        sentences,
        action_url=request.path,
        answer=_("Save"),
        keep=_("Do not save"),
        keep_url=request.path,
        fields=[*sent, ("confirmed", "on")],
    )
    return question if sentences else None


@transaction.atomic
def _save(form: CatalogueForm, actor: Any, *, version: str) -> models.Model | None:
    """Save the form and an audit entry, and return the object. Write nothing and return None when the stored object is no longer the
    `version` shown, or when another request created the same id first."""
    is_new, before = form.instance._state.adding, None
    stored = type(form.instance)._default_manager.select_for_update(no_key=True).filter(pk=form.instance.pk).first()
    if is_new != (stored is None) or (stored is not None and _version(stored) != version):
        return None
    if stored is not None:
        before = audit.snapshot(stored)
    try:
        with transaction.atomic():
            if getattr(form.instance, "is_default", False):
                _unmark_other_default(form.instance, actor)
            instance: models.Model = form.save()
    except IntegrityError:
        if is_new and type(form.instance)._default_manager.filter(pk=form.instance.pk).exists():
            return None
        raise
    action = AuditEntry.Action.CREATED if is_new else AuditEntry.Action.CHANGED
    audit.record(actor=actor, instance=instance, action=action, before=before)
    return instance


def _unmark_other_default(tier: models.Model, actor: User) -> None:
    for other in HardwareTier.objects.filter(is_default=True).exclude(pk=tier.pk):
        before = audit.snapshot(other)
        other.is_default = False
        other.save()
        audit.record(actor=actor, instance=other, action=AuditEntry.Action.CHANGED, before=before)


def _apply_old_values(instance: models.Model, entry: AuditEntry) -> None:
    """Set the old values again. Raise ValidationError when one is not valid any more, or when a project's roles changed since."""
    changes = entry.changes
    if not _is_undoable(type(instance), entry):
        raise ValidationError(_("the history does not keep what was there. Set it again on its own page."))
    many = audit.choices_of(instance)
    people = changes.keys() & _ROLES.keys() if isinstance(instance, Project) else set()
    for name in changes.keys() - many.keys() - people:
        setattr(instance, instance._meta.get_field(name).attname, changes[name][0])  # type: ignore[union-attr]
    instance.full_clean()
    instance.save()
    for name in changes.keys() & many.keys():
        related: Any = many[name]
        getattr(instance, name).set(related.objects.filter(name__in=changes[name][0] or []))
    if isinstance(instance, Project) and people:
        _assign_again(instance, entry)


def _assign_again(project: Project, entry: AuditEntry) -> None:
    """Give the members whose role the entry changed their old role back. Raise ValidationError when one has another role by now."""
    before, after = (
        _roles_in({name: entry.changes[name][at] for name in entry.changes.keys() & _ROLES.keys()}) for at in (0, 1)
    )
    present = _roles_in(project.people())
    concerned = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if any(present.get(name) != after.get(name) for name in concerned):
        raise ValidationError(_("the people of the project have changed since. Change them here instead."))
    roles = {name: role for name, role in (present | before).items() if name not in concerned or name in before}
    # A new account may have the username of a deleted one.
    users = {user.get_username(): user for user in User.objects.filter(username__in=roles, date_joined__lte=entry.at)}
    users |= {user.get_username(): user for user in project.members.all()}
    if gone := sorted(roles.keys() - users.keys()):
        raise ValidationError(_("the account {gone} no longer exists.", gone=either(gone)))
    named: dict[str, list[User]] = {
        role: [users[name] for name in roles if roles[name] == role] for role in Membership.Role.values
    }
    if not named[Membership.Role.OWNER]:
        raise ValidationError(_("it had no owner then."))
    project.assign(
        owner=named[Membership.Role.OWNER][0],
        contributors=named[Membership.Role.CONTRIBUTOR],
        viewers=named[Membership.Role.VIEWER],
    )


def _roles_in(people: Mapping[str, Any]) -> dict[str, str]:
    """Return the role by username; `people` is what `Project.people` returns, or a part of it."""
    found: dict[str, str] = {}
    for name, role in _ROLES.items():
        chosen = people.get(name) or []
        found |= dict.fromkeys([chosen] if isinstance(chosen, str) else chosen, role.value)
    return found


def _history(catalogue: EditedKind, id: str, form: CatalogueForm) -> list[HistoryLine]:
    entries = AuditEntry.objects.filter(object_type=catalogue.object_type, object_id=id)[:_HISTORY_LENGTH] if id else []
    labels = {name: str(form[name].label) for name in form.fields} | {"is_archived": _("Archived")}
    found = [(entry, _is_undoable(catalogue.model, entry)) for entry in entries]
    return [line for entry, may_undo in found for line in history_lines([entry], labels, is_reversible=may_undo)]


def _is_undoable(model: type[models.Model], entry: AuditEntry) -> bool:
    """Return whether the entry is of fields alone: of a secret, the history has the name and never the value."""
    fields = {field.name for field in (*model._meta.concrete_fields, *model._meta.many_to_many)}
    return set(entry.changes) <= fields | (_ROLES.keys() if model is Project else set())


def _active(instance: Any) -> int:
    uses = Q(head_tier=instance) | Q(tier=instance) if isinstance(instance, HardwareTier) else Q(environment=instance)
    return Execution.objects.unsettled().filter(uses, state__in=ACTIVE_STATES).count()


def _words(instance: models.Model) -> TierWords | PeopleWords | None:
    if isinstance(instance, Project):
        return people_words((one.user.get_username(), one.role) for one in instance.memberships.all())
    return listed_tier(instance, timezone.now()) if isinstance(instance, HardwareTier) else None


def _has_problem(instance: models.Model, pools: Pools | None) -> bool:
    """Return whether no node of its pool takes the tier now; False for other objects, and while the nodes are unknown."""
    if pools is None or not isinstance(instance, HardwareTier):
        return False
    pool = pools.get(instance.node_pool, PoolShapes(instance.node_pool))
    return examine(tier_request(instance, sidecars()), pool).problem is not None


def _doctor(form: CatalogueForm, pools: Pools | None) -> dict[str, Any]:
    if not isinstance(form, TierForm):
        return {}
    is_new = form.instance._state.adding
    url = reverse("tier-new-check") if is_new else reverse("tier-check", args=[form.instance.pk])
    return {"check_url": url, **check_context(form, pools)}


def _version(instance: models.Model) -> str:
    """Return a hash of the stored object, so that concurrent edits are detected."""
    stored = type(instance)._default_manager.get(pk=instance.pk)
    return hashlib.sha256(json.dumps(audit.snapshot(stored), sort_keys=True).encode()).hexdigest()[:16]


async def _pools(catalogue: EditedKind) -> Pools | None:
    """Return the shapes of the pools' nodes; None until the nodes are read, and for other kinds than tiers."""
    return await known_shapes(get_runtime()) if catalogue is TIERS else None


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
