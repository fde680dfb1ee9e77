"""Files to download, and who was given one with other people's data. A file with one's own data alone is no export."""

from django.http import HttpRequest, HttpResponse

from dashboard.shell.access import user_of
from grid.audit.entries import write_entry
from grid.models import AuditEntry, Execution, User


def attachment(text: str, name: str, content_type: str = "text/csv; charset=utf-8") -> HttpResponse:
    headers = {"Content-Type": content_type, "Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, headers=headers)


def note_export(request: HttpRequest, about: User, file: str, query: str = "") -> None:
    """Write an audit entry about a person, who is the asker for a file about everybody. `query` is what the file was filtered by."""
    changes = {"file": ["", file]} | ({"filter": ["", query]} if query else {})
    write_entry(user_of(request), about, changes, action=AuditEntry.Action.DOWNLOADED)


def note_export_of(request: HttpRequest, execution_id: str, file: str) -> None:
    """Write an audit entry about an execution, unless it is the asker's; about the asker for "", as for a pod of the platform."""
    execution = Execution.objects.filter(pk=execution_id).first() if execution_id else None
    user = user_of(request)
    if execution is None or execution.owner_id != user.pk:
        write_entry(user, execution or user, {"file": ["", file]}, action=AuditEntry.Action.DOWNLOADED)
