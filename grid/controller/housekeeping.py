"""The leader's hourly clean-up: expired sessions, wrong passwords that no longer count, grants that nobody can use any more, and whatever
is older than `retention` keeps it; and it adds up by day what usage has ended.

It works in small batches with a pause after each, so that nobody waits for the database. When a chore fails, the others still run, and
all are tried again soon; running any of them twice changes nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from django.db.models import Exists, OuterRef, Q

from grid.accounts import lockouts, sessions
from grid.configuration import GRANT_RETENTION, value_of
from grid.controller import retention
from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.core.wording import listed
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.executions import dryrun
from grid.models import Session, WorkspaceGrant
from grid.models.execution import ACTIVE_STATES
from grid.nodes import nodetasks
from grid.platformhealth.apichecks import apicheckruns
from grid.queue.wait_estimate import outcomes
from grid.usage import dailyusage

logger = logging.getLogger(__name__)

FIRST_SECONDS = 60.0  # a new leader has more urgent things to do
PERIOD_SECONDS = 3600.0
RETRY_SECONDS = 300.0
BATCH = 200
PAUSE_SECONDS = 0.1  # for other writers
_TICKETS_KEPT = timedelta(minutes=1)  # twice a ticket's lifetime

Chore = Callable[[datetime, int], int]  # takes now and the most rows to delete, returns how many it did


def purge_grants(now: datetime, at_most: int) -> int:
    """Delete tickets that were not used in time, grants whose session is gone, and all that are older than configured.
    A grant of an ended execution is kept until then: through it the browser learns of the end, and clears what it had stored.
    """
    has_session = Exists(Session.objects.filter(pk=OuterRef("session_key")))
    useless = (
        Q(secret_hash__isnull=True, created_at__lt=now - _TICKETS_KEPT)
        | (~Q(has_session) & Q(execution__state__in=ACTIVE_STATES))
        | Q(created_at__lt=now - timedelta(days=value_of(GRANT_RETENTION)))
    )
    keys = list(WorkspaceGrant.objects.filter(useless).values_list("pk", flat=True)[:at_most])
    WorkspaceGrant.objects.filter(pk__in=keys).delete()
    return len(keys)


# Sessions come first: their grants go with them. Orphans come before executions: only ended intervals are added up.
CHORES: Mapping[str, Chore] = {
    "sessions": sessions.purge,
    "logins": lockouts.purge,
    "grants": purge_grants,
    "launch checks": dryrun.purge,
    "node tasks": nodetasks.purge,
    "API checks": apicheckruns.purge,
    "logs": retention.drop_logs,
    "samples": retention.drop_samples,
    "metrics": retention.drop_metrics,
    "lifecycle entries": retention.drop_lifecycle_entries,
    "audit entries": retention.drop_audit_entries,
    "incidents": retention.drop_incidents,
    "alerts": retention.drop_alerts,
    "silences": retention.drop_silences,
    "notifications": retention.drop_notifications,
    "deliveries": retention.drop_deliveries,
    "expected waits": outcomes.drop_predictions,
    "orphan intervals": retention.end_orphan_intervals,
    "usage": dailyusage.add_up_ended,
    "executions": retention.drop_executions,
    "runs": retention.drop_runs,
}


class ChoresFailed(GridError):
    """Some chores failed; the log says why."""


def periodic(
    database: Database, clock: Callable[[], datetime], *, chores: Mapping[str, Chore] = CHORES
) -> PeriodicTask:
    run_once = partial(run_chores, database, clock, chores)
    return PeriodicTask("clean-up", PERIOD_SECONDS, run_once, first_after=FIRST_SECONDS, retry=RETRY_SECONDS)


async def run_chores(database: Database, clock: Callable[[], datetime], chores: Mapping[str, Chore]) -> None:
    """Run one batch of each chore in turn, so that a backlog of one delays no other, until there is nothing left. Raise ChoresFailed."""
    totals, left, failed = dict.fromkeys(chores, 0), list(chores), list[str]()
    while left:
        for name in tuple(left):
            try:
                cleared = await database(chores[name], clock(), BATCH)
            except Exception:
                logger.exception("not cleared away, again in %.0f s: %s", RETRY_SECONDS, name)
                failed.append(name)
                cleared = 0
            if cleared:
                totals[name] += cleared
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                left.remove(name)
    for name, total in totals.items():
        if total:
            logger.info("cleared away %s=%d", name, total)
    if failed:
        raise ChoresFailed(_("Not cleared away: {chores}.", chores=listed(failed)))
