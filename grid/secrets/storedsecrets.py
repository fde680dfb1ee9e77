"""Stored secrets: who may get which, setting and deleting them, and their values for the objects of an execution.

An execution gets those of its project, of its owner for all projects, and of its owner for this project; of one name the later of these.
The launch freezes which; their values are read when the controller creates the objects, and to leave them out of support bundles.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Manager, Model, Q, QuerySet

from grid.audit.entries import write_entry
from grid.core.errors import GridError, Problem, Rejected
from grid.core.translation import gettext as _
from grid.database.encryption import Undecryptable, decrypt, encrypt, encrypt_again
from grid.database.prepared import Prepared
from grid.models import Project, StoredSecret, User

# All of one execution are in one Kubernetes Secret, which holds 1 MiB: two holders of so many values.
MOST_OF_A_HOLDER = 25
MAXIMUM_BYTES = 16 * 1024


class SecretMissing(GridError):
    """A secret that was there at launch was deleted, or cannot be decrypted."""


def of_project(project: Project) -> QuerySet[StoredSecret]:
    """Return the secrets that every execution of the project gets."""
    return StoredSecret.objects.filter(project=project, owner__isnull=True)


def of_person(owner: User) -> QuerySet[StoredSecret]:
    """Return the person's own secrets, for all projects and for single ones."""
    return StoredSecret.objects.filter(owner=owner).select_related("project")


def _whose(owner: Any, project: Any) -> Q:
    return Q(project=project, owner__isnull=True) | Q(owner=owner) & (Q(project__isnull=True) | Q(project=project))


_OF_LAUNCH = Prepared(2, lambda *whose: StoredSecret.objects.filter(_whose(*whose)).defer("ciphertext"))


def for_launch(owner: User, project: Project) -> list[StoredSecret]:
    """Return the secrets that an execution of this owner in this project gets, one of each name, sorted by name."""
    by_rank = sorted(
        _OF_LAUNCH(owner.pk, project.pk),
        key=lambda secret: (secret.owner_id is not None, secret.project_id is not None),
    )
    return [secret for _, secret in sorted({secret.name: secret for secret in by_rank}.items())]


class WantedSecret(Protocol):
    """A secret that an execution was launched with, as its spec has it."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...


def values_for(secrets: Sequence[WantedSecret]) -> Mapping[str, str]:
    """Return the values of an execution's secrets by name. Raise SecretMissing with a sentence for its owner."""
    stored = StoredSecret.objects.in_bulk([secret.id for secret in secrets])
    values = {}
    for wanted in secrets:
        name, secret = wanted.name, stored.get(wanted.id)
        if secret is None:
            sentence = _("Its secret {name} was deleted after the launch. Launch again without it.", name=name)
            raise SecretMissing(sentence)
        try:
            values[name] = decrypt(secret.ciphertext)
        except Undecryptable as error:
            sentence = _("Its secret {name} can no longer be read. Set its value again.", name=name)
            raise SecretMissing(sentence) from error
    return values


def readable_values(ids: Iterable[int]) -> list[str]:
    return readable(StoredSecret.objects.filter(pk__in=list(ids)).values_list("ciphertext", flat=True))


def readable(ciphertexts: Iterable[str]) -> list[str]:
    values = []
    for ciphertext in ciphertexts:
        with suppress(Undecryptable):
            values.append(decrypt(ciphertext))
    return values


def put(
    *, by: User, owner: User | None, project: Project | None, name: str, is_file: bool, value: str, now: datetime
) -> StoredSecret:
    """Store a new secret, or replace the value of the one with that name and holder. Raise Rejected with all problems."""
    with transaction.atomic():
        _lock(owner, project)
        held = of_person(owner) if owner else of_project(_given(project))
        known = next((secret for secret in held if secret.name == name and secret.project == project), None)
        secret = known or StoredSecret(name=name, owner=owner, project=project)
        secret.is_file, secret.changed_at, secret.changed_by = is_file, now, by.get_username()
        problems = _problems(secret, value)
        if known is None and len(held) >= MOST_OF_A_HOLDER:
            sentence = _("There are {held} secrets already, which is the limit. Delete one that is not needed.")
            problems.append(Problem("", sentence.format(held=len(held)), "full"))
        if problems:
            raise Rejected(problems)
        secret.ciphertext = encrypt(value)
        secret.save()
        _record(by, secret, [name, _("{name}, a new value", name=name)] if known else ["", name])
    return secret


def delete(secret: StoredSecret, *, by: User) -> None:
    """Delete it. What runs keeps the value until it ends; what waits with it ends with a sentence."""
    with transaction.atomic():
        _record(by, secret, [secret.name, ""])
        secret.delete()


def encrypt_all_again(model: type[Model], column: str = "ciphertext") -> tuple[int, int]:
    """Encrypt every value of a column with the first key of the settings; return how many were, and how many cannot be read any more."""
    done = unreadable = 0
    rows: Manager[Any] = model._default_manager
    for pk in rows.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            row = rows.select_for_update().filter(pk=pk).first()
            if row is None:
                continue
            try:
                setattr(row, column, encrypt_again(getattr(row, column)))
            except Undecryptable:
                unreadable += 1
            else:
                row.save(update_fields=[column])
                done += 1
    return done, unreadable


def _lock(owner: User | None, project: Project | None) -> None:
    """Have two people who store secrets for one holder at once do so one after the other."""
    if owner is not None:
        User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    else:
        Project.objects.select_for_update(no_key=True).get(pk=_given(project).pk)


def _given(project: Project | None) -> Project:
    assert project is not None, "a secret without an owner is a project's"
    return project


def _record(by: User, secret: StoredSecret, change: list[str]) -> None:
    """Write into the audit log of the project or the person which secret it is, and never a value."""
    write_entry(by, secret.owner or _given(secret.project), {"secret": change})


def _problems(secret: StoredSecret, value: str) -> list[Problem]:
    problems = []
    try:
        secret.full_clean(exclude=["ciphertext", "changed_by", "owner", "project"], validate_constraints=False)
    except ValidationError as error:
        problems = [Problem(path, message) for path, messages in error.message_dict.items() for message in messages]
    if not value:
        problems.append(Problem("value", _("Type the value, or choose a file with it."), "required"))
    elif (size := len(value.encode())) > MAXIMUM_BYTES:
        sentence = _("A secret has at most 16 KiB; this one has {size:,} bytes.", size=size)
        problems.append(Problem("value", sentence, "too_long"))
    elif "\0" in value:
        problems.append(Problem("value", _("Use text: the value has a character that variables cannot have."), "nul"))
    return problems
