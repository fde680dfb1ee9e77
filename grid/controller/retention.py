"""Deletes rows older than the central configuration keeps them, as chores of `housekeeping`: oldest first, a bounded number of rows in each
transaction, and only of executions that are settled.

An execution is deleted in several such steps: its samples and history, then its intervals, which are added up into daily usage in the same
transaction, then itself, so that its page shows the cost nearly to the end. After an interruption the next step continues with what is
left.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, Manager, OuterRef, Q, QuerySet

from grid.audit.sealing import drop_sealed
from grid.configuration import (
    AUDIT_RETENTION,
    DELIVERY_RETENTION,
    EXECUTION_RETENTION,
    GRANT_RETENTION,
    INCIDENT_RETENTION,
    LIFECYCLE_RETENTION,
    LOG_RETENTION,
    METRIC_RETENTION,
    NOTIFICATION_RETENTION,
    SAMPLE_RETENTION,
    Setting,
    value_of,
)
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

_ORPHAN_AFTER = timedelta(hours=1)


def end_orphan_intervals(now: datetime, at_most: int) -> int:
    """End intervals that a deposed controller began after its successor saw the last pod go; return the number of executions with such
    intervals."""
    orphans = UsageInterval.objects.filter(
        ended_at__isnull=True, execution__settled_at__lt=now - _ORPHAN_AFTER
    ).order_by()
    found = set(orphans.values_list("execution_id", flat=True)[:at_most])
    with transaction.atomic():
        for execution in Execution.objects.filter(pk__in=found).only("settled_at"):
            usage.end_all(execution.pk, execution.settled_at or now)
    return len(found)


def drop_logs(now: datetime, at_most: int) -> int:
    return _drop(LOG_RETENTION, now, at_most)


def drop_samples(now: datetime, at_most: int) -> int:
    return _drop(SAMPLE_RETENTION, now, at_most)


def drop_metrics(now: datetime, at_most: int) -> int:
    return _drop(METRIC_RETENTION, now, at_most)


def drop_lifecycle_entries(now: datetime, at_most: int) -> int:
    return _drop(LIFECYCLE_RETENTION, now, at_most)


def drop_audit_entries(now: datetime, at_most: int) -> int:
    """From the start of their chain, so that the rest can still be verified."""
    limit = _limit(AUDIT_RETENTION, now)
    return drop_sealed(limit, at_most) if limit is not None else 0


def drop_incidents(now: datetime, at_most: int) -> int:
    return _drop(INCIDENT_RETENTION, now, at_most)


def drop_alerts(now: datetime, at_most: int) -> int:
    """Delete alerts that have ended as long ago as incidents are kept, and those of which nothing was heard since."""
    limit = _limit(INCIDENT_RETENTION, now)
    if limit is None:
        return 0
    rows = Alert.objects.filter(Q(ended_at__lt=limit) | Q(ended_at=None, heard_at__lt=limit)).order_by("pk")
    return _delete(Alert.objects, list(rows.values_list("pk", flat=True)[:at_most]))


def drop_silences(now: datetime, at_most: int) -> int:
    """Delete silences that have ended as long ago as incidents are kept."""
    limit = _limit(INCIDENT_RETENTION, now)
    if limit is None:
        return 0
    rows = AlertSilence.objects.filter(until_at__lt=limit).order_by("pk")
    return _delete(AlertSilence.objects, list(rows.values_list("pk", flat=True)[:at_most]))


def drop_notifications(now: datetime, at_most: int) -> int:
    return _drop(NOTIFICATION_RETENTION, now, at_most)


def drop_deliveries(now: datetime, at_most: int) -> int:
    return _drop(DELIVERY_RETENTION, now, at_most)


def drop_executions(now: datetime, at_most: int) -> int:
    """Do one step of deleting the oldest executions; return the number of deleted rows, at most `at_most` of one table.

    A workspace or job is deleted after the clusters that were launched with it; each execution after its open intervals have ended
    (`end_orphan_intervals`), since only ended ones are added up, and after its grants are gone (`purge_grants`): through them browsers
    clear what they stored of it.
    """
    limit = _limit(EXECUTION_RETENTION, now)
    if limit is None:
        return 0
    has_attached = Exists(Execution.objects.filter(attached_to=OuterRef("pk")))
    has_open = Exists(UsageInterval.objects.filter(execution=OuterRef("pk"), ended_at__isnull=True))
    has_grants = Exists(WorkspaceGrant.objects.filter(execution=OuterRef("pk")))
    due = expired(EXECUTION_RETENTION, limit).filter(~has_attached, ~has_open, ~has_grants)
    with transaction.atomic():
        # Locked, so that a second controller waits, and then finds the intervals gone: nothing is added up twice.
        locked = due.select_for_update(no_key=True).order_by("ended_at", "pk")
        ids = list(locked.values_list("pk", flat=True)[:at_most])
        for rows in (ClusterSample.objects, RunMetric.objects, LifecycleEntry.objects):
            found = list(rows.filter(execution__in=ids).order_by().values_list("pk", flat=True)[:at_most])
            if found:
                return _delete(rows, found)
        intervals = list(UsageInterval.objects.filter(execution__in=ids).order_by("pk")[:at_most])
        if intervals:
            dailyusage.add(dailyusage.added_up(intervals))
            return _delete(UsageInterval.objects, [one.pk for one in intervals])
        Execution.objects.filter(pk__in=ids).delete()  # deletes their logs too
        return len(ids)


def drop_runs(now: datetime, at_most: int) -> int:
    """Delete runs that ended as long ago as executions are kept, once their attempts are gone and no open run waits for them."""
    limit = _limit(EXECUTION_RETENTION, now)
    if limit is None:
        return 0
    has_attempts = Exists(Execution.objects.filter(run=OuterRef("pk")))
    is_awaited = Exists(JobRun.objects.filter(after=OuterRef("pk"), outcome=""))
    due = JobRun.objects.filter(~has_attempts, ~is_awaited, ended_at__lt=limit).order_by("ended_at", "pk")
    return _delete(JobRun.objects, list(due.values_list("pk", flat=True)[:at_most]))


def expired(setting: Setting, limit: datetime) -> QuerySet[Any]:
    """Return the rows that a setting of retention has deleted when its days go back to `limit`."""
    if setting == EXECUTION_RETENTION:
        return Execution.objects.filter(settled_at__isnull=False, ended_at__lt=limit)
    if setting == GRANT_RETENTION:
        return WorkspaceGrant.objects.filter(created_at__lt=limit)
    if setting == AUDIT_RETENTION:
        return AuditEntry.objects.filter(at__lt=limit)
    if setting == INCIDENT_RETENTION:
        return PlatformIncident.objects.filter(ended_at__lt=limit)
    if setting == NOTIFICATION_RETENTION:
        return Notification.objects.filter(at__lt=limit)
    if setting == DELIVERY_RETENTION:
        return Delivery.objects.filter(next_try_at__isnull=True, at__lt=limit)
    rows: QuerySet[Any] = {
        LOG_RETENTION: ExecutionLog.objects.all(),
        METRIC_RETENTION: RunMetric.objects.all(),
        SAMPLE_RETENTION: ClusterSample.objects.all(),
        # The changes of state stay: without them an execution's page could not say what happened.
        LIFECYCLE_RETENTION: LifecycleEntry.objects.filter(~Q(source=LifecycleEntry.Source.STATE)),
    }[setting]
    # A subquery by the key, so that the rows are read in index order and never sorted.
    ended = Execution.objects.filter(pk=OuterRef("execution_id"), settled_at__isnull=False, ended_at__lt=limit)
    return rows.filter(Exists(ended), at__lt=limit)


def _drop(setting: Setting, now: datetime, at_most: int) -> int:
    """Delete the oldest rows of those that the setting keeps no longer; return their number."""
    limit = _limit(setting, now)
    if limit is None:
        return 0
    rows = expired(setting, limit)
    return _delete(rows.model._default_manager, list(rows.order_by("at").values_list("pk", flat=True)[:at_most]))


def _limit(setting: Setting, now: datetime) -> datetime | None:
    """Return the time before which rows are deleted; None when they are kept for ever."""
    days = value_of(setting)
    return now - timedelta(days=days) if days else None


def _delete(rows: Manager[Any], found: Sequence[Any]) -> int:
    rows.filter(pk__in=found).delete()
    return len(found)
