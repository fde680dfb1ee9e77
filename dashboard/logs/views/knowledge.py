"""The knowledge base of log findings: admins edit it, operators and auditors read it.

Built-in entries cannot be edited, only switched off; for one that is off there is a row in the database.
"""

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.administration.views.administration import catalogue_archive, catalogue_edit
from dashboard.administration.views.edited_kinds import EditedKind
from dashboard.logs.forms import KnowledgeForm
from dashboard.logs.records import COUNTED, newest_occurrences, read_knowledge
from dashboard.shell.access import admin_required, may_administer, may_observe
from grid.core.translation import gettext as _
from grid.diagnosis import logfindings
from grid.diagnosis.logpatterns import BUILT_IN, is_built_in
from grid.executions.apply import LOG_BYTES
from grid.logs import knowledge
from grid.models import KnowledgeEntry
from grid.runtime import get_runtime

KNOWLEDGE = EditedKind(
    "knowledge",
    "knowledge-entry",
    _("Knowledge base"),
    KnowledgeEntry,
    KnowledgeForm,
    _("Known lines in the logs of failed programs: what they mean, and the usual cure."),
    _("New entry"),
    _("Archive the entry {name}?"),
    while_archived=_("no log is searched for it"),
)


@require_http_methods(["GET", "HEAD", "POST"])
def knowledge_base(request: HttpRequest, catalogue: EditedKind) -> HttpResponse:
    """Show all entries; of a posted log, show which of them match."""
    _refuse_practitioners(request)
    # Every edit leads here, so it is in force in this process at once; the others follow within seconds.
    knowledge.refresh()
    text, now = request.POST.get("log", "")[-LOG_BYTES:], get_runtime().clock()
    context = {
        "catalogue": catalogue,
        "rows": read_knowledge(now),
        "now": now,
        "days": COUNTED.days,
        "may_edit": may_administer(request.user),
        "log": text,
        "is_tried": bool(text.strip()),
        "matches": logfindings.findings(text),
    }
    return render(request, "logs/knowledge.html", context)


@require_safe
def knowledge_found(request: HttpRequest, id: str) -> HttpResponse:
    """Show one entry and the newest executions in whose logs it was found."""
    _refuse_practitioners(request)
    entry = next((line for line in read_knowledge(get_runtime().clock()) if line.key == id), None)
    if entry is None:
        raise Http404(_("There is no such entry in the knowledge base."))
    context = {
        "entry": entry,
        "days": COUNTED.days,
        "may_edit": may_administer(request.user),
        "occurrences": newest_occurrences(id),
    }
    return render(request, "logs/knowledge_found.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
async def knowledge_entry(request: HttpRequest, catalogue: EditedKind, id: str = "") -> HttpResponse:
    if is_built_in(id):
        return redirect("knowledge-found", id)
    answer: HttpResponse = await catalogue_edit(request, catalogue, id)
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def knowledge_archive(request: HttpRequest, catalogue: EditedKind, id: str) -> HttpResponse:
    """Switch an entry off or on again; a built-in one needs no question before."""
    if is_built_in(id):
        entry = next((entry for entry in BUILT_IN if entry.key == id), None)
        if entry is None:
            raise Http404(_("There is no such entry in the knowledge base."))
        if request.method != "POST":
            return redirect("knowledge-found", id)
        KnowledgeEntry.objects.get_or_create(pk=id, defaults={"meaning": entry.meaning})
    answer: HttpResponse = catalogue_archive(request, catalogue, id)
    return answer


def _refuse_practitioners(request: HttpRequest) -> None:
    if not may_observe(request.user):
        raise PermissionDenied(_("Only operators, auditors and admins can see this page."))
