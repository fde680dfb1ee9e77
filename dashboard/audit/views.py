"""The audit log: who did what, for admins and auditors, as a page and as a file for spreadsheets."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.accounts.views.people import HISTORY_LABELS as PEOPLE_LABELS
from dashboard.announcements.forms import AnnouncementForm
from dashboard.audit.records import read_audit, urls_of
from dashboard.audit.viewmodel import KINDS, AuditView, audit_lines, audit_rows, sealing_sentence
from dashboard.environments.views import ENVIRONMENTS
from dashboard.logs.views.knowledge import KNOWLEDGE
from dashboard.projects.views import HISTORY_LABELS as PROJECT_LABELS
from dashboard.shell.access import may_read_audit
from dashboard.shell.exports import note_export
from dashboard.tiers.edited import TIERS
from dashboard.usage.forms import BudgetForm
from grid.audit.sealing import MOST_COUNTED, unsealed_count
from grid.core.translation import gettext as _
from grid.models import AuditEntry, User

_EXPORTED_AT_ONCE = 1000


@require_safe
def audit_log(request: HttpRequest) -> HttpResponse:
    _check(request)
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
async def audit_export(request: HttpRequest) -> HttpResponseBase:
    """Send all entries of the view, read in batches while they are sent."""
    await sync_to_async(_check)(request)
    view = replace(AuditView.parse(request.GET.dict()), before=None)
    name = f"audit-log-{timezone.now():%Y-%m-%d}.csv"
    user = await request.auser()
    assert isinstance(user, User)
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
    """Return the latest entries as the exported file has them."""
    return audit_rows(read_audit(AuditView(), at_most=most).rows, _labels(), has_head=True)


def _check(request: HttpRequest) -> None:
    if not may_read_audit(request.user):
        raise PermissionDenied(_("Only admins and auditors can see the audit log."))


def _labels() -> Mapping[str, Mapping[str, str]]:
    """Return the labels of the objects' own histories, by object type."""
    forms: dict[str, Any] = {kind.object_type: kind.form for kind in (TIERS, ENVIRONMENTS, KNOWLEDGE)}
    forms |= {"projectbudget": BudgetForm, "announcement": AnnouncementForm}
    works = {
        "tier": _("Tier"),
        "project": _("Project"),
        "run": _("Run"),
        "workers": _("Workers"),
        "stops_at": _("Stops at"),
        "file": _("File"),
    }
    return {
        **{
            object_type: {name: str(field.label) for name, field in form.base_fields.items() if field.label}
            | {"is_archived": _("Archived")}
            for object_type, form in forms.items()
        },
        "project": PROJECT_LABELS,
        "user": PEOPLE_LABELS,
        "login": {"failures": _("Wrong passwords")},
        "setting": {"value": ""},
        "execution": works,
        "job": works,
        "workspace": {"restart": _("Restart")},
    }
