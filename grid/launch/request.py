"""A person's requests: launch something, stop it. Checks them, says all that is wrong, and writes what was asked for.

Nothing here touches Kubernetes: the controller sees the rows and acts. A form asks `projects_for`, `environments_for` and
`tiers_for` what to offer; `validate` checks again, because a form's choices can be old or forged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from grid.errors import Problem, Rejected
from grid.launch import lifecycle, snapshot
from grid.launch.lifecycle import Change
from grid.launch.spec import freeze
from grid.models import Environment, Execution, HardwareTier, Project, State
from grid.models.environment import Kind
from grid.models.execution import new_execution_id

MAXIMUM_TITLE = 120
LAUNCHABLE_KINDS = frozenset({Kind.WORKSPACE, Kind.JOB, Kind.APP})


@dataclass(frozen=True)
class LaunchRequest:
    """What the form says."""

    owner: User
    project: Project
    environment: Environment
    tier: HardwareTier
    kind: str
    title: str = ""


def projects_for(user: User) -> QuerySet[Project]:
    """The projects that the user may launch in."""
    if not user.is_active:
        return Project.objects.none()
    mine = Project.objects.filter(Q(owner=user) | Q(members=user)).values("pk")
    return Project.objects.filter(pk__in=mine, is_archived=False)


def may_launch_in(user: User, project: Project) -> bool:
    return projects_for(user).filter(pk=project.pk).exists()


def environments_for(user: User, kind: str) -> QuerySet[Environment]:
    """The environments that the user may launch as `kind`."""
    if not user.is_active or kind not in LAUNCHABLE_KINDS:
        return Environment.objects.none()
    return Environment.objects.filter(kind=kind, is_visible=True, is_archived=False)


def tiers_for(user: User, kind: str) -> QuerySet[HardwareTier]:
    """The tiers that the user may choose for `kind`."""
    if not user.is_active:
        return HardwareTier.objects.none()
    offered = HardwareTier.objects.filter(is_visible=True, is_archived=False)
    allowed = offered.filter(Q(groups__isnull=True) | Q(groups__in=user.groups.all())).values_list("pk", "kinds")
    # SQLite cannot search in JSON lists; there are a few dozen tiers at most.
    return HardwareTier.objects.filter(pk__in={pk for pk, kinds in allowed if not kinds or kind in kinds})


def validate(request: LaunchRequest) -> list[Problem]:
    """Everything that is wrong with the request, each at its field; empty when it may be launched."""
    return [*_wrong_title(request), *_wrong_project(request), *_wrong_environment(request), *_wrong_tier(request)]


def submit(request: LaunchRequest, *, now: datetime, execution_id: str = "") -> Execution:
    """Record the request as a queued execution. Raises Rejected with all problems, or when the queue is full.

    Whoever may send one request twice gives it an id of its own: the second time is an IntegrityError.
    """
    with transaction.atomic():
        problems = validate(request)
        if problems:
            raise Rejected(problems)
        # By id, so that what is frozen comes from the rows of this transaction and not from the form's older ones.
        execution = Execution(
            id=execution_id or new_execution_id(),
            kind=request.kind,
            title=request.title.strip(),
            owner=request.owner,
            project_id=request.project.pk,
            environment_id=request.environment.pk,
            tier_id=request.tier.pk,
            state=State.QUEUED,
            state_since=now,
            requested_at=now,
            reason="requested",
            message="Asked for; it starts as soon as a slot is given to it.",
        )
        execution.spec = freeze(execution)
        full = snapshot.why_queue_is_full(execution)
        if full:
            raise Rejected([Problem("", full, code="queue_full")])
        lifecycle.record_request(execution)
    return execution


def request_stop(execution: Execution, *, by: str, now: datetime) -> None:
    """Ask for the end of an execution; a queued one ends at once. Doing it twice, or after its end, changes nothing."""
    while True:
        execution.refresh_from_db()
        if execution.is_final or execution.stop_requested_at is not None:
            return
        if _wrote_stop(execution, by=by, now=now):
            execution.refresh_from_db()
            return


def _wrote_stop(execution: Execution, *, by: str, now: datetime) -> bool:
    asked = {"stop_requested_at": now, "stop_requested_by": by}
    if execution.state != State.QUEUED:
        return lifecycle.update(execution.pk, asked, revision=execution.revision, now=now)
    change = Change(State.STOPPED, "stopped", f"Stopped by {by} before it started.", actor=by)
    return lifecycle.enter(
        execution.pk, change, revision=execution.revision, left=execution.state, now=now, fields=asked
    )


def _wrong_title(request: LaunchRequest) -> Iterator[Problem]:
    title = request.title.strip()
    if len(title) > MAXIMUM_TITLE:
        yield Problem("title", f"Use at most {MAXIMUM_TITLE} characters; these are {len(title)}.", "too_long")
    if not title.isprintable():
        yield Problem("title", "Use characters that can be seen, in one line.", "unprintable")


def _wrong_project(request: LaunchRequest) -> Iterator[Problem]:
    if not request.owner.is_active:
        yield Problem("", "This account is disabled; ask your admin.", "inactive")
    elif not may_launch_in(request.owner, request.project):
        # One answer for both cases: a stranger does not learn which projects exist.
        yield Problem("project", "Choose one of your projects; this one is archived or not yours.", "project")


def _wrong_environment(request: LaunchRequest) -> Iterator[Problem]:
    if request.kind not in LAUNCHABLE_KINDS:
        yield Problem("kind", "Choose a workspace, a job or an app.", "kind")
        return
    environment = Environment.objects.filter(pk=request.environment.pk).first()
    if environment is None or environment.is_archived or not environment.is_visible:
        yield Problem("environment", "This environment is not offered any more; choose another.", "not_offered")
    elif environment.kind != request.kind:
        made_for = Kind(environment.kind).label.lower()
        yield Problem("environment", f"{environment.name} is made for the kind “{made_for}”; choose another.", "kind")


def _wrong_tier(request: LaunchRequest) -> Iterator[Problem]:
    if not request.owner.is_active or tiers_for(request.owner, request.kind).filter(pk=request.tier.pk).exists():
        return
    tier = HardwareTier.objects.filter(pk=request.tier.pk).first()
    if tier is None or tier.is_archived or not tier.is_visible:
        yield Problem("tier", "This hardware tier is not offered any more; choose another.", "not_offered")
    elif tier.kinds and request.kind not in tier.kinds:
        yield Problem("tier", f"{tier.name} is not for this kind of work; choose another tier.", "kind")
    else:
        yield Problem("tier", f"{tier.name} is kept for certain groups; choose another, or ask your admin.", "group")
