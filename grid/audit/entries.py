"""Records who changed what and when, with old and new values, in the same transaction as the change itself."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import models
from django.utils import timezone

from grid.models import AuditEntry, Execution, Job, Project, User

# Set at each save, so a change of these alone is no change.
_BOOKKEEPING = frozenset({"updated_at", "created_at", "current_revision"})


def snapshot(instance: models.Model) -> dict[str, Any]:
    """Return every field as JSON: the keys of related objects, the names of chosen ones, and exact numbers as text."""
    fields = [field for field in instance._meta.concrete_fields if field.name not in _BOOKKEEPING]
    stored = {field.name: getattr(instance, field.attname) for field in fields}
    values = {name: str(value) if isinstance(value, Decimal) else value for name, value in stored.items()}
    for name in choices_of(instance):
        values[name] = sorted(map(str, getattr(instance, name).all())) if instance.pk else []
    return values | (instance.people() if isinstance(instance, Project) else {})


def choices_of(instance: models.Model) -> dict[str, Any]:
    """Return the models of its many-to-many relations by name, without those whose through table holds more than the choice."""
    fields: list[Any] = list(instance._meta.many_to_many)
    return {field.name: field.related_model for field in fields if field.remote_field.through._meta.auto_created}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return field -> [old, new] for the fields that differ."""
    return {name: [before.get(name), after[name]] for name in after if before.get(name) != after[name]}


def record(
    *, actor: User, instance: models.Model, action: str, before: Mapping[str, Any] | None = None
) -> AuditEntry | None:
    """Create one entry and return it; None when nothing differs from `before` (None: the object is new)."""
    changes = differences(before or {}, snapshot(instance))
    return write_entry(actor, instance, changes, action=action) if changes else None


def write_entry(
    actor: User | str,
    instance: models.Model,
    changes: Mapping[str, Any],
    *,
    action: str = AuditEntry.Action.CHANGED,
    at: datetime | None = None,
) -> AuditEntry:
    """Create one entry with these changes, for what a snapshot does not hold or must not show; the actor may be a username."""
    about = (instance._meta.model_name or "", str(instance.pk), str(instance))
    return write_about(actor, about, changes, action=action, at=at)


def write_launched(actor: User, launched: Execution | Job, *, at: datetime) -> None:
    """Create the entry of a launch. What an execution was launched with is in its `spec`, and what a job runs with is in its own row."""
    is_whole = isinstance(launched, Execution)
    changes = {"project": ["", launched.project.name], "tier": ["", launched.tier.name]} if is_whole else {}
    write_entry(actor, launched, changes, action=AuditEntry.Action.LAUNCHED, at=at)


def write_about(
    actor: User | str,
    about: tuple[str, str, str],
    changes: Mapping[str, Any],
    *,
    action: str,
    at: datetime | None = None,
) -> AuditEntry:
    """Create one entry about what is perhaps no row: its kind, id and name."""
    object_type, object_id, name = about
    return AuditEntry.objects.create(
        at=at or timezone.now(),
        actor=actor if isinstance(actor, User) else User.objects.filter(username=actor).first(),
        actor_name=actor.get_username() if isinstance(actor, User) else actor,
        action=action,
        object_type=object_type,
        object_id=object_id,
        object_name=name[:200],
        changes=dict(changes),
    )
