"""The knowledge base as it is in force: the admins' own entries first, then the built-in ones that nobody has switched off.

Each process reads it again every few seconds.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate

from grid.core import regexes
from grid.diagnosis import logfindings
from grid.diagnosis.logfindings import BUILT_IN, BUILT_IN_PREFIX, LogPattern, is_built_in
from grid.executions.lifecycle import Entered
from grid.models import ExecutionLog, KnowledgeEntry, LogOccurrence

logger = logging.getLogger(__name__)

MOST_FINDINGS = 5  # kept of one log: those of its last lines
MOST_ENTRIES = 300  # of the admins' own, which are searched together


def entries_in_force() -> tuple[LogPattern, ...]:
    """Return the entries in the order in which they are tried, with one query. Own ones that are too large together are left out."""
    rows = list(KnowledgeEntry.objects.order_by("id"))
    off = {row.pk for row in rows if row.is_archived}
    own = [
        pattern_of(row)
        for row in rows
        if row.pk not in off and not is_built_in(row.pk) and not regexes.problem_of(row.pattern)
    ]
    sizes = accumulate(regexes.size_of(entry.pattern) for entry in own)
    searched = [entry for entry, size in zip(own, sizes, strict=True) if size <= regexes.LARGEST_TOGETHER]
    if len(searched) < len(own):
        logger.warning("the knowledge base is too large, entries left out=%d", len(own) - len(searched))
    return (*searched[:MOST_ENTRIES], *(entry for entry in BUILT_IN if entry.key not in off))


def pattern_of(row: KnowledgeEntry) -> LogPattern:
    return LogPattern(row.pk, row.pattern, row.meaning, row.cure, row.link)


def has_room_for(pattern: str, *, key: str) -> bool:
    """Return whether a pattern may be searched with the other own entries, True for an unusable one; `key` is its entry's own id."""
    if regexes.problem_of(pattern):
        return True
    others = KnowledgeEntry.objects.filter(is_archived=False).exclude(pk=key).exclude(pk__startswith=BUILT_IN_PREFIX)
    usable = (other for other in others.values_list("pattern", flat=True) if not regexes.problem_of(other))
    return regexes.size_of(pattern) + sum(map(regexes.size_of, usable)) <= regexes.LARGEST_TOGETHER


def refresh() -> None:
    """Put the stored entries in force for this process; those before stay in force when they cannot be searched together."""
    wanted = entries_in_force()
    try:
        logfindings.use(wanted)
    except regexes.PatternError as error:
        logger.error("the knowledge base is too large to be searched entries=%d reason=%s", len(wanted), error)


def keep_log(entered: Entered) -> None:
    """Keep the end of the program's log that came with a change of state, with what was found in it: at most `MOST_FINDINGS`."""
    if entered.log is None:
        return
    execution_id, now = entered.execution_id, entered.now
    ExecutionLog.objects.update_or_create(execution_id=execution_id, defaults={"text": entered.log.text, "at": now})
    record(execution_id, entered.log.findings, now)


def record(execution_id: str, findings: Sequence[logfindings.LogFinding], now: datetime) -> None:
    """Replace what was found in the execution's kept log, by at most `MOST_FINDINGS`; the caller holds the transaction."""
    LogOccurrence.objects.filter(log=execution_id).delete()
    LogOccurrence.objects.bulk_create(
        LogOccurrence(log_id=execution_id, entry=known.key, meaning=known.meaning, line=known.line, at=now)
        for known in findings[:MOST_FINDINGS]
    )
