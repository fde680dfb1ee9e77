"""The knowledge base of log findings: admins edit it, operators and auditors read it.

Built-in entries cannot be edited, only switched off; for one that is off there is a row in the database.
"""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import Count, Max
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.administration.forms import CatalogueForm
from dashboard.administration.views import EditedKind, catalogue_archive, catalogue_edit
from dashboard.logs.viewmodels.knowledge import FoundCount, KnowledgeLine, knowledge_lines
from dashboard.shell.access import admin_required, may_administer, observer_required
from dashboard.shell.forms.fields import Section
from grid.core.translation import gettext as _
from grid.diagnosis import logfindings
from grid.diagnosis.logfindings import BUILT_IN, is_built_in
from grid.executions.apply import LOG_BYTES
from grid.logs import knowledge
from grid.models import KnowledgeEntry, LogOccurrence
from grid.runtime import get_runtime

_COUNTED = timedelta(days=30)
_NEWEST = 50


class KnowledgeForm(CatalogueForm):
    layout = (
        Section(_("The line"), _("Searched in the last lines of a log."), ("id", "pattern")),
        Section(_("What it means"), _("Shown to whoever may read the log."), ("meaning", "cure", "link")),
    )
    wide = ("pattern", "meaning", "cure", "link")

    class Meta:
        model = KnowledgeEntry
        fields = ("id", "pattern", "meaning", "cure", "link")
        labels = {"pattern": _("Pattern"), "meaning": _("Meaning"), "cure": _("Cure"), "link": _("Link"), "id": "Id"}
        help_texts = {
            "id": _("Lower-case letters, digits and dashes; it never changes."),
            "pattern": _(
                "A regular expression of RE2, such as ^LicenseError: (\\S+). It is searched in each line; (?i) at its "
                "beginning ignores case. Entries of your own are tried before the built-in ones."
            ),
            "meaning": _("One sentence, such as: No license for {} is free. {} is what the first parentheses match."),
            "cure": _("What to do next, in a sentence or two."),
            "link": _("Where to read more: https://… or a path of this site. Leave empty for none."),
        }
        widgets = {
            "pattern": forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off", "class": "mono"}),
            "link": forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off", "inputmode": "url"}),
        }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        most, searched = knowledge.MOST_ENTRIES, KnowledgeEntry.objects.filter(is_archived=False)
        if self.instance._state.adding and searched.count() >= most:
            raise forms.ValidationError(_("At most {most} entries are searched. Archive one first.", most=most))
        pattern = data.get("pattern", "")
        if pattern and not knowledge.has_room_for(pattern, key=self.instance.pk or ""):
            large = _("All entries together are too large to be searched. Use smaller repetitions, or archive another.")
            self.add_error("pattern", large)
        return data


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
@observer_required
def knowledge_base(request: HttpRequest, catalogue: EditedKind) -> HttpResponse:
    """Show all entries; of a posted log, show which of them match."""
    # Every edit leads here, so it is in force in this process at once; the others follow within seconds.
    knowledge.refresh()
    text, now = request.POST.get("log", "")[-LOG_BYTES:], get_runtime().clock()
    context = {
        "catalogue": catalogue,
        "rows": _read_knowledge(now),
        "now": now,
        "days": _COUNTED.days,
        "may_edit": may_administer(request.user),
        "log": text,
        "is_tried": bool(text.strip()),
        "matches": logfindings.findings(text),
    }
    return render(request, "logs/knowledge.html", context)


@require_safe
@observer_required
def knowledge_found(request: HttpRequest, id: str) -> HttpResponse:
    entry = next((line for line in _read_knowledge(get_runtime().clock()) if line.key == id), None)
    if entry is None:
        raise Http404(_("There is no such entry in the knowledge base."))
    newest = LogOccurrence.objects.filter(entry=id).order_by("-at", "-pk")[:_NEWEST]
    occurrences = list(newest.select_related("log__execution__owner", "log__execution__project"))
    context = {"entry": entry, "days": _COUNTED.days, "occurrences": occurrences}
    context["may_edit"] = may_administer(request.user)
    return render(request, "logs/knowledge_found.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
async def knowledge_entry(request: HttpRequest, catalogue: EditedKind, id: str = "") -> HttpResponse:
    if is_built_in(id):
        return redirect("knowledge-found", id)
    return await catalogue_edit(request, catalogue, id)


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
    return catalogue_archive(request, catalogue, id)


def _read_knowledge(now: datetime) -> list[KnowledgeLine]:
    """Return all entries with how often each was found lately, in two queries."""
    rows = list(KnowledgeEntry.objects.all())
    own = [(knowledge.pattern_of(row), row.is_archived) for row in rows if not is_built_in(row.pk)]
    lately = LogOccurrence.objects.filter(at__gte=now - _COUNTED).order_by().values_list("entry")
    counts = {
        key: FoundCount(logs, last) for key, logs, last in lately.annotate(Count("log", distinct=True), Max("at"))
    }
    return knowledge_lines(own, [row.pk for row in rows if row.is_archived], counts)
