"""Reads kept logs and the knowledge base from the database, synchronously, as values for pages."""

from datetime import datetime, timedelta

from django.db.models import Count, Max

from dashboard.logs.viewmodels.knowledge import FoundCount, KnowledgeLine, knowledge_lines
from grid.diagnosis.logfindings import is_built_in
from grid.logs.knowledge import pattern_of
from grid.models import ExecutionLog, KnowledgeEntry, LogOccurrence, ShippedLog

COUNTED = timedelta(days=30)
NEWEST = 50


def final_log(execution_id: str) -> str:
    """Return the end of the log, which was stored when the pod was removed; "" when there is none."""
    return ExecutionLog.objects.filter(pk=execution_id).values_list("text", flat=True).first() or ""


def lost_lines(execution_id: str) -> int:
    """Return how many lines of the execution's log are missing at the log receiver."""
    return ShippedLog.objects.filter(pk=execution_id).values_list("lost", flat=True).first() or 0


def read_knowledge(now: datetime) -> list[KnowledgeLine]:
    """Return all entries with how often each was found lately, in two queries."""
    rows = list(KnowledgeEntry.objects.all())
    own = [(pattern_of(row), row.is_archived) for row in rows if not is_built_in(row.pk)]
    lately = LogOccurrence.objects.filter(at__gte=now - COUNTED).order_by().values_list("entry")
    counts = {
        key: FoundCount(logs, last) for key, logs, last in lately.annotate(Count("log", distinct=True), Max("at"))
    }
    return knowledge_lines(own, [row.pk for row in rows if row.is_archived], counts)


def newest_occurrences(key: str) -> list[LogOccurrence]:
    """Return the newest executions in whose kept logs the entry was found."""
    related = ("log__execution__owner", "log__execution__project")
    return list(LogOccurrence.objects.filter(entry=key).select_related(*related).order_by("-at", "-pk")[:NEWEST])
