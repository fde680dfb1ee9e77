"""The audit log: who did what, for admins and auditors, as a page and as a file for spreadsheets; the cost does not grow with its length.

A page begins where the previous one ended, and an index finds that place. Who, kind and action have an index each, in the order of time; a
second condition, or a text, is looked for in a bounded number of entries at a time, and the page says how far back it has looked.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import Model, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.accounts.views.people import HISTORY_LABELS as PEOPLE_LABELS
from dashboard.announcements.forms import AnnouncementForm
from dashboard.audit.viewmodel import KINDS, AuditPosition, AuditView, audit_lines, audit_rows, sealing_sentence
from dashboard.environments.views import ENVIRONMENTS
from dashboard.logs.views.knowledge import KNOWLEDGE
from dashboard.projects.views.projects import HISTORY_LABELS as PROJECT_LABELS
from dashboard.shell.access import AnyUser, Permission, may_administer, requires, user_of
from dashboard.shell.exports import note_export
from dashboard.tiers.edited import TIERS
from dashboard.usage.forms import BudgetForm
from grid import models
from grid.audit.sealing import MOST_COUNTED, unsealed_count
from grid.core.translation import gettext as _
from grid.database.threads import planned_for_values
from grid.models import AuditEntry

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
    """`older` is where the next page begins, None at the end; `searched_to` is set when a filter has not looked at everything older."""

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
    is_admin, urls = may_administer(viewer), dict[int, str]()
    pages = {**_PAGES, **_ADMINS_PAGES} if is_admin else _PAGES
    ids: dict[str, dict[int, str]] = {}
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


_EXPORTED_AT_ONCE = 1000
_readers_only = requires(Permission.READ_AUDIT, _("Only admins and auditors can see the audit log."))


@require_safe
@_readers_only
def audit_log(request: HttpRequest) -> HttpResponse:
    view = AuditView.parse(request.GET.dict())
    page = read_audit(view)
    context = {
        "view": view,
        "chips": view.chips(dict(AuditEntry.Action.choices)),
        "lines": audit_lines(page.rows, _labels(), urls_of(page.rows, request.user)),
        "older": view.page_at(str(page.older)) if page.older else "",
        "searched_to": page.searched_to,
        "kinds": KINDS,
        "actions": AuditEntry.Action.choices,
        "sealing": sealing_sentence(unsealed_count(), MOST_COUNTED),
        "now": timezone.now(),
    }
    return render(request, "audit/audit_log.html", context)


@require_safe
@_readers_only
async def audit_export(request: HttpRequest) -> HttpResponseBase:
    """Send all entries of the view, read in batches while they are sent."""
    view = replace(AuditView.parse(request.GET.dict()), before=None)
    name = f"audit-log-{timezone.now():%Y-%m-%d}.csv"
    user = await sync_to_async(user_of)(request)
    await sync_to_async(note_export)(request, user, name, view.query)
    answer = StreamingHttpResponse(_exported(view), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    # Django's gzip makes a file of its own of each chunk, of which browsers read the first and drop the rest.
    answer["Content-Encoding"] = "identity"
    return answer


async def _exported(view: AuditView) -> AsyncIterator[str]:
    labels, has_more = _labels(), True
    while has_more:
        page = await sync_to_async(read_audit)(view, at_most=_EXPORTED_AT_ONCE)
        yield audit_rows(page.rows, labels, has_head=view.before is None)
        view, has_more = replace(view, before=page.older), page.older is not None


def latest_entries(most: int) -> str:
    return audit_rows(read_audit(AuditView(), at_most=most).rows, _labels(), has_head=True)


def _labels() -> Mapping[str, Mapping[str, str]]:
    forms: dict[str, Any] = {kind.object_type: kind.form for kind in (TIERS, ENVIRONMENTS, KNOWLEDGE)}
    forms |= {"projectbudget": BudgetForm, "announcement": AnnouncementForm}
    works = {"tier": _("Tier"), "project": _("Project"), "run": _("Run"), "workers": _("Workers")}
    works |= {"stops_at": _("Stops at"), "file": _("File")}

    def labels(form: Any) -> dict[str, str]:
        return {name: str(field.label) for name, field in form.base_fields.items() if field.label}

    return {
        **{object_type: labels(form) | {"is_archived": _("Archived")} for object_type, form in forms.items()},
        "project": PROJECT_LABELS,
        "user": PEOPLE_LABELS,
        "login": {"failures": _("Wrong passwords")},
        "setting": {"value": ""},
        "execution": works,
        "job": works,
        "workspace": {"restart": _("Restart")},
    }
