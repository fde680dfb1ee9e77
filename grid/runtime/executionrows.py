"""One execution as lists show it, and how the rows of all shown ones are read from the database; synchronous."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Max, Q, Sum

from grid.core.reasons import Reader, Values, words_of
from grid.models import Execution, Membership
from grid.models.execution import ExecutionQuerySet, object_name_of

KEPT_AFTER_END = timedelta(hours=1)
Version = tuple[int, datetime]  # differs after each write of an execution
# What is compared to find out what was written: the versions of all shown executions; and what differs when roles in projects do.
SnapshotVersions = tuple[Mapping[str, Version], object]


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """One execution as lists show it, with the facts that decide who may see it."""

    id: str
    kind: str
    title: str
    owner_username: str
    owner_id: int
    project_id: str
    project_name: str
    project_roles: Mapping[int, str]  # by the member's id; never modified
    tier_id: str
    tier_name: str
    environment_name: str
    state: str
    state_since: datetime
    reason: str
    message: str
    requested_at: datetime
    started_at: datetime | None
    object_name: str
    ended_at: datetime | None = None
    slots: int = 1
    head_tier_name: str = ""  # of a cluster; `tier` is its workers'
    framework: str = ""  # of a cluster
    attached_to: str = ""  # of a cluster: the workspace or job that it belongs to
    workspace_id: str = ""  # the workspace that this execution runs, "" for none
    job_id: str = ""  # of an attempt of a job's run
    run_number: int = 0  # the number of that run in its job; 0 for none
    is_settled: bool = True  # ended, and its pod is confirmed gone
    version: Version | None = field(default=None, compare=False)
    reason_values: Values | None = None

    @property
    def project_member_ids(self) -> Collection[int]:
        return self.project_roles.keys()

    def words(self, *, to_owner: bool) -> str:
        """Return the latest cause for its owner, or for others."""
        return words_of(self.reason, self.reason_values, self.message, Reader(self.owner_username, to_owner))


def _shown(now: datetime) -> tuple[ExecutionQuerySet, ExecutionQuerySet]:
    """Return the unsettled executions and those that ended lately: two querysets, as each has an index and their union none."""
    lately = Execution.objects.filter(settled_at__isnull=False, ended_at__gt=now - KEPT_AFTER_END)
    return Execution.objects.unsettled(), lately


def read_versions(now: datetime) -> SnapshotVersions:
    versions = {
        id: (revision, updated_at)
        for rows in _shown(now)
        for id, revision, updated_at in rows.order_by().values_list("pk", "revision", "updated_at")
    }
    # Joining, leaving and changing roles each change one of these; two people who swap roles in one statement would not.
    sums = {role: Sum("pk", filter=Q(role=role)) for role in Membership.Role.values}
    roles = Membership.objects.aggregate(Count("pk"), Max("pk"), **sums)
    return versions, tuple(roles.values())


def read_rows(now: datetime, *, ids: Collection[str] | None = None) -> list[ExecutionRow]:
    """Return the rows of all shown executions, or of those with these ids, in three queries."""
    shown = _shown(now) if ids is None else [rows.filter(pk__in=ids) for rows in _shown(now)]
    # Values only: models of an execution and all that it refers to would take five times as long.
    read = [row for rows in shown for row in rows.values_list(
        "id", "kind", "title", "owner_id", "owner__username", "project_id", "project__name", "tier_id", "tier__name",
        "environment__name", "state", "state_since", "reason", "reason_values", "message", "requested_at", "started_at",
        "ended_at", "slots", "head_tier__name", "framework", "attached_to_id", "workspace_id", "settled_at",
        "run__job_id", "run__number", "revision", "updated_at",
        named=True,
    )]  # fmt: skip
    roles: dict[str, dict[int, str]] = {row.project_id: {} for row in read}
    memberships = Membership.objects.filter(project_id__in=roles.keys())
    for project, user, role in memberships.values_list("project_id", "user_id", "role"):
        roles[project][user] = role
    return [
        ExecutionRow(
            id=row.id, kind=row.kind, title=row.title, owner_id=row.owner_id, owner_username=row.owner__username,
            project_id=row.project_id, project_name=row.project__name, project_roles=roles[row.project_id],
            tier_id=row.tier_id, tier_name=row.tier__name, environment_name=row.environment__name,
            state=row.state, state_since=row.state_since, reason=row.reason, reason_values=row.reason_values,
            message=row.message, requested_at=row.requested_at, started_at=row.started_at, ended_at=row.ended_at,
            object_name=object_name_of(row.kind, row.id), slots=row.slots, framework=row.framework,
            head_tier_name=row.head_tier__name or "", attached_to=row.attached_to_id or "",
            workspace_id=row.workspace_id or "", is_settled=row.settled_at is not None,
            job_id=row.run__job_id or "", run_number=row.run__number or 0, version=(row.revision, row.updated_at),
        )
        for row in read
    ]  # fmt: skip
