"""Reads for the operators' pages, synchronously: what the overview tells, at a cost that does not grow with the history, samples of
pools, and what was done with nodes and failed on them, whose pods may be gone."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.db.models import F, Max, Q, QuerySet
from django.utils import timezone

from dashboard.nodes.viewmodels.misconfigured import (
    AdminFacts,
    Misconfigured,
    change_line,
    misfits,
    never_started,
    refused_by_namespace,
)
from dashboard.nodes.viewmodels.node import TaskLine
from dashboard.nodes.viewmodels.pool_history import COLUMNS, TREND_COLUMNS, PoolPoint, Trends
from dashboard.usage.viewmodels.failure_moments import SHOWN_AT_MOST, FailedExecution
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.core.translation import gettext as _
from grid.diagnosis.nodeshapes import PoolShapes
from grid.diagnosis.shortages import NamespaceLimits, TierPromise, phantoms
from grid.executions.preview import pod_needs
from grid.executions.spec import tier_spec
from grid.models import AuditEntry, Environment, Execution, HardwareTier, NodeTask, PoolSample, State
from grid.models.dataplane import LOCAL
from grid.nodes import nodetasks
from grid.nodes.draining import parse_progress
from grid.tiers.tierrequests import sidecars, tier_request

CHANGES_SHOWN = 5
_CHANGES = [
    *(AuditEntry.Action.CREATED, AuditEntry.Action.CHANGED, AuditEntry.Action.ARCHIVED),
    *(AuditEntry.Action.RESTORED, AuditEntry.Action.RESET, AuditEntry.Action.UNLOCKED),
    *(AuditEntry.Action.ENDED, AuditEntry.Action.SENT),
]
LAUNCHES_LOOKED_AT = 1000  # the latest that have ended
SHOWN_FOR = timedelta(hours=1)
_MOST = 500


def admin_facts(
    pools: Mapping[str, PoolShapes] | None, unstarted: Collection[Misconfigured], limits: NamespaceLimits | None
) -> AdminFacts:
    """Return what is misconfigured, and the latest changes. `pools` and `limits` are None while they are not known."""
    offered = list(HardwareTier.objects.filter(is_archived=False))
    promises = [TierPromise(tier.pk, pod_needs(tier_spec(tier)), tier.maximum_simultaneous) for tier in offered]
    broken = phantoms(promises, value_of(MAXIMUM_EXECUTIONS_PER_USER), limits) if limits is not None else []
    containers = sidecars()
    requests = [(tier.pk, tier.name, tier_request(tier, containers)) for tier in offered]
    lines = [
        *([] if pools is None else misfits(requests, pools)),
        *refused_by_namespace(broken, {tier.pk: tier.name for tier in offered}),
        *unstarted,
    ]
    # Each action by its index: between two changes there may be any number of launches and logins.
    latest = [AuditEntry.objects.filter(action=action).order_by("-at", "-id")[:CHANGES_SHOWN] for action in _CHANGES]
    entries = sorted(chain.from_iterable(latest), key=lambda entry: (entry.at, entry.pk), reverse=True)[:CHANGES_SHOWN]
    return AdminFacts(
        # One line for each object, with what weighs most.
        misconfigured=tuple({(line.url_name, line.object_id): line for line in reversed(lines)}.values())[::-1],
        changes=tuple(change_line(entry, entry.object_type) for entry in entries),
    )


def environments_never_started() -> tuple[Misconfigured, ...]:
    """Return the environments of which the latest launches failed without having started, and no launch started."""
    ended = Execution.objects.filter(ended_at__isnull=False).order_by("-ended_at", "-pk")
    rows = list(ended.values_list("environment_id", "started_at", "state", "message")[:LAUNCHES_LOOKED_AT])
    started = {environment for environment, started_at, _, _ in rows if started_at is not None}
    failed = [row for row in rows if row[2] in (State.FAILED, State.ERROR) and row[0] not in started]
    failures = Counter(environment for environment, *_ in failed)
    if not failures:
        return ()
    running = Execution.objects.unsettled().filter(environment__in=failures, started_at__isnull=False)
    started |= set(running.values_list("environment_id", flat=True).order_by().distinct())
    latest = {environment: message for environment, _, _, message in reversed(failed)}
    names = Environment.objects.filter(pk__in=failures.keys() - started, is_archived=False).order_by("name")
    return tuple(
        never_started(id, name, failures[id], latest[id] or _("no cause was stored."))
        for id, name in names.values_list("pk", "name")
    )


def read_points(pool: str, first: int, last: int) -> list[PoolPoint]:
    """Return a pool's samples of the minutes after `first` until `last`, oldest first."""
    rows = _between(first, last).filter(pool=pool).order_by("minute")
    return [PoolPoint(*row) for row in rows.values_list("minute", *COLUMNS)]


def read_trends(first: int, last: int, width: int) -> Trends:
    """Return the highest values of each `width` minutes, and the newest sample of each pool that has one of the newest minute."""
    highest: dict[str, Any] = {f"most_{name}": Max(name) for name in TREND_COLUMNS}
    stretches = (
        _between(first, last).annotate(stretch=F("minute") / width).values("pool", "stretch").annotate(**highest)
    )
    trends = Trends({}, {})
    for pool, stretch, *values in stretches.order_by("stretch").values_list("pool", "stretch", *highest):
        trends.stretches.setdefault(pool, []).append((stretch * width, *values))
    newest = _between(first, last).aggregate(Max("minute"))["minute__max"]
    for pool, *row in PoolSample.objects.filter(minute=newest).values_list("pool", "minute", *COLUMNS):
        trends.newest[pool] = PoolPoint(*row)
    return trends


def _between(first: int, last: int) -> QuerySet[PoolSample]:
    return PoolSample.objects.filter(minute__gt=first, minute__lte=last).order_by()


def read_task_lines() -> Mapping[str, TaskLine]:
    """Return each node's newest task by the node's name: those that are open, and those that ended within the last hour."""
    recent = NodeTask.objects.filter(Q(ended_at=None) | Q(ended_at__gt=timezone.now() - SHOWN_FOR))
    newest = reversed(recent.order_by("-pk")[:_MOST])
    return {
        task.node_name: TaskLine(
            action=task.action,
            by=task.actor_name,
            asked_at=task.asked_at,
            reason=task.reason,
            mark=str(nodetasks.mark_of(task) or ""),
            trouble=task.trouble,
            ended_at=task.ended_at,
            outcome=task.outcome,
            progress=parse_progress((task.progress or {}).get("pods") or {}),
        )
        for task in newest
    }


def failed_on(node_name: str, since: datetime) -> list[FailedExecution]:
    """Return the executions that failed on the node since then, the newest first, at most as many as are shown. The index of the history
    by end bounds what is read to those that ended since."""
    rows = Execution.objects.filter(
        ended_at__gte=since, state__in=(State.FAILED, State.ERROR), node_name=node_name, data_plane=LOCAL
    ).order_by("-ended_at", "-id")
    read = rows.only("kind", "title", "ended_at", "message")[:SHOWN_AT_MOST]
    return [FailedExecution(row.pk, str(row), row.ended_at, row.message) for row in read if row.ended_at is not None]
