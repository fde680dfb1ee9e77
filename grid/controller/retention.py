"""Deletes rows older than the central configuration keeps them, as chores of `housekeeping`: oldest first, a bounded number of rows in each
transaction, and only of executions that are settled.

An execution is deleted in several such steps: its samples and history, then its intervals, which are added up into daily usage before, then
itself, so that its page shows the cost nearly to the end. After an interruption the next step continues with what is
left.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Exists, Manager, OuterRef, Q, QuerySet

from grid import configuration as centralconfig
from grid.audit.sealing import drop_sealed
from grid.models import (
    Alert,
    AlertSilence,
    AuditEntry,
    ClusterSample,
    Delivery,
    Execution,
    ExecutionLog,
    JobRun,
    LifecycleEntry,
    Notification,
    PlatformIncident,
    RunMetric,
    UsageInterval,
    WorkspaceGrant,
)
from grid.usage import dailyusage, usage


def end_orphan_intervals(now: datetime, at_most: int) -> int:
    """End intervals that a deposed controller began after its successor saw the last pod go; return the number of their executions."""
    orphans = UsageInterval.objects.filter(ended_at=None, execution__settled_at__lt=now - timedelta(hours=1)).order_by()
    ids = set(orphans.values_list("execution_id", flat=True)[:at_most])
    with transaction.atomic():
        for execution in Execution.objects.filter(pk__in=ids).only("settled_at"):
            usage.end_all(execution.pk, execution.settled_at or now)
    return len(ids)


def drop_audit_entries(now: datetime, at_most: int) -> int:
    """From the start of their chain, so that the rest can still be verified."""
    limit = _limit(centralconfig.AUDIT_RETENTION, now)
    return drop_sealed(limit, at_most) if limit is not None else 0


def drop_executions(now: datetime, at_most: int) -> int:
    """Do one step of deleting the oldest executions; return the number of deleted rows, at most `at_most` of one table.
    A workspace or job is deleted after the clusters that were launched with it; each execution after its open intervals have ended
    (`end_orphan_intervals`), since only ended ones are added up, and after its grants are gone (`purge_grants`): through them browsers
    clear what they stored of it.
    """
    limit = _limit(centralconfig.EXECUTION_RETENTION, now)
    if limit is None:
        return 0
    has_attached = Exists(Execution.objects.filter(attached_to=OuterRef("pk")))
    has_open = Exists(UsageInterval.objects.filter(execution=OuterRef("pk"), ended_at__isnull=True))
    has_grants = Exists(WorkspaceGrant.objects.filter(execution=OuterRef("pk")))
    due = expired(centralconfig.EXECUTION_RETENTION, limit).filter(~has_attached, ~has_open, ~has_grants)
    with transaction.atomic():
        # Locked, so that a second controller waits, and then finds the intervals gone: nothing is added up twice.
        locked = due.select_for_update(no_key=True).order_by("ended_at", "pk")
        ids = list(locked.values_list("pk", flat=True)[:at_most])
        for rows in (ClusterSample.objects, RunMetric.objects, LifecycleEntry.objects):
            keys = list(rows.filter(execution__in=ids).order_by().values_list("pk", flat=True)[:at_most])
            if keys:
                return _delete(rows, keys)
        intervals = UsageInterval.objects.filter(execution__in=ids).order_by("pk")
        keys = list(intervals.values_list("pk", flat=True)[:at_most])
        if keys:
            dailyusage.add_up(keys)  # as a rule they are
            return _delete(UsageInterval.objects, keys)
        Execution.objects.filter(pk__in=ids).delete()  # deletes their logs too
        return len(ids)


def drop_runs(now: datetime, at_most: int) -> int:
    """Delete runs that ended as long ago as executions are kept, once their attempts are gone and no open run waits for them."""
    has_attempts = Exists(Execution.objects.filter(run=OuterRef("pk")))
    is_awaited = Exists(JobRun.objects.filter(after=OuterRef("pk"), outcome=""))
    due = JobRun.objects.filter(~has_attempts, ~is_awaited).order_by("ended_at", "pk")
    return _drop(centralconfig.EXECUTION_RETENTION, now, at_most, lambda limit: due.filter(ended_at__lt=limit))


def expired(setting: centralconfig.Setting, limit: datetime) -> QuerySet[Any]:
    """Return the rows that a setting of retention has deleted when its days go back to `limit`."""
    by_own_time: Mapping[centralconfig.Setting, QuerySet[Any]] = {
        centralconfig.EXECUTION_RETENTION: Execution.objects.filter(settled_at__isnull=False, ended_at__lt=limit),
        centralconfig.GRANT_RETENTION: WorkspaceGrant.objects.filter(created_at__lt=limit),
        centralconfig.AUDIT_RETENTION: AuditEntry.objects.filter(at__lt=limit),
        centralconfig.INCIDENT_RETENTION: PlatformIncident.objects.filter(ended_at__lt=limit),
        centralconfig.NOTIFICATION_RETENTION: Notification.objects.filter(at__lt=limit),
        centralconfig.DELIVERY_RETENTION: Delivery.objects.filter(next_try_at__isnull=True, at__lt=limit),
    }
    if setting in by_own_time:
        return by_own_time[setting]
    rows: QuerySet[Any] = {
        centralconfig.LOG_RETENTION: ExecutionLog.objects.all(),
        centralconfig.METRIC_RETENTION: RunMetric.objects.all(),
        centralconfig.SAMPLE_RETENTION: ClusterSample.objects.all(),
        # The changes of state stay: without them an execution's page could not say what happened.
        centralconfig.LIFECYCLE_RETENTION: LifecycleEntry.objects.filter(~Q(source=LifecycleEntry.Source.STATE)),
    }[setting]
    # A subquery by the key, so that the rows are read in index order and never sorted.
    ended = Execution.objects.filter(pk=OuterRef("execution_id"), settled_at__isnull=False, ended_at__lt=limit)
    return rows.filter(Exists(ended), at__lt=limit)


def _drop(
    setting: centralconfig.Setting, now: datetime, at_most: int, of: Callable[[datetime], QuerySet[Any]] | None = None
) -> int:
    """Delete the first rows that the setting keeps no longer, by default the oldest that are `expired`; return their number."""
    limit = _limit(setting, now)
    if limit is None:
        return 0
    rows = of(limit) if of is not None else expired(setting, limit).order_by("at")
    return _delete(rows.model._default_manager, list(rows.values_list("pk", flat=True)[:at_most]))


def _limit(setting: centralconfig.Setting, now: datetime) -> datetime | None:
    """Return the time before which rows are deleted; None when they are kept for ever."""
    days = centralconfig.value_of(setting)
    return now - timedelta(days=days) if days else None


def _delete(rows: Manager[Any], keys: Sequence[Any]) -> int:
    rows.filter(pk__in=keys).delete()
    return len(keys)


drop_logs = partial(_drop, centralconfig.LOG_RETENTION)
drop_samples = partial(_drop, centralconfig.SAMPLE_RETENTION)
drop_metrics = partial(_drop, centralconfig.METRIC_RETENTION)
drop_lifecycle_entries = partial(_drop, centralconfig.LIFECYCLE_RETENTION)
drop_incidents = partial(_drop, centralconfig.INCIDENT_RETENTION)
drop_notifications = partial(_drop, centralconfig.NOTIFICATION_RETENTION)
drop_deliveries = partial(_drop, centralconfig.DELIVERY_RETENTION)
# What ended as long ago as incidents are kept; of alerts also those of which nothing was heard since.
drop_silences = partial(
    _drop,
    centralconfig.INCIDENT_RETENTION,
    of=lambda limit: AlertSilence.objects.filter(until_at__lt=limit).order_by("pk"),
)
drop_alerts = partial(
    _drop,
    centralconfig.INCIDENT_RETENTION,
    of=lambda limit: Alert.objects.filter(Q(ended_at__lt=limit) | Q(ended_at=None, heard_at__lt=limit)).order_by("pk"),
)
