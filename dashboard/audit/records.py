"""Reads the audit log from the database, newest first, synchronously; the cost does not grow with its length.

A page begins where the previous one ended, and an index finds that place. Who, kind and action have an index each, in the order of time; a
second condition, or a text, is looked for in a bounded number of entries at a time, and the page says how far back it has looked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.urls import reverse

from dashboard.audit.viewmodel import AuditPosition, AuditView
from dashboard.shell.access import AnyUser, may_administer
from grid import models
from grid.database.threads import planned_for_values

PER_PAGE = 50
SEARCHED = 2000
_PLAIN = "plain_"
# By object type: the model and the name of its page.
_PAGES: Mapping[str, tuple[type[Model], str]] = {
    "project": (models.Project, "project"),
    "projectbudget": (models.ProjectBudget, "project-budget"),
    "execution": (models.Execution, "execution"),
    "workspace": (models.Workspace, "workspace"),
    "job": (models.Job, "job"),
    "knowledgeentry": (models.KnowledgeEntry, "knowledge-entry"),
}
_ADMINS_PAGES: Mapping[str, tuple[type[Model], str]] = {
    "hardwaretier": (models.HardwareTier, "tier"),
    "environment": (models.Environment, "environment"),
    "user": (models.User, "person"),
    "announcement": (models.Announcement, "announcement"),
}
_ADMINS_LISTS = {"setting": "configuration", "login": "logins"}


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of entries. `older` is where the next one begins, None at the end; `searched_to` is set when a filter has not looked at
    everything older."""

    rows: list[models.AuditEntry]
    older: AuditPosition | None = None
    searched_to: datetime | None = None


@planned_for_values()
def read_audit(view: AuditView, *, at_most: int = PER_PAGE, searched: int = SEARCHED) -> AuditPage:
    """Return the entries of the view from its position on; a second condition is looked for in `searched` entries."""
    columns = {"actor_name": view.who, "object_type": view.kind, "action": view.action}
    conditions = [(column, value) for column, value in columns.items() if value]
    further = Q(*((f"{_PLAIN}{column}", value) for column, value in conditions[1:]))
    if view.text:
        further &= Q(object_name__icontains=view.text) | Q(object_id__icontains=view.text)
    line = _between(models.AuditEntry.objects.filter(*map(Q, conditions[:1])), view).order_by("-at", "-id")
    rows, end = line, None
    if further:
        end = next((AuditPosition(*last) for last in line.values_list("at", "id")[searched - 1 : searched]), None)
        # By key, and by columns that no index has, so that nothing beyond the entries that are searched is read.
        plain = {f"{_PLAIN}{column}": Coalesce(column, Value("")) for column in columns}
        entries = models.AuditEntry.objects.alias(**plain)
        rows = entries.filter(further, pk__in=line.values("pk")[:searched]).order_by("-at", "-id")
    entries_and_next = list(rows[: at_most + 1])
    page = entries_and_next[:at_most]
    if len(entries_and_next) > at_most:
        return AuditPage(page, AuditPosition(page[-1].at, page[-1].pk))
    return AuditPage(page, end, end.at if end is not None else None)


def urls_of(entries: Iterable[models.AuditEntry], viewer: AnyUser) -> dict[int, str]:
    """Return the pages of the entries' objects by the entries' ids: of those that exist, and that the viewer may open."""
    is_admin = may_administer(viewer)
    pages = {**_PAGES, **_ADMINS_PAGES} if is_admin else _PAGES
    ids: dict[str, dict[int, str]] = {}
    urls: dict[int, str] = {}
    for entry in entries:
        if entry.object_type in pages:
            ids.setdefault(entry.object_type, {})[entry.pk] = entry.object_id
        elif is_admin and entry.object_type in _ADMINS_LISTS:
            urls[entry.pk] = reverse(_ADMINS_LISTS[entry.object_type])
    for object_type, wanted in ids.items():
        model, page = pages[object_type]
        existing = _existing(model, set(wanted.values()))
        urls |= {pk: reverse(page, args=[id]) for pk, id in wanted.items() if id in existing}
    return urls


def _existing(model: type[Model], ids: set[str]) -> set[str]:
    keys: set[Any] = ids if model is not models.User else {int(id) for id in ids if id.isascii() and id.isdigit()}
    return {str(pk) for pk in model._default_manager.filter(pk__in=keys).order_by().values_list("pk", flat=True)}


def _between(entries: "QuerySet[models.AuditEntry]", view: AuditView) -> "QuerySet[models.AuditEntry]":
    if view.first_moment is not None:
        entries = entries.filter(at__gte=view.first_moment)
    if view.end is not None:
        entries = entries.filter(at__lt=view.end)
    if view.before is None:
        return entries
    # The index serves the first condition; the second leaves out the start itself and what is newer.
    return entries.filter(at__lte=view.before.at).exclude(at=view.before.at, pk__gte=view.before.id)
