"""Changes to people's accounts by admins, each with its audit entry, and what the pages of people read.

The one who changes an account is never its owner, and both rows are locked meanwhile: whoever was demoted while waiting changes nothing, so
two admins cannot remove each other, and one is always left.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from dashboard.accounts.viewmodel import PersonState, ProjectWork, person_state, work_sentences
from dashboard.shell.access import GROUPS, Role, assign_role, role_of, viewers_of
from grid.accounts.sessions import SessionUser
from grid.audit.entries import write_entry
from grid.configuration import ACCESS_LOST_TIMEOUT, value_of
from grid.core.translation import gettext as _
from grid.jobs.jobrows import waiting_runs
from grid.models import AuditEntry, Execution, Membership, Project, Schedule, Session, State, User
from grid.notifications.channels import call_off, change_address
from grid.projects.departures import LIVES

_INVITED = Q(password__startswith=UNUSABLE_PASSWORD_PREFIX)
_IN_STATE = {
    PersonState.ACTIVE: Q(is_active=True) & ~_INVITED,
    PersonState.INVITED: Q(is_active=True) & _INVITED,
    PersonState.DEACTIVATED: Q(is_active=False),
}


class OwnAccount(Exception):
    """Nobody changes the own role or deactivates oneself."""


def matching(*, text: str = "", role: str = "", state: str = "") -> "QuerySet[User]":
    """Return the accounts by username that have the text in their name or email; "" leaves a condition out."""
    people = User.objects.order_by("username")
    if text:
        names = ("username", "first_name", "last_name", "email")
        people = people.filter(Q.create([(f"{name}__icontains", text) for name in names], connector=Q.OR))
    if state:
        people = people.filter(_IN_STATE[PersonState(state)])
    return people.filter(_has_role(Role(role))) if role else people


def roles_of(people: list[User]) -> dict[int, Role]:
    """Return the roles by id, in one query; those of deactivated accounts are what they will have again."""
    plain = [SessionUser(user.pk, user.get_username(), user.is_superuser) for user in people]
    return {id: viewer.role for id, viewer in viewers_of(plain).items()}


def project_names(people: list[User]) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    rows = Membership.objects.filter(user__in=people).order_by("project__name")
    for user_id, name in rows.values_list("user_id", "project__name"):
        names.setdefault(user_id, []).append(name)
    return names


@transaction.atomic
def invite(user: User, role: Role, *, actor: User) -> User:
    """Store the new account, which has no password yet. Raise IntegrityError when its name was taken meanwhile."""
    user.set_unusable_password()
    user.save(force_insert=True)
    assign_role(user, role)
    write_entry(actor, user, {"role": [None, role.value]}, action=AuditEntry.Action.CREATED)
    return user


def change_role(id: int, role: Role, *, actor: User) -> User:
    with _locked(id, actor) as user:
        before = roles_of([user])[user.pk]
        if before is not role:
            assign_role(user, role)
            write_entry(actor, user, {"role": [before.value, role.value]})
    return user


def set_active(id: int, is_active: bool, *, actor: User) -> User:
    """Deactivate the account, which ends its sessions, or activate it again. `grid.projects.departures` stops what runs."""
    with _locked(id, actor) as user:
        before = person_state(user)
        user.is_active = is_active
        if person_state(user) != before:
            user.save(update_fields=["is_active"])
            write_entry(actor, user, {"state": [before.value, person_state(user).value]})
        if not is_active:
            Session.objects.filter(user=user).delete()
    return user


def make_link(id: int, *, actor: User) -> tuple[User, str]:
    """Return the account and the address under which its owner sets a password, once; for who has none yet, it ends the links before.
    Raise Http404 for a deactivated account."""
    with _locked(id, actor, allow_own=True) as user:
        if not user.is_active:
            raise Http404
        if not user.has_usable_password():
            user.set_unusable_password()
            user.save(update_fields=["password"])
        write_entry(actor, user, {"link": ["", _("made")]})
    parts = [urlsafe_base64_encode(force_bytes(user.pk)), default_token_generator.make_token(user)]
    return user, settings.DASHBOARD_ORIGIN + reverse("join", args=parts)


def end_sessions(id: int, key: str, *, actor: User) -> int:
    """End the session of that stored key, or all of the person's sessions without a key; return how many."""
    with _locked(id, actor, allow_own=True) as user:
        ended = Session.objects.filter(user=user)
        count: int = (ended.filter(pk=key) if key else ended).delete()[0]
        if count:
            write_entry(actor, user, {"sessions": [_("{count} open", count=count), _("ended")]})
    return count


@transaction.atomic
def set_profile(user: User, *, name: str, email: str, now: datetime) -> Collection[str]:
    """Store what the user changed of the own profile; return the names of what was changed for the audit entry. Raise Rejected."""
    stored = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    changes = dict(change_address(stored, email, now=now))
    if (before := stored.get_full_name()) != name:
        changes["name"] = [before, name]
        stored.first_name, stored.last_name = name, ""
        stored.save(update_fields=["first_name", "last_name"])
    if changes:
        write_entry(user, stored, changes)
    return changes.keys()


def set_password(user: User, token: str) -> bool:
    """Store the account's new password, already hashed, and end all its sessions. Return False when the link was used meanwhile."""
    with transaction.atomic():
        stored = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if not stored.is_active or not default_token_generator.check_token(stored, token):
            return False
        before = person_state(stored)
        user.save(update_fields=["password"])
        call_off(user)  # whoever knew the old password may have asked for it
        Session.objects.filter(user=user).delete()
        changes = {"password": [_("old"), _("set by link")]}
        if (after := person_state(user)) != before:
            changes = {"state": [before.value, after.value]}
        write_entry(user, user, changes)
    return True


@contextmanager
def _locked(id: int, actor: User, *, allow_own: bool = False) -> Iterator[User]:
    """Lock the account and that of the admin who changes it, in the order of their ids. Raise OwnAccount when they are the same,
    PermissionDenied when the actor is no admin any more, Http404 without such an account."""
    with transaction.atomic():
        users = User.objects.select_for_update(no_key=True).order_by("pk").in_bulk({id, actor.pk})
        if id not in users:
            raise Http404
        if actor.pk not in users or role_of(users[actor.pk]) is not Role.ADMIN:
            raise PermissionDenied(_("You are no longer an admin."))
        if id == actor.pk and not allow_own:
            raise OwnAccount
        yield users[id]


def _has_role(role: Role) -> Q:
    if role is Role.ADMIN:
        return Q(is_superuser=True)
    names = [name for name, granted in GROUPS.items() if granted is role]
    # In a group of higher rank one has that group's role.
    higher = list(GROUPS)[: list(GROUPS).index(names[0])] if names else list(GROUPS)
    rest = ~Q(_in_any(higher)) if higher else Q()
    return Q(is_superuser=False) & rest & (Q(_in_any(names)) if names else Q())


def _in_any(names: list[str]) -> Exists:
    return Exists(User.groups.through.objects.filter(user_id=OuterRef("pk"), group__name__in=names))


def work_in(project: Project, user: User) -> ProjectWork:
    """Return what ends when the person no longer contributes to the project, as `grid.projects.departures` and `scheduler` end it."""
    active = Execution.objects.unsettled().filter(LIVES, owner=user, project=project)
    states = list(active.order_by().values_list("state", flat=True))
    queued = states.count(State.QUEUED)
    schedules = Schedule.objects.filter(next_at__isnull=False, job__owner=user, job__project=project)
    waiting = waiting_runs().filter(job__owner=user, job__project=project)
    return ProjectWork(queued, len(states) - queued, schedules.count(), waiting.count())


def losses(project: Project, contributing: Collection[User]) -> list[str]:
    """Return sentences for each present contributor who is not among the given ones and has something in the project that ends."""
    present = User.objects.filter(memberships__project=project, memberships__role__in=Membership.CONTRIBUTING)
    leaving = present.exclude(pk__in=[user.pk for user in contributing])
    return [
        f"{user.get_username()}: {sentence}"
        for user in leaving.order_by("username")
        if (work := work_in(project, user))
        for sentence in work_sentences(work, grace())
    ]


def grace() -> timedelta:
    """Return for how long executions of a person without access continue."""
    return timedelta(seconds=value_of(ACCESS_LOST_TIMEOUT))
